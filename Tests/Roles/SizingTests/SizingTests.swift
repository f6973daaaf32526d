import Contract
import Foundation
import Testing

@testable import Sizing

/// Figures that make sums easy: ten records, bytes or microseconds of everything, and no rest.
private let round = MeasuredFigures(
    date: "2026-01-01", machine: "a test",
    figures: Dictionary(
        uniqueKeysWithValues: FigureName.allCases.map { name in
            let value = name.rawValue.hasSuffix("Rest") ? 0.0 : 10
            return (name, MeasuredFigure(value, "", ""))
        }))

private func figures(_ changes: [FigureName: Double], of base: MeasuredFigures = round) -> MeasuredFigures {
    var all = base.figures
    for (name, value) in changes { all[name] = MeasuredFigure(value, "", "") }
    return MeasuredFigures(date: base.date, machine: base.machine, figures: all)
}

func made(
    subscribers: Int = 70_000, renewals: Double? = nil, churned: Double = 0, partitions: Int = 12, copies: Int = 3,
    _ customers: (inout Installation.Customers) -> Void = { _ in },
    _ decisions: (inout Installation.Decisions) -> Void = { _ in }
) throws -> Installation {
    var who = Installation.Customers(
        subscribers: subscribers, renewalsADay: renewals ?? Double(subscribers) / 30, churned: churned)
    customers(&who)
    let plan = TopicPlan(
        prefix: TopicPrefix("appstore")!, partitions: partitions, replicationFactor: copies, minimumInSyncReplicas: 1)
    var what = Installation.Decisions(plan: plan, stateCacheBytes: 256e6, ingestBufferedBytes: 64e6)
    decisions(&what)
    return try Installation(who, what)
}

extension Sizing {
    fileprivate func topic(_ id: TopicID) -> TopicSizing { topics.first { $0.id == id }! }
    fileprivate func role(_ role: SizedRole) -> ProcessSizing { processes.first { $0.role == role }! }
}

@Suite struct `A sizing` {
    @Test(arguments: FigureName.allCases)
    func `has a measured figure for each name`(_ name: FigureName) throws {
        let figure = try #require(MeasuredFigures.measured.figures[name])
        #expect(figure.value.isFinite && figure.value >= 0)
        #expect(!figure.unit.isEmpty && !figure.part.isEmpty)
    }

    @Test func `says when and on what its figures were measured`() {
        let figures = MeasuredFigures.measured
        #expect(figures.date.wholeMatch(of: /20\d\d-\d\d-\d\d/) != nil, "\(figures.date)")
        #expect(figures.machine.contains("core") && figures.machine.contains("Kafka"))
        #expect(FigureName.allCases.filter { $0.rawValue.hasSuffix("Rest") }.allSatisfy { figures[$0] < 0.5 })
    }

    // MARK: Records

    @Test func `counts notifications of renewals, purchases and both steps of a refund request`() throws {
        let installation = try made(renewals: 1000) {
            $0.purchasesADay = 7
            $0.refundRequestsADay = 3
        }
        let sizing = Sizing(of: installation, by: round)
        #expect(sizing.rates.notifications == 10 * 1000 + 7 + 2 * 3)
        #expect(sizing.topic(.signed).recordsADay == sizing.rates.notifications)
        #expect(sizing.topic(.notifications).recordsADay == sizing.rates.notifications + sizing.rates.ticks)
    }

    @Test func `counts a tick for each quiet interval of a partition, and none where it is never quiet`() {
        #expect(Rates.ticks(notifications: 0, partitions: 12, interval: 60) == 12 * 1440)
        // One notification in each interval of each partition: a gap is longer with the probability 1/e.
        let some = Rates.ticks(notifications: 12 * 1440, partitions: 12, interval: 60)
        #expect(abs(some - 12 * 1440 / (exp(1) - 1)) < 1e-6)
        #expect(Rates.ticks(notifications: 1e9, partitions: 12, interval: 60) < 1e-6)
    }

