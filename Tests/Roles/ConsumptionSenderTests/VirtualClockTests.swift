import Consumption
import ConsumptionWorker
import Contract
import JSON
import Log
import LogTestKit
import MemoryLog
import Platform
import Runtime
import Telemetry
import Testing
import WorkerTestKit

@testable import ConsumptionSender

/// A worker and its sender, on one clock that the test moves.
private final class Duo {
    static let app = "com.example.app"
    let simulation: WorkerSimulation
    let bench: SenderBench
    let metrics = Metrics()
    private let names = SenderBench.names
    private let partitions: Int32

    init(partitions: Int32, rate: Int) throws {
        self.partitions = partitions
        let app = App(bundleId: Self.app, appAppleId: nil, entitlements: [], periods: [])
        let rules = ConsumptionRules(apps: [app], policy: nil, wait: 3_600_000)
        let processor = ConsumptionProcessor(
            names, rules: rules, partitions: partitions, app: "perennial/test",
            metrics: ConsumptionMetrics(metrics, policy: nil))
        simulation = try WorkerSimulation(processor, processes: 1, startingAt: SenderBench.start)
        simulation.showsOwnership = true
        simulation.sessionTimeout = .seconds(30)
        simulation.cacheBytes = 64 << 20
        simulation.bytesPerAppend = 1 << 20
        simulation.start(simulation.processes[0])
        let process = simulation.processes[0]
        bench = try SenderBench(
            simulation.clock, simulation.log, partitions: partitions, rate: rate,
            view: WorkerView(ownership: try #require(process.ownership), positions: process.positions))
    }

    /// A request of Apple's, and usage that answers it at once.
    func request(_ number: Int, deadline: Int64, consents: Bool = true) throws {
        let id = "\(100_000 + number)"
        let key = Array(id.utf8)
        let partition = Partitioner.partition(of: key.span, count: partitions)
        try consent(id, consents, partition, key)
        var json = JSONWriter(capacity: 400)
        json.object { json in
            json.member("v", 1)
            json.member("notificationType", "CONSUMPTION_REQUEST")
            json.member("notificationUUID", id)
            json.member("signedDate", deadline - ConsumptionRules.timeToAnswer)
            json.name("transaction")
            json.object { json in
                json.member("transactionId", "t-\(id)")
                json.member("originalTransactionId", id)
                json.member("bundleId", Self.app)
                json.member("type", "Auto-Renewable Subscription")
                json.member("inAppOwnershipType", "PURCHASED")
                json.member("purchaseDate", deadline - 2 * ConsumptionRules.timeToAnswer)
            }
        }
        try simulation.feed(
            input: 0, partition: partition, key: key, value: json.bytes, headers: Self.headers("notification"))
    }

    func consent(
        _ id: String, _ isGiven: Bool, _ partition: Int32, _ key: [UInt8], preference: String? = nil
    ) throws {
        var json = JSONWriter(capacity: 200)
        json.object { json in
            json.member("v", 1)
            json.member("originalTransactionId", id)
            json.member("consented", isGiven)
            json.member("consentedAt", simulation.clock.now)
            json.member("deliveryStatus", "DELIVERED")
            json.member("refundPreference", preference)
        }
        try simulation.feed(
            input: 1, partition: partition, key: key, value: json.bytes, headers: Self.headers("usage"))
    }

    private static func headers(_ type: String) -> [RecordHeader] {
        [RecordHeader("schema", "\(type)/1")]
    }

    /// One step each of the worker, its restorer and the sender, for this many milliseconds.
    func run(for milliseconds: Int64, tick: Int64 = 20, ticking: Bool = false) throws {
        let end = simulation.clock.now + milliseconds
        var nextTick = simulation.clock.now
        while simulation.clock.now < end {
            if ticking, simulation.clock.now >= nextTick {
                try simulation.tick()
                nextTick += 10_000
            }
            simulation.step(simulation.processes[0])
            bench.step()
            simulation.clock.advance(by: .milliseconds(tick))
        }
    }

    func count(_ kind: String) -> Int {
        let series = #"perennial_consumption_records_total{kind="\#(kind)"} "#
        let lines = String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n")
        return lines.first { $0.hasPrefix(series) }.flatMap { Int($0.dropFirst(series.count)) } ?? -1
    }
}

@Suite(.serialized) struct `A worker and its sender` {
    @Test func `send 20,000 requests near their deadlines earliest first, and those that cannot make it expire`() throws
    {
        let count = 20_000
        let duo = try Duo(partitions: 4, rate: 50)
        var dice = SplitMix64(seed: 9)
        // Deadlines within five minutes: the rate of 50 a second is enough for at most three quarters of them.
        let base = SenderBench.start + 60_000
        let deadlines = (0..<count).map { base + Int64($0) * 15 }
        for number in (0..<count).shuffled(using: &dice) { try duo.request(number, deadline: deadlines[number]) }
        try duo.run(for: 480_000, tick: 40, ticking: true)

        let calls = duo.bench.carrier.calls
        let numbers = calls.map { Int($0.dispatch.transactionId.dropFirst(2))! - 100_000 }
        #expect(Set(numbers).count == numbers.count)
        // A look covers one partition, so only attempts of different partitions may be out of order, by as long as a look takes.
        for (index, number) in numbers.enumerated() {
            let earlier = numbers[..<index].suffix(500).max() ?? 0
            #expect(earlier - number < 200, "\(number) behind \(earlier)")
        }
        #expect(zip(calls, numbers).allSatisfy { $0.at < deadlines[$1] - 15_000 })
        let times = calls.map(\.at)
        for (index, first) in times.enumerated() where index + 50 < times.count {
            #expect(times[index + 50] >= first + 1_000)
        }
        let sent = duo.count("sent")
        #expect(sent == calls.count)
        #expect(sent > 10_000)
        #expect(duo.count("decided") == count)
        #expect(duo.count("expired") == count - sent)
        #expect(duo.count("expired") > 1_000)
        #expect(duo.bench.sender.trouble == nil)
    }

    @Test func `send nothing once consent is withdrawn, though the worker has not read it yet`() throws {
        let duo = try Duo(partitions: 1, rate: 50)
        duo.bench.carrier.answer(status: 500)
        try duo.request(1, deadline: SenderBench.start + 3_600_000)
        try duo.run(for: 500)
        #expect(duo.bench.carrier.calls.count == 1)
        // The worker stands still; the sender continues.
        try duo.consent("100001", false, 0, Array("100001".utf8))
        for _ in 0..<200 {
            duo.bench.step()
            duo.simulation.clock.advance(by: .milliseconds(20))
        }
        #expect(duo.bench.carrier.calls.count == 1)
        try duo.run(for: 20_000)
        #expect(duo.bench.carrier.calls.count == 1)
        #expect(duo.count("withheld") == 1)
        duo.bench.carrier.answer(status: 202)
        // Usage changes meanwhile: the decision stays.
        try duo.consent("100001", true, 0, Array("100001".utf8), preference: "DECLINE")
        try duo.run(for: 30_000)
        #expect(duo.bench.carrier.calls.count == 2)
        #expect(Set(duo.bench.carrier.bodies).count == 1)
        #expect(duo.count("sent") == 1)
    }

    @Test func `decide and send nothing behind the deadline, whatever comes`() throws {
        let duo = try Duo(partitions: 1, rate: 50)
        let deadline = SenderBench.start + 120_000
        try duo.request(1, deadline: deadline, consents: false)
        try duo.run(for: 500)
        #expect(duo.count("withheld") == 1)
        try duo.run(for: 140_000, ticking: true)
        try duo.consent("100001", true, 0, Array("100001".utf8))
        try duo.run(for: 20_000, ticking: true)
        #expect(duo.count("decided") == 0)
        #expect(duo.count("withheld") == 1)
        #expect(duo.bench.carrier.calls.isEmpty)
    }

    @Test func `go on after the process was stopped, with a lease and a look of after`() throws {
        let duo = try Duo(partitions: 1, rate: 50)
        try duo.run(for: 500)
        duo.bench.carrier.hold()
        try duo.request(1, deadline: SenderBench.start + 3_600_000)
        try duo.run(for: 500)
        #expect(duo.bench.carrier.heldCount == 1)
        // SIGSTOP for longer than the lease; then the sender's threads continue before the worker's.
        duo.simulation.clock.advance(by: .seconds(25))
        duo.bench.carrier.connect()
        for _ in 0..<10 { duo.bench.step() }
        #expect(duo.bench.carrier.calls.isEmpty)
        duo.bench.carrier.answer(status: 202)
        try duo.run(for: 5_000)
        #expect(duo.bench.carrier.calls.count == 1)
        #expect(duo.count("sent") == 1)
    }
}
