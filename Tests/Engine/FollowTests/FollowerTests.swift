import Follow
import Log
import LogTestKit
import MemoryLog
import Platform
import Testing

/// Which topics are read, which partitions, and when all records have come.
@Suite struct `A follower of topics` {
    @Test func `gives each partition's records to its sink in order, with the places behind them`() throws {
        let rig = try Rig(
            [.init("rows", isCompacted: false), .init("states", isCompacted: true)], partitions: 2)
        try rig.write(numbers(0..<5), partition: 0, timestamp: 70)
        try rig.write(["last"], partition: 0, timestamp: 60)
        try rig.write(numbers(5..<8), partition: 1)
        try rig.write(["a", "b"], topic: 1, partition: 1)
        rig.settle()
        #expect(rig.disk.values(0) == numbers(0..<5) + ["last"] && rig.disk.values(1) == numbers(5..<8))
        #expect(rig.disk.values(0, topic: 1).isEmpty && rig.disk.values(1, topic: 1) == ["a", "b"])
        #expect(rig.disk.next(0) == 6 && rig.disk.next(1) == 3 && rig.disk.next(1, topic: 1) == 2)
        #expect(rig.disk.copies[0]?.places[0].clock == 70)
        #expect(rig.trouble == nil && rig.logged.contains("caught up"))
        #expect(rig.metric("remaining") == 0)
    }

    @Test func `reads beyond what takes offsets without being a record`() throws {
        let rig = try Rig()
        let session = try rig.memory.openSession(
            SessionOptions(group: "worker", identity: "worker.0", inputs: [], outputs: ["rows"]), by: soon)
        let batch = OutputBatch()
        batch.append(topic: 0, partition: 0, timestamp: 0, key: [1], value: [1], headers: [])
        try session.append(batch)
        try session.abort()
        rig.settle()
        #expect(rig.disk.values(0).isEmpty && rig.trouble == nil)
        #expect(rig.follower.sink(0)?.places[0].next == NextOffset(2))
        session.close(by: soon)
    }

    // MARK: Followed partitions

    @Test func `follows what it is told to, whenever that changes`() throws {
        let rig = try Rig(partitions: 3, follows: [0])
        for partition: Int32 in 0..<3 { try rig.write(numbers(0..<3), partition: partition) }
        rig.settle()
        #expect(rig.follower.followed == [0] && rig.disk.values(0) == numbers(0..<3))
        #expect(rig.disk.copies[1] == nil && rig.disk.copies[2] == nil)

        rig.follower.follow(partitions: [0, 2])
        rig.settle()
        #expect(rig.disk.values(2) == numbers(0..<3) && rig.disk.copies[1] == nil)
        // A partition that stays is not opened again.
        #expect(rig.sinksMade == [0, 2])
        #expect(rig.follower.sink(0)?.calls.filter { $0 == "open" }.count == 1)

        rig.follower.follow(partitions: [1])
        try rig.write(["more"], partition: 0)
        rig.settle()
        #expect(rig.disk.values(1) == numbers(0..<3) && rig.disk.values(0) == numbers(0..<3))
        #expect(rig.follower.sink(0) == nil && rig.follower.completeAsOf(0) == nil)

        // A partition that comes back is opened again, and continues where it was.
        rig.follower.follow(partitions: [0, 1])
        #expect(rig.follower.completeAsOf(0) == nil)
        rig.settle()
        #expect(rig.sinksMade == [0, 2, 1, 0] && rig.disk.values(0) == numbers(0..<3) + ["more"])
        #expect(rig.trouble == nil && rig.follower.completeAsOf(0) != nil)
    }

