import Log
import Store
import Testing

@testable import Runtime

@Suite struct `A turn that fails` {
    @Test func `leaves nothing: no output, state, timer or number of an id`() throws {
        let bench = try TaskBench()
        try bench.run("put a 1;put b 2;wake b 1 500", at: 100)
        let failing = "tell x;put a 9;delete b;put c 3;wake a 1 150;wake c 1 160;tell y;fail oops"
        #expect(try bench.handle(failing, at: 110) == .done)
        #expect(bench.pending.map(\.topic) == [Script.deadLetters])
        #expect(try bench.value("a") == "1")
        #expect(try bench.value("b") == "2")
        #expect(try bench.value("c") == nil)
        #expect(try bench.timer("a") == nil)
        #expect(try bench.timer("b") == 500)
        #expect(bench.task.uncommittedBytes == 0)
        try bench.commit()
        try bench.run("tell later", at: 400)
        #expect(bench.told == ["later @400"])
        try bench.run("tell last", at: 500)
        #expect(bench.told == ["later @400", "fired b 1 @500", "last @500"])
        #expect(bench.ids == ["0-2-0", "0-3-0", "0-3-1"])
    }

    @Test func `leaves what earlier turns of the cycle have changed`() throws {
        let bench = try TaskBench()
        _ = try bench.handle("put a 1;wake a 1 500", at: 100)
        _ = try bench.handle("put a 2;wake a 1 300;delete a;fail oops", at: 110)
        #expect(try bench.value("a") == "1")
        #expect(try bench.timer("a") == 500)
        try bench.commit()
        try bench.restart()
        #expect(try bench.value("a") == "1")
        #expect(try bench.storedTimers() == [TimerEntry(due: 500, key: Array("a".utf8), kind: 1)])
    }

    @Test func `because of the store is no fault of the record`() throws {
        let bench = try TaskBench()
        bench.disk.fail { operation, _ in operation == .read ? StoreFault(.system, "no") : nil }
        do {
            _ = try bench.handle("put a 1", at: 100)
            Issue.record("it went well")
        } catch let fault as StoreFault { #expect(fault.words == "no") }
        #expect(bench.pending.isEmpty)
    }
}

@Suite struct `A turn` {
    @Test func `gives each output an id, its cause and what wrote it`() throws {
        let bench = try TaskBench()
        try bench.run("tell x;tell y", at: 100)
        try bench.run("tell row", topic: 1, key: "k", at: 5)
        let headers = bench.committed.filter { $0.topic == Script.told }.map { sent in
            sent.headers.map { "\($0.name)=\(String(decoding: $0.value ?? [], as: UTF8.self))" }
        }
        let rest = ["schema=told/1", "app=script/1"]
        #expect(
            headers == [
                ["id=0-0-0"] + rest + ["source=events:0:0"], ["id=0-0-1"] + rest + ["source=events:0:0"],
                // Offsets of a table may equal offsets of the events.
                ["id=rows-0-0-0"] + rest + ["source=rows:0:0"],
            ])
        #expect(bench.committed.filter { $0.topic == Script.told }.map(\.timestamp) == [100, 100, 5])
    }

    @Test func `takes a timer in the past for the next millisecond`() throws {
        let bench = try TaskBench()
        try bench.run("put a 1;wake a 1 -5;put b 1;wake b 1 100", at: 100)
        #expect(try bench.timer("a") == 101)
        #expect(try bench.timer("b") == 101)
        try bench.run("tell x", at: 100)
        try bench.run("tell y", at: 101)
        #expect(bench.told == ["x @100", "fired a 1 @101", "fired b 1 @101", "y @101"])
    }

    @Test func `knows when a timer fires, and none that has fired, even if it failed`() throws {
        let bench = try TaskBench()
        try bench.run("put a !fail oops;wake a 1 500;due a 1;due a 2", at: 100)
        try bench.run("due a 1", at: 499)
        try bench.run("due a 1", at: 500)
        #expect(bench.told == ["a 1: 500 @100", "a 2: none @100", "a 1: 500 @499", "a 1: none @500"])
    }

    @Test func `removes timers with their value`() throws {
        let bench = try TaskBench()
        try bench.run("put a 1;wake a 1 200;wake a 2 300", at: 100)
        try bench.run("delete a", at: 110)
        #expect(try bench.storedTimers() == [])
        try bench.run("tell x", at: 1000)
        #expect(bench.told == ["x @1000"])
    }
}