    @Test func `archives nothing that is not to be archived`() throws {
        let sizing = Sizing(
            of: try made { _ in
            } _: {
                $0.archivesSignedPayloads = false
            }, by: round)
        #expect(sizing.topic(.signed).recordsADay == 0 && sizing.topic(.signed).keptBytes == 0)
        let archiving = Sizing(of: try made(), by: round)
        #expect(archiving.topic(.signed).recordsADay > 0)
    }

    @Test func `takes the busiest time for notifications and not for ticks`() throws {
        let sizing = Sizing(
            of: try made { _ in
            } _: {
                $0.peakFactor = 10
            }, by: round)
        let expected = (10 * sizing.rates.notifications + sizing.rates.ticks) / 86_400
        #expect(abs(sizing.topic(.notifications).recordsASecondAtPeak - expected) < 1e-9)
    }

    // MARK: Bytes

    @Test func `gives each record that arrives alone its batch and its transaction's end`() throws {
        let by = figures([
            .batchBytes: 61, .markerBytes: 78, .noteBytes: 200, .tickBytes: 100, .notificationBytes: 2000,
        ])
        let sizing = Sizing(of: try made(), by: by)
        let (n, ticks) = (sizing.rates.notifications, sizing.rates.ticks)
        #expect(sizing.topic(.notifications).bytesADay == n * 2061 + ticks * 161)
        #expect(sizing.topic(.entitlements).bytesADay == n * 10 * (10 + 61 + 78))
        // Each tick makes each worker write a note.
        let expected = n * 10 * 10 + (n + ticks) * (200 + 61 + 78)
        #expect(abs(sizing.topic(.changelog(.entitlements)).bytesADay - expected) < 1e-6 * expected)
        #expect(sizing.topic(.changelog(.entitlements)).recordsADay == n * 10 + n + ticks)
    }

    @Test func `keeps notes of ticks in the changelogs of an installation in which nothing happens`() throws {
        let quiet = Sizing(of: try made(subscribers: 1, renewals: 1e-6), by: round)
        for worker in WorkerName.allCases {
            #expect(quiet.topic(.changelog(worker)).bytesADay >= quiet.rates.ticks * (10 + 10 + 10))
        }
    }

    @Test func `keeps what the topics keep`() {
        func kept(_ id: TopicID, written: Double, live: Double = 0, years: Int, partitions: Int = 1) -> Double {
            Keeping.kept(
                TopicCatalogue.definition(id), written: written, live: live, years: years, partitions: partitions)
        }
        #expect(kept(.notifications, written: 5, years: 3) == 5 * 365 * 3)
        // 400 days, and the segment of up to a week that is deleted as a whole.
        #expect(kept(.signed, written: 5, years: 3) == 5 * 407)
        #expect(kept(.signed, written: 5, years: 1) == 5 * 365)
        #expect(kept(.signed, written: 1e12, years: 3) == 1e12 * 400 + Double(1 << 30))
        // Kafka compacts when half of a log is old.
        #expect(kept(.entitlements, written: 1000, live: 5000, years: 3) == 2 * 5000 + 7 * 1000)
        #expect(kept(.entitlements, written: 1, live: 5000, years: 3) == 365 * 3)
        // Segments of a changelog are small.
        #expect(kept(.changelog(.churn), written: 1e12, live: 7, years: 1, partitions: 2) == 14 + 2 * Double(64 << 20))
    }

    @Test func `multiplies by the copies`() throws {
        let (one, three) = (Sizing(of: try made(copies: 1), by: round), Sizing(of: try made(copies: 3), by: round))
        #expect(three.keptBytes == one.keptBytes)
        #expect(abs(three.keptBytesInAllCopies - 3 * one.keptBytesInAllCopies) < 1)
        #expect(three.brokers.brokers == 3 && abs(three.brokers.diskBytes - one.brokers.diskBytes) < 1)
    }