    @Test func `follows nothing when it is told so, and is in no trouble then`() throws {
        let rig = try Rig(partitions: 2)
        try rig.write(numbers(0..<3))
        #expect(rig.follower.step() == .done)
        rig.follower.follow(partitions: [])
        try rig.write(["more"])
        #expect(rig.follower.step() == .idle && rig.follower.step() == .idle)
        rig.time.advance(by: .seconds(3600))
        #expect(rig.trouble == nil && rig.disk.values(0) == numbers(0..<3))
        rig.follower.follow(partitions: [0, 1])
        #expect(rig.follower.step() == .done && rig.disk.values(0) == numbers(0..<3) + ["more"])
    }

    /// Records of a full poll are kept in memory while a copy is built.
    @Test func `writes what is held of a partition that leaves`() throws {
        let rig = try Rig()
        try rig.write(numbers(0..<5000))
        #expect(rig.follower.step() == .done && rig.disk.copies[0] == nil)
        let sink = try #require(rig.follower.sink(0))
        rig.follower.follow(partitions: [])
        #expect(sink.calls == ["open", "begin", "write", "close"])
        #expect(rig.disk.values(0) == numbers(0..<2000) && rig.disk.next(0) == 2000)
        rig.follower.follow(partitions: [0])
        rig.settle()
        #expect(rig.disk.values(0) == numbers(0..<5000))
    }

    @Test func `begins where it is told to where nothing is kept`() throws {
        let rig = try Rig([
            .init("rows", isCompacted: false, start: .time({ 200 })), .init("others", isCompacted: false),
        ])
        for (value, timestamp) in [("a", 100), ("b", 200), ("c", 150), ("d", 300)] {
            try rig.write([value], timestamp: Int64(timestamp))
            try rig.write([value], topic: 1, timestamp: Int64(timestamp))
        }
        rig.settle()
        #expect(rig.disk.values(0) == ["b", "c", "d"] && rig.disk.values(0, topic: 1) == ["a", "b", "c", "d"])
        #expect(rig.trouble == nil && rig.follower.completeAsOf(0) != nil)
        // If a position is stored, reading continues there.
        rig.follower.follow(partitions: [])
        try rig.write(["e"], timestamp: 120)
        rig.follower.follow(partitions: [0])
        rig.settle()
        #expect(rig.disk.values(0) == ["b", "c", "d", "e"])
    }

    @Test func `is complete at once where nothing is as young as its start`() throws {
        let rig = try Rig([.init("rows", isCompacted: false, start: .time({ 200 }))])
        try rig.write(["a"], timestamp: 100)
        #expect(rig.follower.step() == .done && rig.follower.completeAsOf(0) == .zero && rig.trouble == nil)
        try rig.write(["b"], timestamp: 100)
        rig.settle()
        #expect(rig.disk.values(0) == ["b"])
    }

    /// Kafka is asked twice: for a record that is recent enough, and for the end where there is none.
    @Test func `misses nothing that is committed while its start is asked for`() throws {
        let broken = BrokenLog(MemoryLog(clock: .manual()))
        let rig = try Rig(
            [.init("rows", isCompacted: false, start: .time({ 200 }))], memory: broken.memory, log: broken)
        try rig.write(["old"], timestamp: 100)
        let memory = broken.memory
        broken.atOffsets = {
            do {
                let batch = OutputBatch()
                batch.append(
                    topic: 0, partition: 0, timestamp: 300, key: [1], value: Array("young".utf8),
                    headers: [RecordHeader("schema", "row/1")])
                let writer = try memory.openWriter(WriterOptions(name: "test", topics: ["rows"]))
                _ = try writer.append(batch, by: Deadline(after: .seconds(30)))
            } catch {
                Issue.record(error)
            }
        }
        rig.settle()
        #expect(rig.disk.values(0) == ["young"])
    }

    // MARK: Completeness

