import Log
import Store
import Testing

@testable import Runtime

private func pauseWords(_ outcome: PartitionTask.Outcome) -> String? {
    switch outcome {
    case .pause(.newerSchema(let words)), .pause(.tooManyLetters(let words)): words
    default: nil
    }
}

@Suite struct `A partition's task` {
    @Test func `puts a record that fails into the dead letters as it was, the reason behind`() throws {
        let bench = try TaskBench()
        let headers = [
            RecordHeader("type", "word"), RecordHeader("x", [0xff, 0]), RecordHeader("x", nil as [UInt8]?),
            RecordHeader("schema", "word/1"),
        ]
        _ = try bench.handle("fail oops", key: nil, at: 123, headers: headers)
        try bench.commit()
        let letter = try #require(bench.letters.first)
        #expect(bench.letters.count == 1)
        #expect(letter.partition == 0 && letter.timestamp == 123)
        #expect(letter.key == nil)
        #expect(letter.value == "fail oops")
        #expect(Array(letter.headers.prefix(4)) == headers)
        #expect(
            letter.headers.dropFirst(4).map { "\($0.name)=\(String(decoding: $0.value ?? [], as: UTF8.self))" } == [
                "reason=oops", "detail=on demand", "source=events:0:0", "first-timestamp=123", "app=script/1",
            ])
        #expect(
            bench.metric("perennial_dead_letters_total{worker=\"script\",code=\"oops\",input=\"events\"}") == "1")
    }

    @Test func `keeps a tombstone that fails a tombstone`() throws {
        let bench = try TaskBench()
        _ = try bench.handle(nil, at: 1, headers: [])
        try bench.commit()
        #expect(bench.letters.map(\.value) == [nil])
        #expect(bench.letters.map { $0.header("reason") } == ["no_type"])
    }

    @Test func `pauses at the hundred and first letter of a thousand records, and leaves that where it is`() throws {
        let bench = try TaskBench()
        for _ in 0..<100 { #expect(try bench.handle("fail a", at: 1) == .done) }
        try bench.commit()
        let words = try #require(pauseWords(try bench.handle("fail b", at: 1)))
        #expect(words.contains("100 of the last 1000 records of events") && words.contains("b: on demand"))
        #expect(bench.task.next[0] == NextOffset(100))
        try bench.commit()
        #expect(bench.letters.count == 100)
        // Letters of a table are counted separately.
        #expect(try bench.handle("fail c", topic: 1, at: 1) == .done)
    }

    @Test func `counts a letter of a cycle that is done again once`() throws {
        let bench = try TaskBench()
        for _ in 0..<3 {
            for offset in 0..<60 as Range<Int64> {
                let record = HeldRecords.Record(
                    offset: offset, timestamp: 1, value: Array("fail a".utf8), headers: [RecordHeader("type", "word")])
                #expect(try bench.handle(record) == .done)
            }
            bench.rollBack()
        }
    }

    @Test func `waits before a newer schema, and its clock does not move`() throws {
        let bench = try TaskBench()
        try bench.run("put a 1;wake a 1 200", at: 100)
        let newer = [RecordHeader("schema", "word/3")]
        #expect(pauseWords(try bench.handle("tell x", at: 900, headers: newer))?.contains("word/3") == true)
        #expect(bench.pending.isEmpty && !bench.task.isTouched)
        #expect(bench.task.next[0] == NextOffset(1))
        #expect(pauseWords(try bench.handle("x", topic: 1, at: 1, headers: [RecordHeader("schema", "row/2")])) != nil)
        #expect(bench.task.next[1] == NextOffset(0))
        #expect(bench.told.isEmpty)
    }

    @Test func `skips and counts types that it does not know, and ticks; both move the clock`() throws {
        let bench = try TaskBench()
        try bench.run("put a !wake a 1 300;wake a 1 200", at: 100)
        #expect(try bench.handle("x", at: 200, headers: [RecordHeader("type", "other")]) == .done)
        #expect(try bench.handle("", key: nil, at: 300, headers: [RecordHeader("type", "tick")]) == .done)
        try bench.commit()
        #expect(bench.told == ["fired a 1 @200", "fired a 1 @300"])
        #expect(bench.metric("perennial_records_skipped_total{worker=\"script\"}") == "1")
        #expect(bench.metric("perennial_ticks_consumed_total{worker=\"script\"}") == "1")
        #expect(bench.task.next[0] == NextOffset(3))
    }

    @Test func `sends a row that stands in the wrong partition to the right one, unchanged`() throws {
        let bench = try TaskBench(Script(partitions: 8))
        let key = try #require(
            (0..<100).map { "key-\($0)" }.first { Partitioner.partition(of: Array($0.utf8), count: 8) == 5 })
        _ = try bench.handle("tell x", topic: 1, key: key, at: 7, headers: [RecordHeader("a", "b")])
        try bench.commit()
        let sent = try #require(bench.committed.first { $0.topic == Script.rows })
        #expect(sent.partition == 5 && sent.timestamp == 7 && sent.key == key && sent.value == "tell x")
        #expect(sent.headers == [RecordHeader("a", "b"), RecordHeader("rerouted", "rows:0:0")])
        #expect(bench.told.isEmpty)
        #expect(bench.task.next[1] == NextOffset(1))
    }

    @Test func `moves its clock by events alone, and never back`() throws {
        let bench = try TaskBench()
        try bench.run("tell a", at: 500)
        try bench.run("tell row", topic: 1, at: 9000)
        try bench.run("tell b", at: 400)
        #expect(bench.told == ["a @500", "row @500", "b @500"])
        try bench.restart()
        try bench.run("tell c", at: 450)
        #expect(bench.told.last == "c @500")
    }

    @Test func `skips what it has dealt with`() throws {
        let bench = try TaskBench()
        try bench.run("tell a", at: 1)
        #expect(try bench.again() == .done)
        #expect(bench.pending.isEmpty)
        #expect(!bench.task.isTouched)
    }

    @Test func `keeps a position behind what is no record`() throws {
        let bench = try TaskBench()
        try bench.run("tell a", at: 1)
        bench.task.skip(to: NextOffset(5), of: 0)
        bench.task.skip(to: NextOffset(3), of: 0)
        #expect(bench.task.isTouched)
        try bench.commit()
        try bench.restart()
        #expect(bench.task.next == [NextOffset(5), NextOffset(0)])
    }

    @Test(arguments: [true, false])
    func `is after a roll-back as after the last commit`(hasStoreIt: Bool) throws {
        let bench = try TaskBench()
        bench.writesStoreAtCommit = hasStoreIt
        try bench.run("put a 1;wake a 1 200", at: 100)
        let before = bench.task.next
        func cycle() throws {
            #expect(
                try bench.handle(
                    .init(
                        offset: 1, timestamp: 300, value: Array("put a 2;put b 2;wake b 1 250;tell x".utf8),
                        headers: [RecordHeader("type", "word")])) == .done)
        }
        try cycle()
        let first = bench.pending
        bench.rollBack()
        #expect(bench.task.next == before)
        #expect(try bench.value("a") == "1")
        #expect(try bench.value("b") == nil)
        #expect(!bench.task.isTouched)
        try cycle()
        #expect(bench.pending == first)
        #expect(first.map(\.value) == ["fired a 1 @200", "x @300"])
        try bench.commit()
        try bench.task.writeStore()
        #expect(try bench.storedTimers().map(\.due) == [301])
    }

    @Test(arguments: [true, false])
    func `writes the changes, tombstones and its position to the changelog`(writesStore: Bool) throws {
        let bench = try TaskBench()
        bench.writesStoreAtCommit = writesStore
        try bench.run("put a 1;put b 2;put c 3;delete c", at: 100)
        try bench.run("delete b", at: 100)
        let changelog = bench.committed.filter { $0.topic == Script.changelog }
        #expect(changelog.map { $0.key } == ["\u{1}a", "\u{1}b", "\0", "\u{1}b", "\0"])
        #expect(changelog.map { $0.value == nil } == [false, false, false, true, false])
        // The store gets the offset as soon as it has the changes.
        if !writesStore { #expect(try bench.store.note() == nil) }
        try bench.task.writeStore()
        let note = try #require(try bench.store.note().flatMap { Note(decoding: $0) })
        #expect(note.positions == ["events": NextOffset(2), "rows": NextOffset(0)])
        #expect(note.clock == 100)
        #expect(note.changelog == NextOffset(7))
    }

    @Test(arguments: [true, false])
    func `tells in each note how many keys readers of the changelog have, and their sum`(writesStore: Bool) throws {
        let bench = try TaskBench()
        bench.writesStoreAtCommit = writesStore
        var entries: [String: String] = [:]
        for round in 0..<60 {
            let key = "k\(round * 7 % 11)"
            let more = round % 5 == 0 ? ";delete k\(round % 11)" : round % 3 == 0 ? ";wake \(key) 1 \(round + 40)" : ""
            _ = try bench.handle("put \(key) \(round)\(more)", at: Int64(round))
            if round % 4 == 3 {
                _ = try bench.settled()
                bench.rollBack()
            } else {
                let start = bench.committed.count
                try bench.commit()
                for record in bench.committed[start...] where record.topic == Script.changelog && record.key != "\0" {
                    entries[record.key!] = record.value
                }
            }
            // Places of timers, which only the store has, are read from it as well.
            if round % 10 == 9 {
                try bench.task.writeStore()
                try bench.restart()
            }
            let note = bench.task.note
            #expect(note.sum?.keys == Int64(entries.count) && note.life == 7)
        }
        try bench.task.writeStore()
        var sum = StateSum()
        let all: [UInt8] = []
        try bench.store.scan(all.span) { key, value in
            sum.add(EntryHash.hash(key: key, stored: value)!)
            return true
        }
        #expect(sum == bench.task.note.sum)
    }

    @Test func `takes a record for poison when the process has trapped at it three times`() throws {
        let crashes = CrashPlan()
        let bench = try TaskBench(crashes: crashes)
        #expect(try bench.handle("tell a", at: 1) == .done)
        #expect(crashes.place?.topic == 0 && crashes.place?.offset == 0 && crashes.isIdle)
        crashes.poison = (0, 1)
        crashes.traps = 2
        #expect(try bench.handle("tell b", at: 1) == .done)
        bench.rollBack()
        crashes.traps = 3
        _ = try bench.handle(
            .init(offset: 0, timestamp: 1, value: Array("tell a".utf8), headers: [RecordHeader("type", "word")]))
        _ = try bench.handle(
            .init(offset: 1, timestamp: 1, value: Array("tell b".utf8), headers: [RecordHeader("type", "word")]))
        try bench.commit()
        #expect(bench.told == ["a @1"])
        #expect(bench.letters.map { $0.header("reason") } == ["crash"])
    }

    @Test func `takes a timer for poison by itself, and not the record that moved the clock`() throws {
        let crashes = CrashPlan()
        let bench = try TaskBench(crashes: crashes)
        try bench.run("put a 1;wake a 1 200;put b 1;wake b 1 200", at: 100)
        // The last of the due timers is the one that is noted when the failing record is reached.
        var fired: (topic: Int, offset: Int64)?
        bench.disk.fail { _, _ in nil }
        try bench.run("tell x", at: 150)
        let key = Array("b".utf8)
        fired = (2 + 1, 200 ^ Int64(bitPattern: try bench.task.turn.cache.entry(key.span).hash))
        crashes.poison = fired
        crashes.traps = 3
        try bench.run("tell y", at: 300)
        #expect(bench.told == ["x @150", "fired a 1 @200", "y @300"])
        #expect(bench.letters.map { [$0.key, $0.header("reason"), $0.header("timer")] } == [["b", "crash", "1"]])
        #expect(crashes.place?.topic == 0)
    }
}

