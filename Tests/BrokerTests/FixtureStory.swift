// What the workers of a fixture read, and how any build of the program makes a fixture.

import Foundation
import Glibc
import JSON
import Kafka
import KafkaTestKit
import Log
import MakeBelieve
import Platform
import Simulation
import Testing

/// Lives of a few subscribers, in steps: the first step is that of the fixture, the others continue with the same subscribers.
struct FixtureStory {
    static let seed: UInt64 = 21
    static let subscribers = 20
    /// Days at which a step ends.
    private static let cuts: [Int64] = [80, 110, 135]

    let steps: [[StateFixture.Record]]

    init(partitions: Int) throws {
        let store = try StoreLog(
            seed: Self.seed, subscribers: Self.subscribers, arrival: 60 * StoreLog.day, after: 100 * StoreLog.day,
            refundsPerMille: 300)
        var told = try store.punctual.map { arrival in
            let record = try store.record(of: arrival)
            return Self.notification(record.key, record.value, record.timestamp, partitions)
        }
        for tick in stride(from: StoreLog.start, through: store.end, by: Int(StoreLog.day)) {
            for partition in 0..<Int32(partitions) {
                told.append(
                    StateFixture.Record(
                        topic: "notifications", partition: partition, time: tick, key: nil,
                        value: FixtureBytes(Array(#"{"v":1,"tick":\#(tick)}"#.utf8)), headers: Self.headers("tick")))
            }
        }
        told += Self.usage(store, partitions)
        var steps: [[StateFixture.Record]] = []
        for record in told.enumerated().sorted(by: { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }) {
            let step = Self.cuts.count { StoreLog.start + $0 * StoreLog.day < record.element.time }
            while steps.count <= step { steps.append([]) }
            steps[step].append(record.element)
        }
        // It waits for usage from the backend, which is the next record.
        let cut = StoreLog.start + Self.cuts[0] * StoreLog.day
        steps[0].append(try Self.request(at: cut, partitions))
        steps.insert([Self.usage(Self.asked, at: cut + StoreLog.minute, partitions, isLost: false)], at: 1)
        self.steps = steps
    }

    private static func headers(_ type: String) -> [StateFixture.Header] {
        [("type", type), ("schema", "\(type)/1")].map { .init(name: $0, value: FixtureBytes(Array($1.utf8))) }
    }

    private static func notification(
        _ key: [UInt8], _ value: [UInt8], _ time: Int64, _ partitions: Int
    ) -> StateFixture.Record {
        StateFixture.Record(
            topic: "notifications", partition: Partitioner.partition(of: key, count: Int32(partitions)), time: time,
            key: FixtureBytes(key), value: FixtureBytes(value), headers: headers("notification"))
    }

    // MARK: Refund requests

    /// The purchase whose request is open when the workers of the fixture stop.
    static let asked = "1000"

    private static func request(at time: Int64, _ partitions: Int) throws -> StateFixture.Record {
        let transaction = bought("7", from: time - 3 * day, to: time + 27 * day, signed: time)
        let value =
            "{\"v\":1,\"notificationUUID\":\"open\",\"notificationType\":\"CONSUMPTION_REQUEST\",\"subtype\":null,"
            + "\"signedDate\":\(time),\"consumptionRequestReason\":\"OTHER\",\"transaction\":\(transaction),"
            + "\"renewalInfo\":null}"
        return notification(Array(asked.utf8), Array(value.utf8), time, partitions)
    }

    private static func usage(
        _ id: String, at time: Int64, _ partitions: Int, isLost: Bool
    ) -> StateFixture.Record {
        let value =
            "{\"v\":1,\"originalTransactionId\":\"\(id)\",\"consented\":true,\"deliveryStatus\":\"DELIVERED\"}"
        return row(id, Array(value.utf8), time, partitions, isLost: isLost)
    }

    /// - Parameter isLost: whether the row is in the wrong partition.
    private static func row(
        _ id: String, _ value: [UInt8], _ time: Int64, _ partitions: Int, isLost: Bool
    ) -> StateFixture.Record {
        let home = Partitioner.partition(of: Array(id.utf8), count: Int32(partitions))
        return StateFixture.Record(
            topic: "usage", partition: isLost ? (home + 1) % Int32(partitions) : home, time: time,
            key: FixtureBytes(Array(id.utf8)), value: FixtureBytes(value))
    }

    /// Rows that change no decision, because none of them gives consent. So it does not matter when they are read.
    private static func usage(_ store: StoreLog, _ partitions: Int) -> [StateFixture.Record] {
        (0..<subscribers).flatMap { store.simulation.usage(of: $0) }.filter { $0.consented == nil }.enumerated().map {
            row($1.originalTransactionId, $1.json, $1.at, partitions, isLost: $0 % 7 == 3)
        }
    }
}

extension ReplayScene {
    /// Writes the next step of a story.
    func tell(_ records: [StateFixture.Record]) async throws {
        let installation = installation
        try await blocking {
            var failure: KafkaCode?
            let producer = try Producer(.init(clientID: "feeder", properties: installation.broker.properties)) {
                failure = $0.failure ?? failure
            }
            defer { producer.close(by: Deadline(after: patience)) }
            for record in records {
                let (key, value) = (record.key?.bytes, record.value?.bytes)
                try producer.send(
                    to: try producer.topic(installation.topic(record.topic)), partition: record.partition,
                    key: key?.span, value: value?.span, headers: record.recordHeaders, timestamp: record.time)
            }
            try producer.flush(by: Deadline(after: patience))
            if let failure { throw KafkaFault(.stopProcess, failure, operation: "tell a story") }
        }
    }
}

/// Set to the path of another build of `perennial`: then its workers make a fixture, and nothing is tested.
let fixtureMaker = getenv("PERENNIAL_FIXTURE_OF").map { String(cString: $0) }

extension RealBroker {
    @Suite(.serialized, .enabled(if: fixtureMaker != nil, "PERENNIAL_FIXTURE_OF is not the path of a program"))
    struct `A fixture` {
        private static let partitions = 2

        @Test func `is made of what the workers of a build leave behind`() async throws {
            let program = try #require(fixtureMaker)
            let name = try #require(
                getenv("PERENNIAL_FIXTURE").map { String(cString: $0) }, "PERENNIAL_FIXTURE: its name")
            let version = try await run(program, ["version"], environment: .only([:]), workingDirectory: "/")
            let build = version.standardOutput.split(separator: "\n").first.map(String.init) ?? "unknown"
            let installation = Installation(
                broker: try await Broker.shared(), prefix: StateFixture.makePrefix(), partitions: Self.partitions)
            try await installation.makeTopics()
            let scene = try ReplayScene.over(installation)
            let steps = try FixtureStory(partitions: Self.partitions).steps
            try await scene.tell(steps[0])
            let workers = try ["entitlements", "churn", "consumption"].map { worker in
                try scene.startLive(worker, program: program)
            }
            for (worker, process) in zip(["entitlements", "churn", "consumption"], workers) {
                do {
                    try await scene.waitUntilDealtWith(by: scene.group(worker))
                } catch {
                    Issue.record("\(worker): \(process.process.lastLines(20))")
                    throw error
                }
            }
            // Rows of usage have no clock from which one could see when they are processed.
            try await Task.sleep(for: .seconds(5))
            for worker in workers { try await worker.stop() }
            var fixture = try await StateFixture.taken(from: installation, build: build)
            fixture.later = Array(steps.dropFirst())
            try await fixture.write(name)
            let read = try await StateFixture.read(name)
            #expect(read.records == fixture.records && read.later == fixture.later)
            print("fixture: \(name) of \(build): \(fixture.records.count) records")
        }
    }
}
