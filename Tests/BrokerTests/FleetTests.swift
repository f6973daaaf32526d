import Glibc
import KafkaTestKit
import Testing

private func number(_ name: String) -> Int? { getenv(name).flatMap { Int(String(cString: $0)) } }

/// nil: the long run was not asked for.
private let fleetSeconds = number("PERENNIAL_TEST_FLEET_SECONDS")
private let rollingSeconds = number("PERENNIAL_TEST_ROLLING_SECONDS")
private let rate = number("PERENNIAL_TEST_FLEET_RATE") ?? 500
/// A release build: one without optimisation does not keep the pace.
private let program = getenv("PERENNIAL_TEST_PROGRAM").map { String(cString: $0) }

extension RealBroker {
    @Suite(
        .serialized,
        .enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine)),
        .enabled(if: fleetSeconds != nil, "make fleet, or make nightly PART=fleet")
    )
    struct `A fleet on a network that fails` {
        @Test func `writes what the truth says, in flat memory, whatever happens to hosts, brokers and disks`()
            async throws
        {
            let run = try await FleetRun.open(
                seconds: try #require(fleetSeconds), rate: rate, program: try #require(program))
            try await run.play()
            try await run.judge()
        }
    }

    @Suite(
        .serialized,
        .enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine)),
        .enabled(if: rollingSeconds != nil, "make rolling, or make nightly PART=rolling")
    )
    struct `A rolling restart under load` {
        @Test func `lets each partition stand still for less than five seconds`() async throws {
            var options = KafkaOptions()
            options.nodes = 3
            options.java = .thrifty
            // The three of them have two cores. With Kafka's numbers, which are for eight, threads mostly switch.
            options.properties = ["num.io.threads": "2", "num.network.threads": "1"]
            let cluster = try await KafkaCluster.start(BrokerSource.current.requireDistribution(), options)
            do {
                let run = try await RollingRun(
                    seconds: try #require(rollingSeconds), rate: rate, program: try #require(program), cluster)
                try await run.play()
                try await run.judge()
            } catch {
                await cluster.close()
                throw error
            }
            await cluster.close()
        }
    }
}

@Suite struct `The judges of a fleet` {
    private static let lane = ManyPartition(kind: .churn, number: 0)

    private static func waits() -> FleetWaits { FleetWaits(kinds: [.churn], partitions: 1) }

    @Test func `measure a wait from the publication to the commit that answers it`() {
        var waits = Self.waits()
        for offset in 0..<10 { waits.published(0, offset: Int64(offset), at: 1_000 + Int64(offset)) }
        waits.committed(Self.lane, position: 10, at: 1_109)
        let all = FleetWaits.merged(waits.steps)
        #expect(all == Dictionary(uniqueKeysWithValues: (100...109).map { (Int64($0), 1) }))
        #expect(FleetWaits.wait(500, of: all) == 104)
        #expect(FleetWaits.wait(990, of: all) == 109)
        #expect(FleetWaits.wait(990, of: [:]) == nil)
    }

    @Test func `count the worst of a thousand waits, and not more than the tenth worst as p99`() {
        let all: [Int64: Int] = [10: 990, 5_000: 9, 9_000: 1]
        #expect(FleetWaits.wait(990, of: all) == 10)
        #expect(FleetWaits.wait(991, of: all) == 5_000)
        #expect(FleetWaits.wait(1_000, of: all) == 9_000)
    }

    @Test func `measure the same when the commit is read before its notifications`() {
        var waits = Self.waits()
        waits.committed(Self.lane, position: 2, at: 1_500)
        waits.published(0, offset: 0, at: 1_000)
        #expect(FleetWaits.merged(waits.steps).isEmpty)
        waits.published(0, offset: 1, at: 1_400)
        #expect(FleetWaits.merged(waits.steps) == [500: 1, 100: 1])
    }

    @Test func `count a wait that has not ended when the measurement ends`() {
        var waits = Self.waits()
        waits.published(0, offset: 0, at: 1_000)
        waits.published(0, offset: 1, at: 1_000)
        waits.committed(Self.lane, position: 1, at: 1_010)
        waits.end(at: 61_000)
        #expect(waits.unfinished == 1)
        #expect(FleetWaits.merged(waits.steps) == [10: 1, 60_000: 1])
        #expect(waits.pauses.map(\.duration).max() == .milliseconds(59_990))
    }

