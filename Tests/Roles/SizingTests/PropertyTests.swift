import Contract
import Testing

@testable import Sizing

/// Whatever an installation looks like, and whatever was measured.
@Suite struct `Any sizing` {
    private struct Case {
        var subscribers: Int
        var share: Double
        var churned: Double
        var purchases: Double
        var requests: Double
        var questions: Double
        var kinds: Int
        var years: Int
        var peak: Double
        var partitions: Int
        var copies: Int
        var threads: Int
        var tick: Double
        var archives: Bool

        init(_ random: inout SplitMix) {
            func power(_ most: Double) -> Double { random.share() < 0.2 ? 0 : (random.share() * most).rounded() }
            subscribers = Int(1 + random.share() * random.share() * random.share() * 4e7)
            share = 0.001 + random.share() * 0.14
            churned = power(1e8)
            purchases = power(1e5)
            requests = min(Double(subscribers), power(1e4))
            questions = power(1e4)
            kinds = Int(1 + random.share() * 1000)
            years = Int(1 + random.share() * 10)
            peak = 1 + random.share() * 30
            partitions = Int(8 + random.share() * 90)
            copies = Int(1 + random.share() * 3)
            threads = Int(1 + random.share() * 4)
            tick = [1.0, 60, 3600][Int(random.share() * 3)]
            archives = random.share() < 0.5
        }

        func sizing() throws -> Sizing {
            Sizing(
                of: try made(
                    subscribers: subscribers, renewals: Double(subscribers) * share, churned: churned,
                    partitions: partitions, copies: copies
                ) {
                    $0.purchasesADay = purchases
                    $0.refundRequestsADay = requests
                    $0.usageRecordsADay = requests
                    $0.questionsASecond = questions
                    $0.kinds = kinds
                } _: {
                    $0.years = years
                    $0.peakFactor = peak
                    $0.workerThreads = threads
                    $0.tickSeconds = tick
                    $0.archivesSignedPayloads = archives
                })
        }
    }

    private static let cases = 500

    /// Every number, with a name.
    private static func numbers(_ sizing: Sizing) -> [(name: String, value: Double)] {
        sizing.topics.flatMap { topic in
            [
                ("\(topic.id) records", topic.recordsADay), ("\(topic.id) peak", topic.recordsASecondAtPeak),
                ("\(topic.id) bytes", topic.bytesADay), ("\(topic.id) kept", topic.keptBytes),
                ("\(topic.id) copies", topic.keptBytesInAllCopies),
            ]
        }
            + sizing.processes.flatMap { process in
                [
                    ("\(process.role) processes", Double(process.processes)),
                    ("\(process.role) average", process.coresOnAverage), ("\(process.role) peak", process.coresAtPeak),
                    ("\(process.role) memory", process.memoryBytes), ("\(process.role) disk", process.diskBytes),
                ]
            }
            + sizing.stateBytes.map { ("\($0.role) state", $0.bytes) } + [
                ("brokers average", sizing.brokers.coresOnAverage), ("brokers peak", sizing.brokers.coresAtPeak),
                ("broker cores", sizing.brokers.coresOfEach), ("broker memory", sizing.brokers.memoryBytes),
                ("broker disk", sizing.brokers.diskBytes),
            ]
    }

    @Test func `has only finite numbers, and none below zero`() throws {
        var random = SplitMix(state: 1)
        for _ in 0..<Self.cases {
            for (name, value) in Self.numbers(try Case(&random).sizing()) {
                #expect(value.isFinite && value >= 0, "\(name) \(value)")
            }
        }
    }

    /// A worker's disk is divided by its processes, so more work may mean less disk of each. All of them together need more.
    @Test func `needs no less of anything for more subscribers`() throws {
        var random = SplitMix(state: 2)
        for _ in 0..<Self.cases {
            var one = Case(&random)
            let before = Self.numbers(try one.sizing())
            one.subscribers = Int(Double(one.subscribers) * (1 + random.share())) + 1
            one.churned += power(&random)
            let after = Self.numbers(try one.sizing())
            for (old, new) in zip(before, after) where !old.name.hasSuffix(" disk") || old.name == "broker disk" {
                #expect(new.value >= old.value * (1 - 1e-9), "\(old) \(new)")
            }
        }
    }

    private func power(_ random: inout SplitMix) -> Double { random.share() * 1e6 }

