import KafkaTestKit
import TestTraits
import Testing

@testable import RocksStore
@testable import Store

@Suite(.ownThreads) struct `Timers of a store` {
    @Test(arguments: StoreKind.allCases)
    func `come by due time, then key, then kind`(_ kind: StoreKind) throws {
        let store = try Place(kind).stores.open(0)
        let timers = [
            TimerEntry(.min, "z"), TimerEntry(-1, "b"), TimerEntry(0, "a", 255), TimerEntry(0, "a\0", 0),
            TimerEntry(0, "ab", 0), TimerEntry(0, "b", 0), TimerEntry(0, "b", 1), TimerEntry(.max, "a"),
        ]
        try store.write(add: timers.reversed())
        #expect(try store.timers() == timers)
        #expect(try store.firstTimer() == .min)
        #expect(try store.timers(dueBy: -1) == Array(timers[..<2]))
        #expect(try store.timers(dueBy: .min) == Array(timers[..<1]))
        #expect(try store.timers(after: timers[2], dueBy: 0, limit: 2) == Array(timers[3...4]))
        #expect(try store.timers(after: TimerEntry(0, "a\0", 9), dueBy: 0, limit: 1) == [timers[4]])
        #expect(try store.timers(after: timers.last, dueBy: .max, limit: 9) == [])
        #expect(try store.timers(after: nil, dueBy: .max, limit: 0) == [])
        try store.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `are found again when an earlier one was added or the first one removed`(_ kind: StoreKind) throws {
        let store = try Place(kind).stores.open(0)
        try store.write(add: [TimerEntry(10), TimerEntry(20)])
        #expect(try store.firstTimer() == 10)
        try store.write(remove: [TimerEntry(10)])
        #expect(try store.firstTimer() == 20)
        try store.write(add: [TimerEntry(5)])
        #expect(try store.firstTimer() == 5)
        #expect(try store.timers(dueBy: 4) == [])
        try store.write(remove: [TimerEntry(5), TimerEntry(20)])
        #expect(try store.firstTimer() == nil)
        try store.write(add: [TimerEntry(-7)])
        #expect(try store.timers() == [TimerEntry(-7)])
        try store.close()
    }

    /// Ten thousand operations, compared with a sorted array.
    @Test(arguments: StoreKind.allCases, [UInt64.random(in: 0...999_999)])
    func `are those of a sorted array`(_ kind: StoreKind, _ seed: UInt64) throws {
        var dice = Dice(seed: seed)
        let place = try Place(kind)
        var store = try place.stores.open(0)
        var known: [TimerEntry] = []
        var operations = 0
        while operations < 10_000 {
            let (add, remove) = changes(known, &dice)
            known = (Set(known).subtracting(remove).union(add)).sorted()
            try store.write(add: add, remove: remove, Bool.random(using: &dice) ? .process : .none)
            operations += add.count + remove.count
            let moment = dice.awkwardTimer().due
            let last = Bool.random(using: &dice) ? nil : dice.awkwardTimer()
            let limit = Int.random(in: 1...20, using: &dice)
            let expected = known.filter { $0.due <= moment && (last == nil || last! < $0) }.prefix(limit)
            if Bool.random(using: &dice) {
                #expect(try store.timers(after: last, dueBy: moment, limit: limit) == Array(expected), "seed \(seed)")
            }
            if Bool.random(using: &dice) { #expect(try store.firstTimer() == known.first?.due, "seed \(seed)") }
            if Int.random(in: 0..<200, using: &dice) == 0 {
                try store.close()
                store = try place.stores.open(0)
            }
        }
        #expect(try store.timers() == known, "seed \(seed)")
        try store.close()
    }

    /// Mostly removes the first ones, as when they fire.
    private func changes(_ known: [TimerEntry], _ dice: inout Dice) -> (add: [TimerEntry], remove: [TimerEntry]) {
        let add = (0..<Int.random(in: 0...8, using: &dice)).map { _ in dice.awkwardTimer() }
        var remove = Array(known.prefix(Int.random(in: 0...8, using: &dice)))
        remove.append(dice.awkwardTimer())
        if Int.random(in: 0..<20, using: &dice) == 0 { remove = known }
        return (add, remove)
    }

    @Test(arguments: [UInt64.random(in: 0...999_999)])
    func `have keys on disk in their own order`(_ seed: UInt64) {
        var dice = Dice(seed: seed)
        for _ in 0..<100_000 {
            let (one, two) = (dice.awkwardTimer(), dice.awkwardTimer())
            let (left, right) = (TimerKey.bytes(of: one), TimerKey.bytes(of: two))
            #expect(left.lexicographicallyPrecedes(right) == (one < two), "seed \(seed): \(one), \(two)")
            #expect((left == right) == (one == two), "seed \(seed): \(one), \(two)")
            #expect(left.withUnsafeBytes { TimerKey.entry($0) } == one, "seed \(seed)")
            let end = TimerKey.end(dueBy: two.due)
            #expect(left.lexicographicallyPrecedes(end) == (one.due <= two.due), "seed \(seed): \(one), \(two.due)")
        }
    }

    @Test func `are not read from bytes that are none`() {
        let good = TimerKey.bytes(of: TimerEntry(1, "a\0b", 3))
        for count in 0..<good.count { #expect(good[..<count].withUnsafeBytes { TimerKey.entry($0) } == nil) }
        for bad in [good + [0], [1] + good.dropFirst(), good.dropLast(2) + [1, 3]] {
            #expect(bad.withUnsafeBytes { TimerKey.entry($0) } == nil)
        }
    }

    /// On disk a removed timer remains as a tombstone for a while: repeated reads must not become slower with their number.
    @Test func `cost the same after a hundred thousand were removed`() throws {
        let store = try Place(.rocks).stores.open(0)
        let count: Int64 = 100_000
        try store.write(add: (0..<count).map { TimerEntry($0) })
        try store.write(add: [TimerEntry(count + 1)], remove: (0..<count).map { TimerEntry($0) })
        #expect(try store.timers(dueBy: count) == [])
        // Stepping over all tombstones takes some 10 ms, a thousand times 10 s.
        let time = try threadTime {
            for moment in 0..<1000 {
                _ = try store.timers(dueBy: Int64(moment))
                _ = try store.timers(dueBy: count + 1)
                _ = try store.firstTimer()
            }
        }
        #expect(time < .seconds(2))
        try store.close()
    }
}
