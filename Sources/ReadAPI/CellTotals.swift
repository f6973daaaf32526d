// All cells of all partitions, added up in memory.

internal import Churn
internal import Follow
internal import Synchronization

/// Kept up by the follower, cell by cell, so that no answer has to read what years have left: some hundred bytes for each kind of
/// row and day. Exact as long as every change of a store is told; whoever closes a store makes all of it be counted anew.
final class CellTotals: Sendable {
    /// What a record, or several of one cell, have changed.
    struct Change {
        var key: CellKey
        var old: KeptCell?
        var new: KeptCell?
    }

    private struct State {
        var table = CellTable()
        /// By partition: what is in the table; nil: not counted.
        var places: [CopyNote.Place?]
    }

    private let state: Mutex<State>

    init(partitions: Int) { state = Mutex(State(places: Array(repeating: nil, count: partitions))) }

    /// A moment of it, which nobody changes any more. nil: not everything is counted.
    var reading: (table: CellTable, places: [CopyNote.Place])? {
        state.withLock { state in
            let places = state.places.compactMap { $0 }
            return places.count == state.places.count ? (state.table, places) : nil
        }
    }

    /// Of kinds of rows and days.
    var count: Int { state.withLock { $0.table.count } }

    func isCounted(_ partition: Int32) -> Bool { state.withLock { $0.places[Int(partition)] != nil } }

    func forget() {
        state.withLock { $0 = State(places: Array(repeating: nil, count: $0.places.count)) }
    }

    /// All cells of a partition, of which none is in the table.
    func count(_ partition: Int32, _ cells: [Change], at place: CopyNote.Place) {
        state.withLock { state in
            for cell in cells { state.table.apply(cell) }
            state.places[Int(partition)] = place
        }
    }

    /// What has changed of a partition. What is not counted yet is found when it is.
    func apply(_ partition: Int32, _ changes: [Change], at place: CopyNote.Place) {
        guard isCounted(partition) else { return }
        count(partition, changes, at: place)
    }
}

extension CellTable {
    fileprivate mutating func apply(_ change: CellTotals.Change) {
        replace(
            change.old?.sums.sums ?? Sums(), by: change.new?.sums.sums ?? Sums(), of: change.key.parts,
            on: change.key.day)
        if let asOf = change.new?.asOf { see(asOf: asOf) }
    }
}
