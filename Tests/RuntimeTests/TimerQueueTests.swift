import KafkaTestKit
import MemoryLog
import Store
import Testing

@testable import Runtime

/// What the queue has to give, from lists that are searched.
private struct TimerModel {
    var stored: Set<TimerEntry> = []
    var fresh: [TimerEntry] = []
    var taken: Set<TimerEntry> = []

    mutating func take(dueBy moment: Int64) -> TimerEntry? {
        let fromStore = stored.subtracting(taken).min()
        let fromFresh = fresh.min()
        // Of equals the stored one comes first; the other follows.
        if let timer = fromStore, timer.due <= moment, fromFresh.map({ timer <= $0 }) ?? true {
            taken.insert(timer)
            return timer
        }
        guard let timer = fromFresh, timer.due <= moment else { return nil }
        fresh.remove(at: fresh.firstIndex(of: timer)!)
        return timer
    }

    /// The changes that a commit writes.
    mutating func commit() -> StoreChanges {
        let changes = StoreChanges()
        for timer in taken { changes.removeTimer(due: timer.due, key: timer.key.span, kind: timer.kind) }
        for timer in fresh { changes.addTimer(due: timer.due, key: timer.key.span, kind: timer.kind) }
        stored.subtract(taken)
        stored.formUnion(fresh)
        (fresh, taken) = ([], [])
        return changes
    }
}

@Suite struct `The timers of a partition` {
    private func play(_ store: any PartitionStore, _ seed: UInt64) throws {
        var dice = SplitMix64(seed: seed)
        var queue = TimerQueue(store: store)
        var model = TimerModel()
        var moment: Int64 = 0
        for step in 0..<600 {
            switch Int.random(in: 0..<100, using: &dice) {
            case 0..<45:
                // Never due before what has fired: the turn sees to that.
                let timer = TimerEntry(
                    due: moment + Int64.random(in: 1...200, using: &dice),
                    key: [UInt8.random(in: 0...3, using: &dice)], kind: UInt8.random(in: 0...1, using: &dice))
                queue.set(timer)
                model.fresh.append(timer)
            case 45..<48:
                // More than one look into the store brings.
                for number in 0..<300 {
                    let timer = TimerEntry(
                        due: moment + 50, key: [9, UInt8(number % 256), UInt8(number / 256)], kind: 0)
                    queue.set(timer)
                    model.fresh.append(timer)
                }
            case 48..<60:
                try store.write(model.commit(), .process)
                queue.committed()
            case 60..<65:
                (model.fresh, model.taken) = ([], [])
                queue.rolledBack()
            default:
                moment += Int64.random(in: 0...60, using: &dice)
                var left = Int.random(in: 1...400, using: &dice)
                while left > 0 {
                    left -= 1
                    let (found, expected) = (try queue.take(dueBy: moment), model.take(dueBy: moment))
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
    func `come in order, from the store and those just set, through commits and roll-backs`(seed: UInt64) throws {
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