    @Test func `keeps what is known of subscribers who have left, and of each purchase`() throws {
        let by = figures([.entitlementsKeptBytesPerNotification: 0, .entitlementsKeptBytes: 500])
        func state(_ installation: Installation) -> Double {
            Sizing(of: installation, by: by).stateBytes.first { $0.role == .entitlements }!.bytes
        }
        #expect(state(try made(subscribers: 1000)) == 500 * 1000)
        #expect(state(try made(subscribers: 1000, churned: 9000)) == 500 * 10_000)
        #expect(state(try made(subscribers: 1000) { $0.purchasesADay = 10 }) == 500 * (1000 + 3650))
    }

    @Test func `lets the state of a subscription grow with its notifications`() throws {
        let by = figures([.entitlementsKeptBytes: 0, .entitlementsKeptBytesPerNotification: 3])
        let installation = try made(renewals: 100) { _ in
        } _: {
            $0.years = 2
        }
        let state = Sizing(of: installation, by: by).stateBytes.first { $0.role == .entitlements }!.bytes
        #expect(state == 3 * 1000 * 730)
    }

    @Test func `keeps at most one cell for each partition and kind of a day`() throws {
        let few = try made(renewals: 1) { $0.kinds = 1000 }
        let many = try made(renewals: 10_000) { $0.kinds = 5 }
        func cells(_ installation: Installation) -> Double {
            let rates = Rates(installation, round)
            return TopicFormulas(installation: installation, figures: round, rates: rates).cells
        }
        #expect(cells(few) == 365 * 10 * 10)
        #expect(cells(many) == 365 * 12 * 5)
    }

    // MARK: Processes

    @Test func `charges a commit for each record only as far as threads can commit`() throws {
        let by = figures([
            .commitsASecond: 50, .entitlementsPerCommit: 4000, .entitlementsPerRecord: 100, .notificationsPerRenewal: 1,
        ])
        func cores(_ renewals: Double) throws -> Double {
            let installation = try made(subscribers: 100_000_000, renewals: renewals * 86_400)
            let rates = Rates(installation, by)
            let topics = TopicFormulas(installation: installation, figures: by, rates: rates)
            return ProcessFormulas(installation: installation, figures: by, rates: rates, topics: topics)
                .workload(of: .entitlements, threads: 1, at: 1)
        }
        // 10 a second: each has a commit of its own. The ticks of so few notifications do not matter.
        #expect(abs(try cores(10) - 10 * (4000 + 100) / 1e6) < 0.0001)
        #expect(abs(try cores(160) - (50 * 4000 + 160 * 100) / 1e6) < 1e-9)
    }

    @Test func `has as many processes as its busiest time needs, and one more`() {
        #expect(ProcessFormulas.processes(forCores: 0.1, threads: 1) == 2)
        #expect(ProcessFormulas.processes(forCores: 1, threads: 1) == 2)
        #expect(ProcessFormulas.processes(forCores: 1.01, threads: 1) == 3)
        #expect(ProcessFormulas.processes(forCores: 3.5, threads: 2) == 3)
        #expect(ProcessFormulas.processes(forCores: 7.2, threads: 1) == 9)
    }

    @Test func `says when there are too few partitions for the threads`() throws {
        let busy = figures([.entitlementsPerRecord: 1e4, .notificationsPerRenewal: 1])
        let installation = try made(subscribers: 100_000_000, renewals: 864e4, partitions: 1)
        let sizing = Sizing(of: installation, by: busy)
        #expect(sizing.role(.entitlements).lacksPartitions == sizing.role(.entitlements).processes - 1)
        #expect(Sizing(of: try made(), by: round).processes.allSatisfy { $0.lacksPartitions == nil })
    }

    @Test func `charges the consumption worker for notifications, requests and answers`() throws {
        let by = figures([.consumptionPerDecision: 1000, .consumptionPerAnswer: 2000, .notificationsPerRenewal: 1])
        let quiet = Sizing(of: try made(subscribers: 1_000_000), by: by)
        let without = quiet.role(.consumption).coresOnAverage
        let with = Sizing(of: try made(subscribers: 1_000_000) { $0.refundRequestsADay = 86_400 }, by: by)
            .role(.consumption).coresOnAverage
        // It reads every notification and every tick, and commits each.
        let read = quiet.rates.notifications + quiet.rates.ticks
        #expect(abs(without - read / 86_400 * 20 / 1e6) < 1e-12)
        // One request a second: its decision and answer, and five records of 10 us, with their commits.
        let more = 1.0 * (1000 + 2000) / 1e6
        #expect(with - without > more && with - without < more + 5 * 20 / 1e6 + 1e-9)
    }

