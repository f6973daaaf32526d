import Log
import Store
import Testing

@testable import Runtime

@Suite struct `A settled key` {
    @Test func `is told once a commit however often it has changed, behind the records' outputs`() throws {
        let bench = try TaskBench()
        _ = try bench.handle("put =a 1;tell x", at: 100)
        _ = try bench.handle("put =a 2;put =b 1;put other 1", at: 100)
        _ = try bench.handle("put =a 3;tell y", at: 100)
        #expect(bench.pending.map(\.value) == ["x @100", "y @100"])
        try bench.commit()
        #expect(
            bench.committed.map(\.topic) == [0, 0, 1, 1, 2, 2, 2, 2])
        #expect(bench.cells == ["=a 3", "=b 1"])
        // Only a key that changes again is settled again.
        try bench.run("put =b 2;put other 2", at: 100)
        try bench.run("tell z", at: 100)
        #expect(bench.cells == ["=a 3", "=b 1", "=b 2"])
    }

    @Test func `comes in the order of the keys' bytes, whatever changed first`() throws {
        let bench = try TaskBench()
        try bench.run("put =b 1;put =ab 1;put =\u{e9} 1;put = 0;put =a 1;put =aa 1", at: 100)
        #expect(bench.cells == ["= 0", "=a 1", "=aa 1", "=ab 1", "=b 1", "=\u{e9} 1"])
    }

    @Test func `is told with the id, the source and the time that its origin has`() throws {
        let bench = try TaskBench()
        try bench.run("tell x", at: 50)
        try bench.run("put =a 1;tell y", at: 100)
        let cell = try #require(bench.committed.first { $0.topic == Script.cells })
        #expect(
            cell.headers.map { "\($0.name)=\(String(decoding: $0.value ?? [], as: UTF8.self))" } == [
                "id=cell =a", "schema=cell/1", "app=script/1", "source=events:0:71",
            ])
        #expect(cell.timestamp == 99 && cell.partition == 0)
    }

    @Test(arguments: [true, false])
    func `that was deleted is told as gone, whether the store has it or not`(hasStoreIt: Bool) throws {
        let bench = try TaskBench()
        bench.writesStoreAtCommit = hasStoreIt
        try bench.run("put =a 1;put =b 1", at: 100)
        if hasStoreIt { try bench.restart() }
        try bench.run("delete =a", at: 100)
        #expect(bench.cells == ["=a 1", "=b 1", "=a"])
        try bench.run("tell x", at: 100)
        #expect(bench.cells.count == 3)
    }

    @Test func `that came and went between two commits is not told`() throws {
        let bench = try TaskBench()
        try bench.run("put =a 1;put =b 1;delete =a", at: 100)
        #expect(bench.cells == ["=b 1"])
    }

    @Test func `may delete itself, and is then gone from changelog and store`() throws {
        let bench = try TaskBench()
        try bench.run("put =a 1;wake =a 1 500", at: 100)
        try bench.run("put =a zero", at: 110)
        #expect(bench.cells == ["=a 1", "=a"])
        let changelog = bench.committed.filter { $0.topic == Script.changelog && $0.key == "\u{1}=a" }
        #expect(changelog.map { $0.value == nil } == [false, true])
        try bench.restart()
        #expect(try bench.value("=a") == nil)
        #expect(try bench.storedTimers() == [])
        try bench.run("tell x", at: 600)
        #expect(bench.told == ["x @600"])
    }

    @Test func `is settled again after a roll-back, as if nothing had been`() throws {
        let bench = try TaskBench()
        bench.writesStoreAtCommit = false
        try bench.run("put =a 1;put =b 1", at: 100)
        func cycle() throws -> [TaskBench.Sent] {
            _ = try bench.handle(
                .init(
                    offset: 1, timestamp: 300, value: Array("put =b zero;put =a 2;put =c bad".utf8),
                    headers: [RecordHeader("type", "word")]))
            return try bench.settled()
        }
        let first = try cycle()
        bench.rollBack()
        #expect(try bench.value("=b") == "1")
        #expect(!bench.task.isTouched)
        #expect(try cycle() == first)
        #expect(first.map(\.key) == ["=a", "=b", "=c", "\u{1}=b", "\u{1}=a", "\u{1}=c", "\0"])
    }

    @Test(arguments: [("bad", "bad"), ("huge", "too_large")])
    func `that cannot be settled is a dead letter, and the rest is committed`(value: String, reason: String) throws {
        let bench = try TaskBench()
        try bench.run("put =a 1;put =b \(value);put =c 1;tell x", at: 100)
        #expect(bench.cells == ["=a 1", "=c 1"])
        #expect(bench.told == ["x @100"])
        let letter = try #require(bench.letters.first)
        #expect(bench.letters.count == 1)
        #expect(letter.key == "=b" && letter.value == nil && letter.timestamp == 100)
        #expect(letter.headers.first == RecordHeader("settle", ""))
        #expect(letter.header("reason") == reason && letter.header("source") == "events:0:0")
        // The settling's own changes are rolled back, those of records stay.
        try bench.restart()
        #expect(try bench.value("=b") == value)
        try bench.run("put =b 2", at: 100)
        #expect(bench.cells.last == "=b 2")
    }

    @Test func `ends the cycle when the store fails`() throws {
        let bench = try TaskBench()
        _ = try bench.handle("put =a look b", at: 100)
        bench.disk.fail { operation, _ in operation == .read ? StoreFault(.system, "no") : nil }
        #expect(throws: StoreFault.self) { try bench.commit() }
        bench.rollBack()
        #expect(bench.task.next[0] == NextOffset(0))
    }

    @Test func `at which the process has trapped three times is a dead letter`() throws {
        let crashes = CrashPlan()
        let bench = try TaskBench(crashes: crashes)
        try bench.run("put =a 1;put =b 1", at: 100)
        let key = Array("=a".utf8)
        let hash = try bench.task.turn.cache.entry(key.span).hash
        crashes.poison = (2 + 128, Int64(bitPattern: hash))
        crashes.traps = 2
        try bench.run("put =a 2", at: 100)
        #expect(crashes.place?.topic == 130 && crashes.place?.offset == Int64(bitPattern: hash) && crashes.isIdle)
        crashes.traps = 3
        try bench.run("put =a 3;put =b 3", at: 100)
        #expect(bench.cells == ["=a 1", "=b 1", "=a 2", "=b 3"])
        #expect(bench.letters.map { [$0.key, $0.header("reason")] } == [["=a", "crash"]])
        #expect(crashes.isIdle)
    }

    @Test(arguments: [1, 2, 100])
    func `does not count among the outputs of a record, wherever commits fall`(recordsPerCommit: Int) throws {
        let bench = try TaskBench()
        for number in 0..<10 {
            _ = try bench.handle("tell x;put =a \(number);tell y", at: 100)
            if number % recordsPerCommit == 0 { try bench.commit() }
        }
        try bench.commit()
        #expect(bench.ids == (0..<10).flatMap { ["0-\($0)-0", "0-\($0)-1"] })
        #expect(bench.cells.last == "=a 9")
    }

    @Test func `is settled by commits among the timers of one record, and ids go on`() throws {
        let bench = try TaskBench()
        try bench.run("put a !note =a;wake a 0 150", at: 100)
        try bench.run("put m 1;many 6000 200", at: 100)
        try bench.run("put z !put =a 2|tell z;wake z 0 250", at: 100)
        try bench.run("note =z;tell x", at: 300)
        // After the first commit come the second half of the timers and the record.
        #expect(bench.cells == ["=a 150/300/3/1", "=a 2", "=z 300/300/3/6003"])
        #expect(bench.ids == (0...6003).map { "0-3-\($0)" })
    }
}

@Suite struct `A turn knows` {
    @Test func `the record that is dealt with, also while timers fire, and what it has put out`() throws {
        let bench = try TaskBench()
        try bench.run("put a !tell t|note =t;wake a 0 150", at: 100)
        try bench.run("tell x;note =r", at: 300)
        try bench.run("note =late", at: 200)
        try bench.run("tell x;note =row", topic: 1, at: 900)
        // Clock, clock of the record, offset, number of outputs.
        #expect(bench.cells == ["=r 300/300/1/3", "=t 150/300/1/2", "=late 300/300/2/0", "=row 300/300/0/1"])
    }
}
