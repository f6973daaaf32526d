import Store
import TestTraits
import Testing

@Suite(.ownThreads) struct `A store` {
    @Test(arguments: StoreKind.allCases)
    func `has nothing at first`(_ kind: StoreKind) throws {
        let store = try Place(kind).stores.open(0)
        #expect(try store.note() == nil)
        #expect(try store.value("key") == nil)
        #expect(try store.firstTimer() == nil)
        #expect(try store.timers() == [])
        try store.close()
    }

    @Test(arguments: StoreKind.allCases, [StoreDurability.process, .none])
    func `gives what was written, also after it was closed`(_ kind: StoreKind, _ durability: StoreDurability) throws {
        let place = try Place(kind)
        var store = try place.stores.open(0)
        try store.write([("one", "1"), ("two", "2"), ("three", "")], add: [TimerEntry(5)], note: "first", durability)
        try store.write([("one", "eins"), ("two", nil)], add: [TimerEntry(4)], note: "second", durability)
        for _ in 0..<2 {
            #expect(try store.value("one") == "eins")
            #expect(try store.value("two") == nil)
            #expect(try store.value("three") == "")
            #expect(try store.timers() == [TimerEntry(4), TimerEntry(5)])
            #expect(try store.noteText() == "second")
            try store.close()
            store = try place.stores.open(0)
        }
        try store.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `shows what a crash would leave, which is what was flushed`(_ kind: StoreKind) throws {
        let place = try Place(kind)
        var store = try place.stores.open(0)
        #expect(try store.lastingText() == nil)
        try store.write([("key", "1")], note: "one", .none)
        #expect(try store.lastingText() == nil)
        try store.beginFlush()
        try store.waitUntilLasting("one")
        #expect(try store.lastingText() == "one")
        try store.write([("key", "2")], note: "two", .none)
        #expect(try store.lastingText() == "one")
        #expect(try store.noteText() == "two")
        #expect(try store.value("key") == "2")
        // A store that is closed keeps everything.
        try store.close()
        store = try place.stores.open(0)
        #expect(try store.lastingText() == "two")
        try store.write([("key", "3")], note: "three", .none)
        try store.write([("key", "4")], note: "four", .process)
        #expect(try store.lastingText() == "four")
        try store.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `is opened together with others, each with its own contents or fault`(_ kind: StoreKind) throws {
        let place = try Place(kind)
        for partition: Int32 in 0..<9 {
            let store = try place.stores.open(partition)
            try store.write([("key", "\(partition)")])
            try store.close()
        }
        let held = try place.stores.open(4)
        let opened = place.stores.open(all: Array(0..<9))
        #expect(opened.count == 9)
        for (partition, result) in opened {
            guard case .success(let store) = result else {
                #expect(partition == 4)
                continue
            }
            #expect(try store.value("key") == "\(partition)")
            try store.close()
        }
        guard case .failure(let fault) = opened[4] else { throw StoreFault(.system, "opened twice") }
        #expect(fault.cause == .locked)
        try held.close()
        #expect(place.stores.open(all: []).isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `applies the changes of a write in their order`(_ kind: StoreKind) throws {
        let store = try Place(kind).stores.open(0)
        try store.write([("key", "1"), ("key", nil), ("key", "2"), ("other", "1"), ("other", nil)])
        #expect(try store.value("key") == "2")
        #expect(try store.value("other") == nil)
        // Removed first, then added, so it exists.
        try store.write(add: [TimerEntry(1)], remove: [TimerEntry(1)])
        #expect(try store.timers() == [TimerEntry(1)])
        try store.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `replaces what the caller had in its buffer`(_ kind: StoreKind) throws {
        let store = try Place(kind).stores.open(0)
        try store.write([("key", "12")])
        var buffer: [UInt8] = [1, 2, 3, 4, 5]
        let wasThere = try store.read(Array("key".utf8).span, into: &buffer)
        #expect(wasThere && buffer == Array("12".utf8))
        let isThere = try store.read(Array("none".utf8).span, into: &buffer)
        #expect(!isThere && buffer == [])
        try store.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `gives all values whose keys begin alike, in order, and no others`(_ kind: StoreKind) throws {
        let store = try Place(kind).stores.open(0)
        var dice = Dice(seed: 3)
        let keys = Set((0..<300).map { _ in dice.awkwardKey() })
        let changes = StoreChanges()
        for key in keys { changes.put(key.span, ([7] + key).span) }
        for key in keys { changes.addTimer(due: 0, key: key.span, kind: 1) }
        changes.note = [1]
        try store.write(changes, .process)
        for prefix in keys.union([[], [0xff], [0xff, 0xff], [2]]) {
            var found: [[UInt8]] = []
            try store.scan(prefix.span) { key, value in
                found.append(key.withUnsafeBytes { Array($0) })
                return value.withUnsafeBytes { Array($0) } == [7] + found.last!
            }
            let expected = keys.filter { $0.starts(with: prefix) }.sorted { $0.lexicographicallyPrecedes($1) }
            #expect(found == expected, "\(prefix)")
        }
        var taken = 0
        try store.scan([UInt8]().span) { _, _ in
            taken += 1
            return taken < 3
        }
        #expect(taken == 3)
        try store.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `takes any bytes for a key, and keeps keys, timers and note apart`(_ kind: StoreKind) throws {
        let place = try Place(kind)
        var store = try place.stores.open(0)
        var keys: [[UInt8]] = [[], [0], [0, 0], [0, 0xff], [0xff], [0xff, 0xff], [UInt8](repeating: 7, count: 5000)]
        for byte in UInt8.min...UInt8.max { keys += [[byte, 1], [1, byte], [2, byte]] }
        let changes = StoreChanges()
        for key in keys { changes.put(key.span, ([7] + key).span) }
        for key in keys { changes.addTimer(due: 0, key: key.span, kind: 1) }
        changes.note = [0, 1, 2, 0xff]
        try store.write(changes, .process)
        for _ in 0..<2 {
            for key in keys { #expect(try store.value(key) == [7] + key) }
            #expect(try store.timers() == Set(keys).map { TimerEntry(due: 0, key: $0, kind: 1) }.sorted())
            #expect(try store.note() == [0, 1, 2, 0xff])
            #expect(try store.value([9]) == nil)
            try store.close()
            store = try place.stores.open(0)
        }
        try store.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `takes big values`(_ kind: StoreKind) throws {
        let place = try Place(kind)
        let store = try place.stores.open(0)
        let big = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        let changes = StoreChanges()
        for key in 0..<20 { changes.put([UInt8(key)].span, big.span) }
        changes.note = big
        try store.write(changes, .process)
        try store.close()
        let again = try place.stores.open(0)
        for key in 0..<20 { #expect(try again.value([UInt8(key)]) == big) }
        #expect(try again.note() == big)
        #expect(try #require(again.approximateBytes) >= 20 << 20)
        try again.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `keeps a note that is empty, and the note of an empty write`(_ kind: StoreKind) throws {
        let store = try Place(kind).stores.open(0)
        try store.write()
        #expect(try store.note() == [])
        try store.write(note: "n")
        #expect(try store.noteText() == "n")
        try store.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `of a partition is nobody else's`(_ kind: StoreKind) throws {
        let place = try Place(kind)
        let one = try place.stores.open(1)
        let two = try place.stores.open(2)
        try one.write([("key", "1")], add: [TimerEntry(1)])
        #expect(try two.value("key") == nil)
        #expect(try two.firstTimer() == nil)
        try one.close()
        try two.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `is locked while it is open, and wiped only when it is not`(_ kind: StoreKind) throws {
        let place = try Place(kind)
        let store = try place.stores.open(0)
        try store.write([("key", "1")], note: "n")
        #expect(cause { _ = try place.stores.open(0) } == .locked)
        #expect(cause { try place.stores.wipe(0) } == .locked)
        #expect(try store.value("key") == "1")
        try store.close()
        // A refused wipe does not wipe anything later either.
        let again = try place.stores.open(0)
        #expect(try again.value("key") == "1")
        try again.close()
        try place.stores.wipe(0)
        let empty = try place.stores.open(0)
        #expect(try empty.value("key") == nil)
        #expect(try empty.note() == nil)
        try empty.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `that nobody has is wiped, too`(_ kind: StoreKind) throws {
        let place = try Place(kind)
        try place.stores.wipe(3)
        try place.stores.open(3).close()
    }

    @Test(arguments: StoreKind.allCases)
    func `is free again when its owner is gone without closing it`(_ kind: StoreKind) throws {
        let place = try Place(kind)
        var store: (any PartitionStore)? = try place.stores.open(0)
        try store?.write([("key", "1")], .none)
        store = nil
        let again = try place.stores.open(0)
        #expect(try again.value("key") == "1")
        try again.close()
    }
}