    @Test func `is complete as of the question for the ends, not of the answer`() throws {
        let broken = BrokenLog(MemoryLog(clock: .manual()))
        let rig = try Rig(memory: broken.memory, log: broken)
        try rig.write(["before"])
        rig.time.advance(by: .seconds(100))
        let time = rig.time
        broken.atEnds = { time.advance(by: .milliseconds(10)) }
        #expect(rig.follower.step() == .done && rig.disk.values(0) == ["before"])
        // The first look in the step has asked when the first answer was there.
        #expect(rig.follower.completeAsOf(0) == .milliseconds(100_010) && time.elapsed == .milliseconds(100_020))
        // The next look is not due yet: the answer from the opening of the partition counts.
        rig.follower.follow(partitions: [])
        rig.follower.follow(partitions: [0])
        #expect(rig.follower.step() == .done)
        #expect(rig.follower.completeAsOf(0) == .milliseconds(100_020) && time.elapsed == .milliseconds(100_030))
    }

    @Test func `is complete of a partition when all its topics are, and of none before it is written`() throws {
        let rig = try Rig([.init("rows", isCompacted: false), .init("others", isCompacted: false)], partitions: 2)
        try rig.write(numbers(0..<5000))
        try rig.write(["a"], topic: 1)
        #expect(rig.follower.completeAsOf(0) == nil && rig.follower.completeAsOf(7) == nil)
        _ = rig.follower.step()
        #expect(rig.follower.completeAsOf(0) == nil && rig.follower.completeAsOf(1) == .zero)
        #expect(rig.trouble?.hasPrefix("not caught up yet: ") == true)
        rig.disk.writeFault = SinkFault("the disk is full")
        for _ in 0..<3 { _ = rig.follower.step() }
        #expect(rig.follower.completeAsOf(0) == nil)
        rig.settle()
        #expect(rig.follower.completeAsOf(0) != nil && rig.trouble == nil)
        #expect(rig.disk.values(0) == numbers(0..<5000))
        rig.follower.follow(partitions: [1])
        #expect(rig.follower.completeAsOf(0) == nil && rig.follower.completeAsOf(1) != nil)
    }

    @Test func `asks for the ends at once when it is told to`() throws {
        let rig = try Rig()
        #expect(rig.follower.step() == .done)
        rig.time.advance(by: .milliseconds(10))
        try rig.write(["a"])
        _ = rig.follower.step()
        #expect(rig.follower.completeAsOf(0) == .zero)
        rig.follower.lookNow()
        let looks = rig.follower.looks
        _ = rig.follower.step()
        #expect(rig.follower.completeAsOf(0) == .milliseconds(10) && rig.follower.looks == looks + 1)
        _ = rig.follower.step()
        #expect(rig.follower.looks == looks + 1)
    }

    /// An end that is not reached yet stays the goal, and the later one is not forgotten.
    @Test func `needs to be told once, also while it is behind`() throws {
        let rig = try Rig()
        try rig.write(numbers(0..<5000))
        _ = rig.follower.step()
        #expect(rig.follower.completeAsOf(0) == nil)
        rig.time.advance(by: .milliseconds(10))
        try rig.write(numbers(5000..<9000))
        rig.follower.lookNow()
        for _ in 0..<3 where rig.follower.completeAsOf(0) == nil { _ = rig.follower.step() }
        #expect(rig.follower.completeAsOf(0) == .zero)
        for _ in 0..<3 where rig.disk.next(0) != 9000 { _ = rig.follower.step() }
        #expect(rig.follower.completeAsOf(0) == .milliseconds(10))
    }

    @Test func `asks again when it was not answered`() throws {
        let broken = BrokenLog(MemoryLog(clock: .manual()))
        let rig = try Rig(memory: broken.memory, log: broken)
        _ = rig.follower.step()
        rig.time.advance(by: .milliseconds(10))
        rig.follower.lookNow()
        broken.fault = LogFault(.retrySameCall, .timedOut, "no broker answers")
        #expect(rig.follower.step() == .failed && rig.follower.completeAsOf(0) == .zero)
        broken.fault = nil
        rig.time.advance(by: .milliseconds(10))
        #expect(rig.follower.step() == .done && rig.follower.completeAsOf(0) == .milliseconds(20))
    }
}
