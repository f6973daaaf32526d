// Sums of the cells of all partitions, in memory.

internal import Churn
internal import Follow
internal import Synchronization

/// The follower updates them cell by cell, so that no answer has to read the cells of years: they need some hundred
/// bytes for each kind of row and day. They are exact if every change of a store is reported. When a store is closed,
/// everything is counted again.
final class CellTotals: Sendable {
    /// The change of one cell by a record, or by several.
    struct Change {
        var key: CellKey
        var old: KeptCell?
        var new: KeptCell?
    }

    private struct State {
        var table = CellTable()
        /// By partition: the position that is counted; nil: the partition is not counted.
        var places: [CopyNote.Place?]
    }

    private let state: Mutex<State>

    init(partitions: Int) { state = Mutex(State(places: Array(repeating: nil, count: partitions))) }

    /// A snapshot of the table, which nobody changes any more. nil: some partition is not counted.
    var reading: (table: CellTable, places: [CopyNote.Place])? {
        state.withLock { state in
            let places = state.places.compactMap { $0 }
            return places.count == state.places.count ? (state.table, places) : nil
        }
    }

    /// Number of kinds of rows and days.
    var count: Int { state.withLock { $0.table.count } }

    func isCounted(_ partition: Int32) -> Bool { state.withLock { $0.places[Int(partition)] != nil } }

    func forget() {
        state.withLock { $0 = State(places: Array(repeating: nil, count: $0.places.count)) }
    }

    /// Counts all cells of a partition, none of which may be in the table.
    func count(_ partition: Int32, _ cells: [Change], at place: CopyNote.Place) {
        state.withLock { state in
            for cell in cells { state.table.apply(cell) }
            state.places[Int(partition)] = place
        }
    }

    /// Applies changes of a partition. Changes before its cells are counted are included in that count.
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
