import KafkaTestKit
import LogTestKit
import MemoryLog
import RocksStore
import Store
import Testing

@testable import Runtime

/// The timers that are set: in the open cycle, at the last commit, and in the store.
private struct TimerModel {
    struct Name: Hashable {
        var key: [UInt8]
        var kind: UInt8
    }

    var set: [Name: Int64] = [:]
    var committed: [Name: Int64] = [:]
    var stored: [Name: Int64] = [:]

    static func entries(_ timers: [Name: Int64]) -> [TimerEntry] {
        timers.map { TimerEntry(due: $0.value, key: $0.key.key, kind: $0.key.kind) }
    }

    mutating func take(dueBy moment: Int64) -> TimerEntry? {
        guard let first = Self.entries(set).min(), first.due <= moment else { return nil }
        set[Name(key: first.key, kind: first.kind)] = nil
        return first
    }

    /// Changes of the last commit that the store does not have yet.
    var unstored: [TimerEntry] { Self.entries(committed.filter { stored[$0.key] != $0.value }) }

    mutating func write() -> StoreChanges {
        let changes = StoreChanges()
        for timer in Self.entries(stored.filter({ committed[$0.key] != $0.value })) {
            changes.removeTimer(due: timer.due, key: timer.key.span, kind: timer.kind)
        }
        for timer in unstored { changes.addTimer(due: timer.due, key: timer.key.span, kind: timer.kind) }
        stored = committed
        return changes
    }
}

@Suite struct `The timers of a partition` {
    private func play(_ store: any PartitionStore, _ seed: UInt64) throws {
        var dice = SplitMix64(seed: seed)
        var queue = TimerQueue(store: store)
        var model = TimerModel()
        var moment: Int64 = 0
        /// The next timer that is still set. For the others the caller finds nothing in their entries.
        func take() throws -> TimerEntry? {
            while let timer = try queue.take(dueBy: moment) {
                if model.set[.init(key: timer.key, kind: timer.kind)] == timer.due { return timer }
            }
            return nil
        }
        func set(_ key: [UInt8], _ kind: UInt8, _ due: Int64) {
            model.set[.init(key: key, kind: kind)] = due
            queue.set(TimerEntry(due: due, key: key, kind: kind))
        }
        for step in 0..<600 {
            switch Int.random(in: 0..<100, using: &dice) {
            case 0..<40:
                // Never due before a timer that has fired: the turn ensures that.
                set(
                    [UInt8.random(in: 0...20, using: &dice)], UInt8.random(in: 0...1, using: &dice),
                    moment + Int64.random(in: 1...200, using: &dice))
            case 40..<45: model.set[.init(key: [UInt8.random(in: 0...20, using: &dice)], kind: 0)] = nil
            case 45..<48:
                // More than one read of the store returns.
                for number in 0..<300 { set([9, UInt8(number % 256), UInt8(number / 256)], 0, moment + 50) }
            case 48..<56: model.committed = model.set
            case 56..<60:
                model.committed = model.set
                try store.write(model.write(), .process)
                queue.stored()
            case 60..<65:
                model.set = model.committed
                queue.rolledBack(to: model.unstored)
            default:
                moment += Int64.random(in: 0...60, using: &dice)
                var left = Int.random(in: 1...400, using: &dice)
                while left > 0 {
                    left -= 1
                    let found = try take()
                    let expected = model.take(dueBy: moment)
                    guard found == expected else {
                        Issue.record(
                            "seed \(seed), step \(step): \(String(describing: found)), not \(String(describing: expected))"
                        )
                        return
                    }
                    if found == nil { break }
                }
            }
        }
    }

    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func `come in order, from the store and those just set, through commits, writes and roll-backs`(seed: UInt64) throws
    {
        try play(try MemoryStores().open(0), seed)
    }

    @Test func `come in the same order from a store on disk`() throws {
        let scratch = try ScratchDirectory("timers")
        let stores = try RocksStores(directory: scratch.path, cache: StoreCache(bytes: 1 << 20))
        for seed in 1...4 as ClosedRange<UInt64> {
            let store = try stores.open(Int32(seed))
            try play(store, seed)
            try store.close()
        }
    }
}
