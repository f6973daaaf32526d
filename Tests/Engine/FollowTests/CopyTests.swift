import Follow
import Log
import LogTestKit
import MemoryLog
import Testing

/// The contents of a sink: nothing is missing, and nothing is there twice.
@Suite struct `A followed copy` {
    // MARK: Crashes and faults

    /// While the copy is built and afterwards, with records in memory and with records written.
    @Test(arguments: 0..<9) func `has each record once after a crash, whenever that was`(steps: Int) throws {
        let rig = try Rig(partitions: 2)
        try rig.write(numbers(0..<14_000), partition: 1)
        for step in 0..<steps {
            _ = rig.follower.step()
            try rig.write(["\(14_000 + step)"], partition: 1)
            try rig.write(["\(step)"], partition: 0)
            if step % 2 == 0 { rig.time.advance(by: .seconds(1)) }
        }
        rig.disk.crash()
        let next = try Rig(memory: rig.memory, disk: rig.disk, time: rig.time, partitions: 2)
        next.settle(steps: 20)
        #expect(next.trouble == nil && next.metric("wipes_total") == 0)
        #expect(next.disk.values(0) == numbers(0..<steps))
        #expect(next.disk.values(1) == numbers(0..<14_000 + steps))
        #expect(next.disk.next(1) == Int64(14_000 + steps))
    }

    @Test(arguments: 1..<9) func `has each record once after a write that failed`(step: Int) throws {
        let rig = try Rig()
        try rig.write(numbers(0..<12_000))
        for number in 0..<10 {
            if number == step { rig.disk.writeFault = SinkFault("the disk is full") }
            try rig.write(["\(12_000 + number)"])
            rig.settle(steps: 1)
        }
        rig.settle()
        #expect(rig.logged.contains("the disk is full") && rig.trouble == nil)
        #expect(rig.disk.values(0) == numbers(0..<12_010) && rig.metric("wipes_total") == 0)
    }

    @Test func `is built anew when it is broken, wherever that shows`() throws {
        let faults: [ReferenceWritableKeyPath<Disk, SinkFault?>] = [
            \.openFault, \.beginFault, \.writeFault, \.readFault,
        ]
        for path in faults {
            let rig = try Rig()
            try rig.write(numbers(0..<3))
            rig.settle()
            rig.follower.follow(partitions: [])
            rig.disk[keyPath: path] = SinkFault("the checksum is wrong", isBroken: true)
            rig.follower.follow(partitions: [0])
            if path == \.readFault {
                rig.settle(steps: 1)
                rig.disk[keyPath: path] = SinkFault("the checksum is wrong", isBroken: true)
            }
            try rig.write(["3"])
            rig.settle()
            #expect(rig.logged.contains("the checksum is wrong"))
            #expect(rig.metric("wipes_total") == 1 && rig.trouble == nil)
            #expect(rig.disk.values(0) == numbers(0..<4))
        }
    }

    @Test func `goes on after faults that pass, and says each once`() throws {
        let broken = BrokenLog(MemoryLog(clock: .manual()))
        let rig = try Rig(memory: broken.memory, log: broken)
        try rig.write(numbers(0..<3))
        rig.settle()
        for remedy in [LogFault.Remedy.retrySameCall, .rebuild, .stop] {
            broken.fault = LogFault(remedy, .timedOut, "no broker answers")
            try rig.write(["\(rig.disk.values(0).count)"])
            #expect(rig.follower.step() == .failed && rig.follower.step() == .failed)
            broken.fault = nil
            rig.settle()
            #expect(rig.trouble == nil)
        }
        #expect(rig.disk.values(0) == numbers(0..<6))
        #expect(rig.logged.ranges(of: "the topics cannot be followed").count == 3)
        #expect(rig.logged.ranges(of: "the topics are followed again").count == 3)
        rig.disk.openFault = SinkFault("the disk does not answer")
        rig.follower.follow(partitions: [])
        rig.follower.follow(partitions: [0])
        #expect(rig.follower.step() == .failed && rig.trouble == "the disk does not answer")
        rig.settle()
        #expect(rig.trouble == nil && rig.disk.values(0) == numbers(0..<6))
    }

    // MARK: Topics that do not fit

    @Test(arguments: [(hours: 19, isNew: false), (hours: 21, isNew: true), (hours: -1, isNew: true)])
    func `of a compacted topic is built anew when it may have missed deletions`(_ hours: Int, _ isNew: Bool) throws {
        for isCompacted in [true, false] {
            let rig = try Rig([.init("rows", isCompacted: isCompacted)])
            try rig.write(["0"])
            rig.settle()
            rig.follower.close()
            rig.time.advance(by: .seconds(hours * 3600))
            try rig.write(["1"])
            rig.follower.follow(partitions: [0])
            rig.settle()
            let isWiped = isCompacted && isNew
            #expect(rig.disk.values(0) == ["0", "1"] && rig.trouble == nil)
            #expect(rig.metric("wipes_total") == (isWiped ? 1 : 0))
            #expect(rig.logged.contains("it is so old that it may have missed deletions") == isWiped)
        }
    }

