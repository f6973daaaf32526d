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

    /// Writes what has changed, as a commit does.
    private func commit(_ cache: EntryCache, _ store: any PartitionStore) throws {
        let changes = StoreChanges()
        for entry in cache.dirty { changes.add(entry) }
        try store.write(changes, .process)
        cache.committed()
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `say what a dictionary says, through commits, roll-backs and drops`(seed: UInt64) throws {
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
                let value = [UInt8](repeating: UInt8(truncatingIfNeeded: dice.next()), count: Int(dice.next() % 50))
                now[key] = value
                entry.value = value
                cache.changed(entry)
            case 40..<50:
                now[key] = nil
                entry.value = nil
                cache.changed(entry)
            case 50..<54:
                try commit(cache, store)
                committed = now
                #expect(cache.bytes <= 5000)
                #expect(cache.dirtyBytes == 0)
            case 54..<56:
                cache.rollBack()
                now = committed
                #expect(cache.dirty.isEmpty)
            default: break
            }
        }
    }

    @Test func `that have changed are never dropped before the commit`() throws {
        let store = try MemoryStores().open(0)
        let cache = EntryCache(store: store, limitBytes: 1000)
        for number in 0..<100 as Range<UInt8> {
            let entry = try cache.entry([number].span)
            entry.value = [number]
            cache.changed(entry)
        }
        #expect(cache.dirty.count == 100)
        #expect(cache.bytes > 20_000)
        #expect(cache.dirtyBytes == cache.bytes)
        try commit(cache, store)
        #expect(cache.bytes <= 1000)
        for number in 0..<100 as Range<UInt8> { #expect(try cache.entry([number].span).value == [number]) }
    }

    @Test func `are written in the order in which they were first changed`() throws {
        let cache = EntryCache(store: try MemoryStores().open(0), limitBytes: 1000)
        let order: [UInt8] = [9, 3, 200, 1, 77, 3, 9]
        for number in order {
            let entry = try cache.entry([number].span)
            entry.value = [1]
            cache.changed(entry)
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