    @Test func `see a partition that stands still while input waits, and none that has nothing to do`() {
        var waits = Self.waits()
        waits.published(0, offset: 0, at: 1_000)
        waits.committed(Self.lane, position: 1, at: 1_100)
        #expect(waits.standing(longerThan: 500, at: 60_000).isEmpty)
        waits.begin(.rolling)
        // Idle until 50000, and still for six seconds after that.
        waits.published(0, offset: 1, at: 50_000)
        #expect(waits.standing(longerThan: 500, at: 50_400).isEmpty)
        #expect(waits.standing(longerThan: 500, at: 51_000).count == 1)
        waits.committed(Self.lane, position: 1, at: 55_000)
        #expect(waits.standing(longerThan: 500, at: 55_100).count == 1, "a commit without input is no answer")
        waits.committed(Self.lane, position: 2, at: 56_000)
        #expect(waits.standing(longerThan: 500, at: 90_000).isEmpty)
        #expect(waits.steps[1].stands[Self.lane]?.milliseconds == 6_000)
        #expect(waits.pauses.filter { $0.cause == .rolling }.map(\.duration) == [.seconds(6)])
    }

    @Test func `see a partition that has committed nothing`() {
        #expect(Self.waits().standing(longerThan: 500, at: 0) == ["churn[0] has committed nothing"])
    }

    @Test(arguments: [(4_999, 0), (5_000, 1)] as [(Int64, Int)])
    func `allow a restart less than five seconds`(_ milliseconds: Int64, _ faults: Int) {
        var restart = RollingRun.Restart(place: ManyPlace(kind: .churn, slot: 0), asked: 1_000)
        restart.step.stands[Self.lane] = .init(partition: Self.lane, from: 1_000, until: 1_000 + milliseconds)
        #expect(RollingRun.faults([restart]).count == faults)
        #expect(restart.longest == milliseconds)
        #expect(RollingRun.lines(restart).count == 5)
        // Another process of its kind stood still: that is a fault, and not its own pause.
        restart.own = [1]
        #expect(RollingRun.faults([restart]).count == faults)
        #expect(restart.longest == 0)
    }