    @Test func `of a compacted topic takes nothing that came while it was cut off for too long`() throws {
        let broken = BrokenLog(MemoryLog(clock: .manual()))
        let rig = try Rig([.init("rows", isCompacted: true)], memory: broken.memory, log: broken)
        try rig.write(["0"])
        rig.settle()
        broken.fault = LogFault(.retrySameCall, .timedOut, "no broker answers")
        rig.settle(steps: 2)
        rig.time.advance(by: .seconds(21 * 3600))
        try rig.write(["1"])
        broken.fault = nil
        let sink = try #require(rig.follower.sink(0))
        let before = sink.calls.count
        rig.settle()
        #expect(Array(sink.calls[before...].prefix(5)) == ["close", "wipe", "open", "begin", "write"])
        #expect(rig.disk.values(0) == ["0", "1"] && rig.trouble == nil)
    }

    @Test func `is built anew when a topic was made anew`() throws {
        let rig = try Rig([.init("rows", isCompacted: false), .init("others", isCompacted: false)])
        try rig.write(numbers(0..<3))
        try rig.write(["a"], topic: 1)
        rig.settle()
        rig.follower.close()
        let next = try Rig(rig.topics, disk: rig.disk, time: rig.time)
        try next.write(["new"])
        try next.write(["a", "b"], topic: 1)
        next.settle()
        #expect(next.logged.contains("it is ahead of rows[0], which was deleted and created again"))
        #expect(next.trouble == nil)
        #expect(next.disk.values(0) == ["new"] && next.disk.values(0, topic: 1) == ["a", "b"])
        #expect(next.metric("wipes_total") == 1)
    }

    @Test func `is built anew when a topic does not reach back to it any more`() throws {
        let broken = BrokenLog(MemoryLog(clock: .manual()))
        let rig = try Rig(memory: broken.memory, log: broken)
        try rig.write(["0"])
        rig.settle()
        try rig.write(numbers(1..<4))
        broken.beginning = NextOffset(3)
        broken.faultOnce = LogFault(.stop, .positionGone, "there is no record at 1 any more")
        rig.settle()
        #expect(rig.logged.contains("rows[0] begins after the position of the copy") && rig.trouble == nil)
        #expect(rig.disk.values(0) == ["3"] && rig.metric("wipes_total") == 1)
    }

    @Test func `is built anew when it is of other topics`() throws {
        let rig = try Rig()
        rig.disk.write(.init(values: [["x"]], places: []), 0)
        try rig.write(["0"])
        rig.settle()
        #expect(rig.logged.contains("it was written for other topics"))
        #expect(rig.disk.values(0) == ["0"] && rig.metric("wipes_total") == 1)
    }

    @Test func `is not written while its topics are not as they should be`() throws {
        let rig = try Rig([.init("rows", isCompacted: true)], partitions: 2, makesTopics: false)
        rig.settle(steps: 1)
        #expect(rig.trouble == "the topic rows is missing: run perennial topics apply")
        try rig.memory.create([NewTopic("rows", partitions: 3, isCompacted: true)], by: soon)
        rig.settle(steps: 1)
        #expect(rig.trouble?.contains("has 3 partitions and the setting partitions says 2") == true)
        let plain = try Rig(makesTopics: false)
        try plain.memory.create([NewTopic("rows", partitions: 1, isCompacted: true)], by: soon)
        plain.settle(steps: 1)
        #expect(plain.trouble == nil)
        let compacted = try Rig([.init("rows", isCompacted: true)], makesTopics: false)
        try compacted.memory.create([NewTopic("rows", partitions: 1)], by: soon)
        compacted.settle(steps: 1)
        #expect(compacted.trouble?.contains("the topic rows is not compacted") == true)
        #expect(compacted.disk.copies.isEmpty)
    }

    // MARK: Records that have to wait

    @Test func `has nothing behind a record that its sink cannot pass, until another build opens it`() throws {
        let rig = try Rig([.init("rows", isCompacted: false), .init("others", isCompacted: false)], partitions: 2)
        try rig.write(numbers(0..<2))
        rig.settle()
        let complete = try #require(rig.follower.completeAsOf(0))
        try rig.write(["later"], schema: "row/2")
        try rig.write(["behind"])
        try rig.write(["a"], topic: 1)
        try rig.write(["b"], partition: 1)
        rig.settle()
        let words = "rows[0] at 2: a record has the schema row/2, and this build reads up to 1: upgrade this test"
        #expect(rig.follower.pauses(0) == [words] && rig.follower.pauses(1).isEmpty && rig.trouble == words)
        #expect(rig.metric("paused") == 1)
        #expect(rig.disk.values(0) == numbers(0..<2) && rig.disk.next(0) == 2)
        // The other topic and the other partition are read.
        #expect(rig.disk.values(0, topic: 1) == ["a"] && rig.disk.values(1) == ["b"])
        // The partition of the waiting record does not become complete as of a later time.
        #expect(try #require(rig.follower.completeAsOf(0)) < complete + .seconds(2))
        #expect(try #require(rig.follower.completeAsOf(1)) > complete + .seconds(5))

        // Opened again, it reaches the same record.
        rig.follower.follow(partitions: [1])
        #expect(rig.trouble == nil || rig.follower.pauses(0).isEmpty)
        rig.follower.follow(partitions: [0, 1])
        rig.settle()
        #expect(rig.follower.pauses(0) == [words] && rig.disk.values(0) == numbers(0..<2))
        rig.follower.close()
        let next = try Rig(rig.topics, memory: rig.memory, disk: rig.disk, time: rig.time, partitions: 2, version: 2)
        next.settle()
        #expect(next.trouble == nil && next.disk.values(0) == ["0", "1", "later", "behind"])
    }
}
