import KafkaTestKit
import Log
import MemoryLog
import Platform
import TestTraits
import Testing

@Suite(.ownThreads) struct `Two sessions on two threads` {
    /// Copies input to output, one cycle per poll, until it is told to stop.
    private static func copy(_ log: MemoryLog, _ identity: String, until done: Latch) throws {
        let soon = Deadline(after: .seconds(60))
        let session = try log.openSession(
            SessionOptions(group: "group", identity: identity, inputs: ["input"], outputs: ["output"]), by: soon)
        defer { session.close(by: soon) }
        let batch = RecordBatch()
        let outputs = OutputBatch()
        while !done.isOpen {
            switch try session.poll(into: batch, limit: 37, wait: .milliseconds(20)) {
            case .nothing: continue
            case .assigned(let partitions):
                let committed = try session.committed(partitions, by: soon)
                var starts: [TopicPartition: NextOffset] = [:]
                for partition in partitions { starts[partition] = committed[partition] ?? NextOffset(0) }
                try session.take(starts, paused: [])
            case .revoked, .lost: try session.giveBack()
            case .positionGone(let partition): Issue.record("\(partition) has lost its position")
            case .records:
                var positions: [TopicPartition: NextOffset] = [:]
                for index in 0..<batch.count {
                    let record = batch[index]
                    outputs.append(
                        topic: 0, partition: record.partition, timestamp: record.timestamp,
                        key: record.copyOfKey(), value: record.copyOfValue())
                    let partition = TopicPartition("input", record.partition)
                    positions[partition] = session.position(of: partition)
                }
                try session.append(outputs)
                try session.commit(positions)
                outputs.removeAll()
            }
        }
    }

    @Test func `copy each record once and in order, under the real clock`() async throws {
        let partitions: Int32 = 4
        let records = 5_000
        let log = MemoryLog()
        let soon = Deadline(after: .seconds(60))
        try log.create([NewTopic("input", partitions: 4), NewTopic("output", partitions: 4)], by: soon)
        let done = Latch()
        let copiers = ["a", "b"].map { name in
            WorkerThread.start(name) { try Self.copy(log, name, until: done) }
        }
        let writer = try log.openWriter(WriterOptions(name: "writer", topics: ["input"]))
        for number in 0..<records {
            let outputs = OutputBatch()
            for partition in 0..<partitions {
                outputs.append(
                    topic: 0, partition: partition, timestamp: 1, key: nil, value: Array("\(number)".utf8))
            }
            _ = try writer.append(outputs, by: soon)
        }
        let all = (0..<partitions).map { TopicPartition("output", $0) }
        let reader = try log.openReader(ReaderOptions(name: "reader", group: "reader", topics: ["output"]))
        var starts: [TopicPartition: NextOffset] = [:]
        for partition in all { starts[partition] = NextOffset(0) }
        try reader.read(from: starts)
        var seen = [[String]](repeating: [], count: Int(partitions))
        let batch = RecordBatch()
        while !soon.hasPassed, seen.contains(where: { $0.count < records }) {
            try reader.poll(into: batch, limit: 500, wait: .milliseconds(50))
            for index in 0..<batch.count {
                let record = batch[index]
                seen[Int(record.partition)].append(String(decoding: record.copyOfValue() ?? [], as: UTF8.self))
            }
        }
        done.open()
        for copier in copiers { try await copier.join() }
        let wanted = (0..<records).map { "\($0)" }
        for partition in seen { #expect(partition == wanted) }
    }

    @Test func `serve a reader that has begun to wait before anything was there`() async throws {
        let log = MemoryLog()
        let soon = Deadline(after: .seconds(60))
        try log.create([NewTopic("input", partitions: 1)], by: soon)
        let started = Latch()
        let reading = WorkerThread.start("reader") {
            let reader = try log.openReader(ReaderOptions(name: "reader", group: "reader", topics: ["input"]))
            try reader.read(from: [TopicPartition("input", 0): NextOffset(0)])
            let batch = RecordBatch()
            started.open()
            try reader.poll(into: batch, limit: 1, wait: .seconds(60))
            #expect(batch.count == 1)
        }
        started.wait(until: soon)
        let writer = try log.openWriter(WriterOptions(name: "writer", topics: ["input"]))
        _ = try writer.append(Play.outputs(["a"]), by: soon)
        try await reading.join()
        #expect(!soon.hasPassed)
    }

    @Test func `let time-outs happen while everybody waits`() throws {
        let log = MemoryLog()
        let soon = Deadline(after: .seconds(60))
        try log.create([NewTopic("input", partitions: 1), NewTopic("output", partitions: 1)], by: soon)
        var options = SessionOptions(group: "g", identity: "dead", inputs: ["input"], outputs: ["output"])
        options.transactionTimeout = .milliseconds(200)
        let session = try log.openSession(options, by: soon)
        try session.append(Play.outputs(["never"]))
        _ = try log.openWriter(WriterOptions(name: "w", topics: ["output"])).append(
            Play.outputs(["behind"]), by: soon)
        log.kill("dead")
        let reader = try log.openReader(ReaderOptions(name: "reader", group: "reader", topics: ["output"]))
        try reader.read(from: [TopicPartition("output", 0): NextOffset(0)])
        let batch = RecordBatch()
        try reader.poll(into: batch, limit: 10, wait: .seconds(60))
        #expect(batch.count == 1)
        #expect(!soon.hasPassed)
    }
}