    @Test func `needs at most twice of everything for twice as much, and what it needs at rest`() throws {
        var random = SplitMix(state: 3)
        for _ in 0..<Self.cases {
            var one = Case(&random)
            let small = try one.sizing()
            one.subscribers *= 2
            one.churned *= 2
            one.purchases *= 2
            one.requests *= 2
            one.questions *= 2
            let large = try one.sizing()
            for (old, new) in zip(small.topics, large.topics) {
                #expect(new.bytesADay <= 2 * old.bytesADay * (1 + 1e-9), "\(old.id)")
                #expect(new.keptBytes <= 2 * old.keptBytes * (1 + 1e-9), "\(old.id)")
            }
            for (old, new) in zip(small.processes, large.processes) {
                let rest = Double(new.processes) * MeasuredFigures.measured[Self.rest(old.role)]
                #expect(
                    new.coresOnAverage <= 2 * old.coresOnAverage * (1 + 1e-9) + rest + more(new, old), "\(old) \(new)")
            }
            #expect(large.brokers.diskBytes <= 2 * small.brokers.diskBytes * (1 + 1e-9))
        }
    }

    /// More processes can commit more often. And each process of the read API follows everything.
    private func more(_ new: ProcessSizing, _ old: ProcessSizing) -> Double {
        if new.role == .api {
            return max(0, Double(new.processes) / Double(old.processes) - 1) * 2 * old.coresOnAverage
        }
        guard let name = Self.perCommit(new.role), new.processes > 2 * old.processes else { return 0 }
        let figures = MeasuredFigures.measured
        return Double(new.processes * 4) * figures[.commitsASecond] * figures[name] / 1e6
    }

    private static func rest(_ role: SizedRole) -> FigureName {
        switch role {
        case .ingest: .ingestRest
        case .entitlements: .entitlementsRest
        case .churn: .churnRest
        case .consumption: .consumptionRest
        case .api: .apiRest
        }
    }

    private static func perCommit(_ role: SizedRole) -> FigureName? {
        switch role {
        case .entitlements: .entitlementsPerCommit
        case .churn: .churnPerCommit
        case .consumption: .consumptionPerCommit
        case .ingest, .api: nil
        }
    }

    @Test func `is the sum of its parts, and carries the busiest time when one process is lost`() throws {
        var random = SplitMix(state: 4)
        for _ in 0..<Self.cases {
            let one = Case(&random)
            let sizing = try one.sizing()
            #expect(sizing.bytesADay == sizing.topics.map(\.bytesADay).reduce(0, +))
            let disk = sizing.brokers.diskBytes * Double(sizing.brokers.brokers)
            #expect(abs(disk - sizing.keptBytesInAllCopies) <= 1e-9 * disk)
            for process in sizing.processes {
                let threads = process.role == .ingest || process.role == .api ? 1 : one.threads
                #expect(process.processes >= 2 && process.coresOnAverage <= process.coresAtPeak * (1 + 1e-9))
                // What each process needs for itself, however many there are, is no work that they divide.
                let figures = MeasuredFigures.measured
                let shared =
                    process.role == .api
                    ? one.questions * one.peak * figures[.apiPerQuestion] / 1e6
                    : process.coresAtPeak - Double(process.processes) * figures[Self.rest(process.role)]
                #expect(Double((process.processes - 1) * threads) >= shared * (1 - 1e-9), "\(process)")
            }
        }
    }

    // MARK: What is refused

    @Test(arguments: [
        (0, 1.0), (-5, 1), (100_000_001, 1), (1000, 0), (1000, -1), (1000, .nan), (1000, .infinity), (1000, 143),
    ])
    func `is not made of a description that cannot be`(_ subscribers: Int, _ renewals: Double) {
        #expect(throws: SizingFaults.self) { try made(subscribers: subscribers, renewals: renewals) }
    }

    @Test func `says what contradicts what`() {
        func texts(
            _ customers: (inout Installation.Customers) -> Void,
            _ decisions: (inout Installation.Decisions) -> Void = { _ in }
        ) -> String {
            do throws(SizingFaults) {
                _ = try refused(customers, decisions)
                return ""
            } catch {
                return error.texts.joined(separator: "\n")
            }
        }
        func refused(
            _ customers: (inout Installation.Customers) -> Void, _ decisions: (inout Installation.Decisions) -> Void
        ) throws(SizingFaults) -> Installation {
            var who = Installation.Customers(subscribers: 7000, renewalsADay: 1000, churned: 0)
            customers(&who)
            let plan = TopicPlan(
                prefix: TopicPrefix("appstore")!, partitions: 12, replicationFactor: 3, minimumInSyncReplicas: 2)
            var what = Installation.Decisions(plan: plan, stateCacheBytes: 1e9, ingestBufferedBytes: 1e9)
            decisions(&what)
            return try Installation(who, what)
        }
        #expect(texts { _ in } == "")
        #expect(texts { $0.renewalsADay = 1001 }.contains("Apple's shortest period is a week"))
        #expect(texts { $0.refundRequestsADay = 7001 }.contains("more than there are subscribers"))
        #expect(texts { $0.churned = .nan }.contains("churned"))
        #expect(texts { $0.kinds = 0 }.contains("kinds"))
        #expect(
            texts({ _ in }) {
                $0.archivesSignedPayloads = false
                $0.signedBytes = 9000
            }.contains("have no size"))
        #expect(texts({ _ in }) { $0.workerThreads = 13 }.contains("only 12 partitions"))
        #expect(texts({ _ in }) { $0.peakFactor = 0.5 }.contains("peak"))
        #expect(texts({ _ in }) { $0.years = 0 }.contains("years"))
        #expect(texts({ _ in }) { $0.tickSeconds = .nan }.contains("ticks"))
        #expect(texts({ $0.kinds = 0 }) { $0.years = 0 }.contains("\n"))
    }
}

/// Numbers that look random, from a seed.
private struct SplitMix {
    var state: UInt64

    mutating func share() -> Double {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return Double((z ^ (z >> 31)) >> 11) / Double(1 << 53)
    }
}