@Suite struct `Timers of a partition's task` {
    @Test func `fire in order before the record that moved the clock, and just at the clock`() throws {
        let bench = try TaskBench()
        try bench.run(
            "put b 1;wake b 1 200;put a 1;wake a 2 200;wake a 1 200;put c 1;wake c 1 150;put d 1;wake d 1 201", at: 100)
        try bench.run("tell early", at: 149)
        try bench.run("tell now", at: 200)
        #expect(
            bench.told == [
                "early @149", "fired c 1 @150", "fired a 1 @200", "fired a 2 @200", "fired b 1 @200", "now @200",
            ])
    }

    @Test func `that were moved or cancelled do not fire`() throws {
        let bench = try TaskBench()
        try bench.run("put a 1;wake a 1 200;put b 1;wake b 1 200;put c 1;wake c 1 200", at: 100)
        try bench.run("wake a 1 400;cancel b 1;wake c 1 150", at: 101)
        // A timer that is moved later keeps its place until that time is reached.
        #expect(try bench.storedTimers().map(\.due) == [150, 200])
        try bench.run("tell x", at: 300)
        #expect(try bench.storedTimers().map(\.due) == [400])
        // Also within one cycle.
        _ = try bench.handle("put d 1;wake d 1 500;wake d 1 600;cancel d 1", at: 301)
        _ = try bench.handle("tell y", at: 700)
        try bench.commit()
        #expect(bench.told == ["fired c 1 @150", "x @300", "fired a 1 @400", "y @700"])
        #expect(try bench.storedTimers() == [])
    }

    @Test(arguments: [true, false])
    func `that move later again and again are touched in the store once, and fire once`(restarts: Bool) throws {
        let bench = try TaskBench()
        for moment in 1...50 as ClosedRange<Int64> {
            try bench.run("put a 1;wake a 1 \(moment + 100)", at: moment)
            #expect(try bench.storedTimers().map(\.due) == [101])
        }
        if restarts { try bench.restart() }
        try bench.run("tell x", at: 120)
        #expect(try bench.storedTimers().map(\.due) == [150])
        if restarts { try bench.restart() }
        // Moved to before its place again, and then later.
        try bench.run("wake a 1 130;wake a 1 140", at: 121)
        #expect(try bench.storedTimers().map(\.due) == [130])
        if restarts { try bench.restart() }
        try bench.run("tell y", at: 139)
        try bench.run("tell z", at: 500)
        #expect(bench.told == ["x @120", "y @139", "fired a 1 @140", "z @500"])
        #expect(try bench.storedTimers() == [])
    }

    @Test func `that fired before a commit do not fire again after a roll-back, and those after it do`() throws {
        let bench = try TaskBench()
        bench.writesStoreAtCommit = false
        try bench.run("put a 1;wake a 1 200;put b 1;wake b 1 300;put c 1;wake c 1 400", at: 100)
        try bench.run("tell x", at: 200)
        // A timer that got its right place in a cycle that is rolled back.
        try bench.run("wake c 1 450", at: 201)
        _ = try bench.handle("tell y", at: 420)
        bench.rollBack()
        _ = try bench.handle(
            .init(offset: 3, timestamp: 460, value: Array("tell y".utf8), headers: [RecordHeader("type", "word")]))
        try bench.commit()
        #expect(bench.told == ["fired a 1 @200", "x @200", "fired b 1 @300", "fired c 1 @450", "y @460"])
        #expect(try bench.store.note() == nil)
        try bench.task.writeStore()
        #expect(try bench.storedTimers() == [])
    }

    @Test func `whose key cannot be read are not lost`() throws {
        let bench = try TaskBench()
        try bench.run("put a 1;wake a 1 200;put b 1;wake b 1 400", at: 100)
        try bench.restart()
        bench.disk.fail { operation, _ in operation == .read ? StoreFault(.format, "of another build") : nil }
        #expect(try bench.handle("tell x", at: 300) == .pause(.unreadableState("of another build")))
        bench.disk.fail(nil)
        #expect(try bench.again() == .done)
        try bench.commit()
        #expect(bench.told == ["fired a 1 @200", "x @300"])
    }

    @Test func `that are set while others fire, fire in their turn`() throws {
        let bench = try TaskBench()
        try bench.run(
            "put a !put d 1|wake d 1 210|wake b 1 255;wake a 1 200;put b 1;wake b 1 220;put c 1;wake c 1 260", at: 100)
        try bench.run("tell x", at: 255)
        #expect(bench.told == ["fired a 1 @200", "fired d 1 @210", "fired b 1 @255", "x @255"])
    }

    @Test func `that fail are dead letters of their key, and gone`() throws {
        let bench = try TaskBench()
        try bench.run("put a !tell no|put a 9|fail oops;wake a 1 200", at: 100)
        try bench.run("tell x", at: 300)
        #expect(bench.told == ["x @300"])
        #expect(bench.ids == ["0-1-0"])
        let letter = try #require(bench.letters.first)
        #expect(letter.key == "a" && letter.value == nil && letter.timestamp == 200)
        #expect(letter.header("timer") == "1" && letter.header("reason") == "oops")
        #expect(letter.header("source") == "events:0:1")
        #expect(try bench.value("a") == "!tell no|put a 9|fail oops")
        #expect(try bench.storedTimers() == [])
    }

    @Test func `may be set by a row before the first event`() throws {
        let bench = try TaskBench()
        try bench.run("put a 1;wake a 1 \(Int64.min)", topic: 1, at: 5)
        try bench.run("tell x", at: 1_700_000_000_000)
        #expect(bench.told == ["fired a 1 @1", "x @1700000000000"])
    }

    @Test func `that a restore has left over in the store are not fired, and go with the next commit`() throws {
        let bench = try TaskBench()
        try bench.run("put a 1;wake a 1 400", at: 100)
        let changes = StoreChanges()
        changes.addTimer(due: 200, key: Array("a".utf8).span, kind: 1)
        changes.note = try #require(try bench.store.note())
        try bench.store.write(changes, .process)
        try bench.restart()
        try bench.run("tell x", at: 300)
        #expect(bench.told == ["x @300"])
        #expect(try bench.storedTimers().map(\.due) == [400])
    }

    @Test(arguments: [false, true])
    func `of a mass are committed in between, and their ids are those of one cycle`(restarts: Bool) throws {
        let bench = try TaskBench()
        try bench.run("many 10100 200", at: 100)
        #expect(bench.commits == 1)
        var outcome = try bench.handle("tell x", at: 300)
        while outcome == .commitFirst {
            try bench.commit()
            #expect(bench.task.next[0] == NextOffset(1))
            if restarts {
                try bench.restart()
                outcome = try bench.handle("tell x", at: 300)
            } else {
                outcome = try bench.again()
            }
        }
        try bench.commit()
        #expect(bench.commits == 4)
        #expect(bench.ids == (0...10_100).map { "0-1-\($0)" })
        #expect(bench.told.last == "x @300")
        try bench.run("tell y", at: 300)
        #expect(bench.ids.last == "0-2-0")
    }
}
