import LogTestKit
import MemoryLog
import Store
import Testing

@testable import Runtime

@Suite struct `The entries in memory` {
    private static let keys: [[UInt8]] = {
        var dice = SplitMix64(seed: 3)
        return (0...100).flatMap { count in
            [[UInt8](repeating: 0, count: count), (0..<count).map { _ in UInt8.random(in: 0...3, using: &dice) }]
        }
    }()

    private func put(_ value: [UInt8]?, _ key: [UInt8], _ cache: EntryCache) throws {
        let entry = try cache.entry(key.span)
        cache.willChange(entry)
        entry.content.value = value
        cache.changed(entry)
    }

    /// Writes the committed changes.
    private func write(_ cache: EntryCache, _ store: any PartitionStore) throws {
        let changes = StoreChanges()
        var bytes: [UInt8] = []
        for entry in cache.unstored { changes.add(entry, &bytes) }
        try store.write(changes, .process)
        cache.stored()
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `say what a dictionary says, through commits, writes, roll-backs and drops`(seed: UInt64) throws {
        var dice = SplitMix64(seed: seed)
        let store = try MemoryStores().open(0)
        let cache = EntryCache(store: store, limitBytes: 5000)
        var committed: [[UInt8]: [UInt8]] = [:]
        var now = committed
        for _ in 0..<3000 {
            let key = Self.keys.randomElement(using: &dice)!
            let entry = try cache.entry(key.span)
            guard entry.value == now[key], entry.key == key else {
                Issue.record("seed \(seed): \(key) is \(entry.value ?? []), not \(now[key] ?? [])")
                return
            }
            switch Int.random(in: 0..<100, using: &dice) {
            case 0..<40:
                now[key] = [UInt8](repeating: UInt8(truncatingIfNeeded: dice.next()), count: Int(dice.next() % 50))
                try put(now[key], key, cache)
            case 40..<50:
                now[key] = nil
                try put(nil, key, cache)
            case 50..<54:
                cache.committed()
                committed = now
                #expect(cache.dirtyBytes == 0)
            case 54..<56:
                cache.rollBack()
                now = committed
                #expect(cache.dirty.isEmpty)
            case 56..<57:
                cache.committed()
                committed = now
                try write(cache, store)
                #expect(cache.bytes <= 5000)
                #expect(cache.unstoredBytes == 0)
                // The store has the committed changes, and nothing else.
                for key in Self.keys {
                    var bytes: [UInt8] = []
                    let isThere = try store.read(key.span, into: &bytes)
                    let value = EntryCoding.decode(bytes.span)?.value
                    #expect(isThere == (committed[key] != nil) && value == committed[key])
                }
            default: break
            }
        }
    }

    @Test func `that have changed are never dropped before the store has them`() throws {
        let store = try MemoryStores().open(0)
        let cache = EntryCache(store: store, limitBytes: 1000)
        for number in 0..<100 as Range<UInt8> { try put([number], [number], cache) }
        #expect(cache.dirty.count == 100)
        #expect(cache.bytes > 20_000)
        #expect(cache.dirtyBytes == cache.bytes)
        cache.committed()
        #expect(cache.dirtyBytes == 0)
        #expect(cache.unstoredBytes == cache.bytes)
        #expect(cache.bytes > 20_000)
        try write(cache, store)
        #expect(cache.bytes <= 1000)
        for number in 0..<100 as Range<UInt8> { #expect(try cache.entry([number].span).value == [number]) }
    }

    @Test func `are written in the order in which they were first changed`() throws {
        let cache = EntryCache(store: try MemoryStores().open(0), limitBytes: 1000)
        let order: [UInt8] = [9, 3, 200, 1, 77, 3, 9]
        for number in order {
            try put([1], [number], cache)
        }
        #expect(cache.dirty.map(\.key) == [[9], [3], [200], [1], [77]])
    }

    @Test func `that cannot be read are a fault of the store`() throws {
        let store = try MemoryStores().open(0)
        let changes = StoreChanges()
        changes.put([1].span, [1, 9].span)
        try store.write(changes, .process)
        let cache = EntryCache(store: store, limitBytes: 1000)
        do throws(StoreFault) {
            _ = try cache.entry([1].span)
            Issue.record("it was read")
        } catch { #expect(error.cause == .corrupt) }
    }
}
