import Store
import TestTraits
import Testing

@Suite(.ownThreads) struct `A disk in memory` {
    @Test func `loses with its process what was not logged, whole writes only`() throws {
        let disk = MemoryDisk()
        let store = try MemoryStores(disk: disk).open(0)
        try store.write([("a", "1"), ("b", "1")], add: [TimerEntry(1)], note: "one", .process)
        try store.write([("a", "2"), ("b", nil), ("c", "2")], add: [TimerEntry(2)], note: "two", .none)
        try store.write(
            [("a", "3"), ("a", "4"), ("d", "3"), ("d", "4")], remove: [TimerEntry(1), TimerEntry(9)], note: "three",
            .none)
        #expect(try store.value("a") == "4")
        disk.crash()
        let again = try MemoryStores(disk: disk).open(0)
        #expect(try again.value("a") == "1")
        #expect(try again.value("b") == "1")
        #expect(try again.value("c") == nil)
        #expect(try again.value("d") == nil)
        #expect(try again.timers() == [TimerEntry(1)])
        #expect(try again.noteText() == "one")
        try again.close()
    }

    @Test(arguments: [(0, nil, nil), (1, "1", "one"), (2, "2", "two"), (3, "3", "three")] as [(Int, String?, String?)])
    func `keeps at a crash as many of the writes as were flushed meanwhile, the earliest`(
        _ kept: Int, _ value: String?, _ note: String?
    ) throws {
        let disk = MemoryDisk()
        let store = try MemoryStores(disk: disk).open(0)
        for (number, name) in [("1", "one"), ("2", "two"), ("3", "three")] {
            try store.write([("key", number)], note: name, .none)
        }
        disk.crash { writes in
            #expect(writes == 3)
            return kept
        }
        // What was flushed stays, whatever happens next.
        disk.crash()
        let again = try MemoryStores(disk: disk).open(0)
        #expect(try again.value("key") == value)
        #expect(try again.noteText() == note)
        try again.close()
    }

    @Test func `keeps what was written before a logged write, or before the store was closed`() throws {
        let disk = MemoryDisk()
        var store = try MemoryStores(disk: disk).open(0)
        try store.write([("a", "1")], .none)
        try store.write([("b", "1")], .process)
        disk.crash()
        store = try MemoryStores(disk: disk).open(0)
        #expect(try store.value("a") == "1")
        try store.write([("c", "1")], .none)
        try store.close()
        disk.crash()
        store = try MemoryStores(disk: disk).open(0)
        #expect(try store.value("c") == "1")
        try store.close()
    }

    @Test func `serves no store of a process that died`() throws {
        let disk = MemoryDisk()
        let dead = try MemoryStores(disk: disk).open(0)
        disk.crash()
        let living = try MemoryStores(disk: disk).open(0)
        #expect(cause { try dead.write([("a", "1")]) } == .system)
        #expect(cause { _ = try dead.note() } == .system)
        #expect(cause { _ = try MemoryStores(disk: disk).open(0) } == .locked)
        #expect(try living.value("a") == nil)
        try living.close()
    }

    @Test func `can lose a partition, and no other`() throws {
        let disk = MemoryDisk()
        let stores = MemoryStores(disk: disk)
        let (lost, kept) = (try stores.open(0), try stores.open(1))
        try lost.write([("a", "1")])
        try kept.write([("a", "1")])
        disk.lose(0)
        #expect(cause { _ = try lost.value("a") } == .system)
        #expect(try kept.value("a") == "1")
        let empty = try stores.open(0)
        #expect(try empty.value("a") == nil)
        try empty.close()
        try kept.close()
    }

    @Test func `is copied as a dead process leaves it, and goes its own way`() throws {
        let disk = MemoryDisk()
        let store = try MemoryStores(disk: disk).open(0)
        try store.write([("a", "1")], .process)
        try store.write([("a", "2")], .none)
        let copied = try MemoryStores(disk: disk.copy()).open(0)
        #expect(try copied.value("a") == "1")
        try copied.write([("a", "3")])
        #expect(try store.value("a") == "2")
        try copied.close()
        try store.close()
    }

    @Test func `fails as it is told`() throws {
        let disk = MemoryDisk()
        let stores = MemoryStores(disk: disk)
        let store = try stores.open(0)
        let full = StoreFault(.system, "full")
        disk.fail { operation, partition in operation == .write && partition == 0 ? full : nil }
        #expect(fault { try store.write([("a", "1")], note: "n") } == full)
        #expect(try store.value("a") == nil)
        #expect(try store.note() == nil)
        disk.fail { operation, _ in [.open, .wipe, .read, .timers, .close].contains(operation) ? full : nil }
        for refused in [
            fault { _ = try stores.open(1) }, fault { try stores.wipe(1) }, fault { _ = try store.value("a") },
            fault { _ = try store.timers() }, fault { try store.close() },
        ] { #expect(refused == full) }
        disk.fail(nil)
        try store.write([("a", "1")])
        try store.close()
    }
}