    @Test func `charges the API for questions`() throws {
        let by = figures([.apiPerQuestion: 50])
        let without = Sizing(of: try made(), by: by).role(.api).coresOnAverage
        let with = Sizing(of: try made { $0.questionsASecond = 1000 }, by: by).role(.api).coresOnAverage
        #expect(abs(with - without - 0.05) < 1e-9)
    }

    @Test func `counts commits of usage for the consumption worker only`() throws {
        let by = figures([.commitsASecond: 1e6, .brokerPerCommit: 1000, .brokerPerNotification: 0])
        func commits(_ usage: Double) throws -> Double {
            let installation = try made(copies: 1) { $0.usageRecordsADay = usage }
            return Sizing(of: installation, by: by).brokers.coresOnAverage
        }
        // One record a second: one commit of one worker.
        #expect(abs(try commits(86_400) - (try commits(0)) - 1000 / 1e6) < 1e-9)
    }

    @Test func `gives the read API room for all that it copies`() throws {
        let by = figures([.diskPerStateByte: 2])
        let sizing = Sizing(of: try made { $0.kinds = 3 }, by: by)
        func bytes(_ ids: [TopicID]) -> Double {
            ids.reduce(0) { sum, id in
                let topic = sizing.topic(id)
                return sum + (topic.retention == .lastOfKey ? topic.liveBytes : topic.keptBytes)
            }
        }
        let copied = bytes([.entitlements, .entitlementEvents, .accounts, .consumption, .churnCells])
        #expect(abs(sizing.role(.api).diskBytes - copied * 2) < 1)
        #expect(bytes([.churnCells]) > 0 && sizing.cellsInMemory == 3 * 365)
    }

    @Test func `gives the disk of a lost worker to the others`() throws {
        let by = figures([.diskPerStateByte: 2])
        let sizing = Sizing(of: try made(), by: by)
        for (role, bytes) in sizing.stateBytes {
            #expect(sizing.role(role).diskBytes == bytes * 2 / Double(sizing.role(role).processes - 1))
        }
        #expect(sizing.role(.entitlements).memoryBytes == 320e6 + Double(256 << 20))
        #expect(sizing.role(.api).memoryBytes == 512e6)
        #expect(sizing.role(.ingest).diskBytes == 0 && sizing.role(.ingest).memoryBytes == 10 + 64e6)
    }

    // MARK: Brokers

    @Test func `gives brokers cores, memory and disk`() throws {
        let by = figures([.brokerRest: 0.03, .brokerPerNotification: 100, .brokerPerCommit: 1000, .brokerMemory: 1e9])
        let sizing = Sizing(of: try made(), by: by)
        let (average, peak) = (sizing.brokers.coresOnAverage, sizing.brokers.coresAtPeak)
        // Three workers commit what they read; three copies are written.
        let (read, n) = (sizing.rates.notifications + sizing.rates.ticks, sizing.rates.notifications)
        let microseconds = 3 * (3 * read * 1000 + n * (100 + 10)) / 86_400
        #expect(abs(average - (3 * 0.03 + microseconds / 1e6)) < 1e-9)
        #expect(sizing.brokers.memoryBytes == 1e9)
        #expect(abs(sizing.brokers.diskBytes - sizing.topics.reduce(0) { $0 + $1.keptBytes }) < 1)
        // One is lost: the others share its work.
        #expect(abs(sizing.brokers.coresOfEach - (0.03 + (peak - 3 * 0.03) / 2)) < 1e-9)
        #expect(!sizing.brokers.areTooFew)
        let busy = Sizing(of: try made(subscribers: 100_000_000), by: figures([.brokerPerNotification: 1e6]))
        #expect(busy.brokers.areTooFew)
    }
}
