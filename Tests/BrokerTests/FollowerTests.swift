import Follow
import Kafka
import KafkaTestKit
import Log
import Platform
import Telemetry
import Testing

/// Keeps values in memory only.
private final class MemorySink: PartitionSink {
    private(set) var values: [String] = []

    func open() throws(SinkFault) -> SinkContents {
        values = []
        return .nothing
    }
    func take(_ record: borrowing RecordView) -> String? {
        values.append(String(decoding: record.copyOfValue() ?? [], as: UTF8.self))
        return nil
    }
    func write(_ places: [KeptPlace], isLasting: Bool) throws(SinkFault) {}
    func close() throws(SinkFault) {}
    func wipe() throws(SinkFault) { values = [] }
}

/// Every call blocks; the test makes one call after the other.
private final class Desk: @unchecked Sendable {
    private let topic: String
    private let writer: any LogWriter
    private let time = FollowTime.real()
    let follower: TopicFollower<MemorySink>

    init(_ properties: ClientProperties, _ topic: String, partitions: Int32, start: FollowOptions.Start) throws {
        self.topic = topic
        let log = KafkaLog(properties)
        writer = try log.openWriter(WriterOptions(name: "writer", topics: [topic]))
        var options = FollowOptions(
            name: "follower", group: "follower", topics: [.init(topic, isCompacted: false, start: start)],
            partitions: partitions)
        // The follower does not look by itself.
        options.lookInterval = .seconds(3600)
        options.pollWait = .milliseconds(10)
        let metrics = Metrics()
        let counts = FollowCounts(
            remaining: metrics.gauge("perennial_test_remaining", help: "Read."),
            paused: metrics.gauge("perennial_test_paused", help: "Waiting."),
            wipes: metrics.counter("perennial_test_wipes_total", help: "Wiped."))
        follower = TopicFollower(
            options, log: log, time: time, readiness: Readiness(silenceLimit: .seconds(60)), counts: counts,
            logger: Logger(level: .error)
        ) { _ in MemorySink() }
    }

    func write(_ values: [String], to partition: Int32, timestamp: Int64) throws {
        let batch = OutputBatch()
        for value in values {
            batch.append(topic: 0, partition: partition, timestamp: timestamp, key: nil, value: Array(value.utf8))
        }
        _ = try writer.append(batch, by: Deadline(after: patience))
    }

    /// What the follower has, once it has read everything that was written before this call.
    func read() throws -> [Int32: [String]] {
        let asked = time.elapsed()
        follower.lookNow()
        let deadline = Deadline(after: patience)
        while !follower.followed.allSatisfy({ follower.completeAsOf($0).map { $0 >= asked } ?? false }) {
            if deadline.hasPassed { throw NotInTime("the end", limit: patience, detail: topic) }
            _ = follower.step()
        }
        return Dictionary(uniqueKeysWithValues: follower.followed.map { ($0, follower.sink($0)?.values ?? []) })
    }

    func close() {
        follower.close()
        writer.close(by: Deadline(after: patience))
    }
}

extension RealBroker {
    @Suite(.serialized) struct `A follower` {
        @Test func `has what was written before it was told to look, of the partitions that it follows just then`()
            async throws
        {
            let broker = try await Broker.shared()
            let topic = try await broker.makeTopic("follow", partitions: 3)
            let now = WallClock.milliseconds()
            try await blocking {
                let desk = try Desk(broker.properties, topic, partitions: 3, start: .time({ now }))
                defer { desk.close() }
                for partition: Int32 in 0..<3 {
                    try desk.write(["old"], to: partition, timestamp: now - 1000)
                    try desk.write(["a", "b"], to: partition, timestamp: now)
                }
                desk.follower.follow(partitions: [0])
                #expect(try desk.read() == [0: ["a", "b"]])
                try desk.write(["c"], to: 0, timestamp: now)
                #expect(try desk.read() == [0: ["a", "b", "c"]])
                // With the reader that is already open.
                desk.follower.follow(partitions: [0, 2])
                try desk.write(["d"], to: 0, timestamp: now)
                #expect(try desk.read() == [0: ["a", "b", "c", "d"], 2: ["a", "b"]])
                desk.follower.follow(partitions: [1])
                for partition: Int32 in 0..<3 { try desk.write(["e"], to: partition, timestamp: now) }
                #expect(try desk.read() == [1: ["a", "b", "e"]])
                desk.follower.follow(partitions: [])
                #expect(desk.follower.step() == .idle)
                desk.follower.follow(partitions: [0, 1])
                #expect(try desk.read() == [0: ["a", "b", "c", "d", "e"], 1: ["a", "b", "e"]])
            }
        }
    }
}