    @Test func `know the partitions of a process by the last line about them`() {
        let lines = ["0 1 2", "3 5"].map { #"{"level":"info","message":"partitions assigned","detail":"\#($0)"}"# }
        #expect(RollingRun.assigned(in: (lines + ["no json"]).joined(separator: "\n")) == [3, 5])
        #expect(RollingRun.assigned(in: "").isEmpty)
    }

    @Test func `read the position of a topic from a note`() {
        var note: [UInt8] = [2, 1] + [UInt8](repeating: 9, count: 32)
        note += [2, 0]
        for (topic, position) in [("a.usage", UInt8(7)), ("a.notifications", UInt8(41))] {
            note += [UInt8(topic.utf8.count), 0] + Array(topic.utf8) + [position, 1, 0, 0, 0, 0, 0, 0]
        }
        #expect(FleetWatch.position(in: note, of: "a.notifications") == 297)
        #expect(FleetWatch.position(in: note, of: "a.other") == nil)
        #expect(FleetWatch.position(in: Array(note.prefix(60)), of: "a.notifications") == nil)
    }

    @Test(
        arguments: [
            (["requested", "expired"], 0), (["requested", "expired", "outcome"], 0), (["requested"], 1), ([], 1),
            (["requested", "expired", "expired"], 1), (["requested", "requested", "expired"], 1),
            (["requested", "decided", "sent"], 1),
        ] as [([String], Int)])
    func `want each request of the past once, and expired`(_ kinds: [String], _ wrong: Int) {
        let judge = ExpiredJudge(requests: ["r"])
        #expect(judge.wrong(kinds.map { ExpiredJudge.Line(id: "r", kind: $0) }).count == wrong)
    }

    @Test(
        arguments: [
            (["requested"], 0), (["requested", "expired"], 0), (["requested", "withheld", "outcome"], 0), ([], 1),
            (["requested", "requested"], 1), (["requested", "expired", "expired"], 1), (["requested", "sent"], 1),
        ] as [([String], Int)])
    func `want each request of today once, and none sent`(_ kinds: [String], _ wrong: Int) {
        let judge = ExpiredJudge(requests: [], recent: ["r"])
        #expect(judge.wrong(kinds.map { ExpiredJudge.Line(id: "r", kind: $0) }).count == wrong)
    }

    @Test func `see a request that nobody has made, and allow what Apple did without one`() {
        let judge = ExpiredJudge(requests: [])
        #expect(judge.wrong([.init(id: "r", kind: "requested")]).count == 1)
        #expect(judge.wrong([.init(id: "r", kind: "outcome")]).isEmpty)
    }

    @Test func `want every trouble of the network in a long run, and plan them first`() {
        let shape = ManyShape(name: "fleet", kinds: ManyKind.allCases, slots: 2, threads: 1)
        let networks = FleetLimits.networkTroubles
        var plan = ManyPlan(
            shape, partitions: 12, [[.kill], [.full]] + networks.map { [$0] }, first: networks)
        let round = (0..<8).map { _ in plan.next().cause }
        #expect(Set(round.prefix(6)) == Set(networks) && Set(round.suffix(2)) == [.kill, .full])
        var steps = Dictionary(uniqueKeysWithValues: networks.map { ($0, 1) })
        #expect(FleetLimits.unseen(steps, seconds: 600).isEmpty)
        steps[.mute] = nil
        #expect(FleetLimits.unseen(steps, seconds: 600) == [.mute])
        #expect(FleetLimits.unseen(steps, seconds: 180).isEmpty)
    }

    @Test(
        arguments: [
            ("tick/1", true), ("tick/2", true), ("notification/1", false), ("ticket/1", false), (nil, false),
        ] as [(String?, Bool)])
    func `know a tick by its schema`(_ schema: String?, _ expected: Bool) {
        #expect(namesTick(schema) == expected)
    }

    @Test func `miss a notification that was answered and is not there`() async throws {
        let store = MakeBelieveStore(scratch: try ScratchDirectory("store"), telling: [], program: nil)
        let line = #"{"notificationUUID":"u","sha256":"s","status":200,"expected":"accepted","verdict":"accepted"}"#
        _ = try store.scratch.write(line + "\n", to: "acknowledged.jsonl")
        try store.expectKept(in: ["u", "v"])
        #expect(try store.lost(from: ["u"]).isEmpty)
        #expect(try store.lost(from: ["v"]).map(\.uuid) == ["u"])
    }

    private static func meter(_ memory: [Int], processes: [Int32] = [], cpu: [Double] = []) -> FleetMeter {
        var meter = FleetMeter()
        for index in memory.indices {
            for name in ["churn 0", "ingest"] {
                meter.note(
                    name,
                    .init(
                        at: Double(index * 60), process: processes.isEmpty ? 1 : processes[index],
                        memory: memory[index] << 20, cpu: cpu.isEmpty ? 0 : cpu[index]))
            }
        }
        return meter
    }

    @Test func `find memory that grows, and a worker with more than its share`() {
        func faults(_ memory: [Int]) -> [String] {
            FleetLimits.faults(of: Self.meter(memory), workers: ["churn 0"], judgesGrowth: true)
        }
        // The first two minutes are the warm-up.
        #expect(faults([10, 50, 90, 90, 91, 92, 100, 115]).isEmpty)
        #expect(faults([10, 50, 90, 90, 95, 100, 110, 116]).count == 2)
        #expect(
            faults([10, 50, 117, 90, 90, 90]) == ["churn 0 had 117 MiB resident, more than its cache and 100 MiB"])
        #expect(faults([10]).count == 2, "what was not measured is not flat")
    }

    @Test func `add up the processor time of a process and of the next one`() {
        let meter = Self.meter([1, 1, 1, 1], processes: [1, 1, 2, 2], cpu: [3, 12, 2, 19])
        #expect(meter.cores { $0 == "ingest" } == Double(9 + 2 + 17) / 180)
    }
}
