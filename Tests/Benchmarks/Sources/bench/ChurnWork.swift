// The work of the worker `churn` for a notification, without an engine around it.

import CLoops
import Churn
import Contract
import JSON
import KafkaTestKit
import Notices
import Platform
import Zone

func churnState(end: Int64) -> [UInt8] {
    var json = JSONDocument()
    var state = ChainState()
    for text in Notifications.history(end: end) {
        guard (try? json.read(text.span)) != nil, let facts = Facts(notification: json) else {
            preconditionFailure("the template is not a notification")
        }
        state.facts.merge(facts)
    }
    _ = state.settle(
        at: Notifications.lastNews(end: end), originalTransactionId: TransactionId(Text(Notifications.key)), .utc)
    return state.bytes
}

struct ChurnWork: ~Copyable {
    /// Sizes in bytes. The key of a cell is also that of the output.
    struct Made {
        var event = 0
        var state = 0
        var cellKey = 0
        var cellState = 0
        var overview = 0
    }

    private static let partition: Int32 = 11
    private var notifications = Notifications()
    private var json = JSONDocument()
    private let known = churnState(end: Notifications.usualEnd)
    private let id = TransactionId(Text(Notifications.key))
    private var offset: Int64 = 100_000
    /// The key of the one cell that changes.
    private var kept: (key: CellKey, state: [UInt8])?
    private var overview = Overview(day: Zone.utc.day(of: Notifications.usualEnd).number, zone: "UTC").bytes

    /// Reads a renewal and the stored state, and writes all results except the cell.
    mutating func renewal() throws -> Made {
        notifications.make(0, of: 0)
        offset += 1
        let value = notifications.value
        try json.read(value.span)
        guard let news = Facts(notification: json), var state = ChainState(known) else {
            throw NotInTime("a state", limit: .zero)
        }
        state.facts.merge(news)
        let settlement = state.settle(at: notifications.timestamp, originalTransactionId: id, .utc)
        guard settlement.changes.count == 1, settlement.nextChange != nil else {
            throw NotInTime("one change", limit: .zero)
        }
        var made = Made()
        for change in settlement.changes { try add(change.parts, change.day, change.sums, &made) }
        made.state = state.bytes.count
        return made
    }

    private mutating func add(_ parts: CellParts, _ day: CivilDay, _ sums: Sums, _ made: inout Made) throws {
        guard var overview = Overview(overview) else { throw NotInTime("an overview", limit: .zero) }
        overview.add(sums, of: day.number, currency: parts.currency)
        self.overview = overview.bytes
        let key = CellKey(partition: Self.partition, day: day, parts: parts)
        let mark = CellState.Mark(asOf: notifications.timestamp, offset: offset)
        var cell = kept.flatMap { CellState($0.state) } ?? CellState(at: mark)
        cell.add(sums, at: mark)
        kept = (key, cell.bytes)
        let cause = Cause(json, partition: Self.partition, offset: offset)
        let event = ChurnEvent(
            originalTransactionId: Notifications.key, cell: key.bytes, change: sums, at: notifications.timestamp,
            cause: cause)
        made.event = event.value(id: "11-100000-1").count
        made.cellKey = key.bytes.count
        made.cellState = cell.bytes.count
        made.overview = self.overview.count
    }

    /// Encodes the cell as before a commit. Returns its size in bytes.
    borrowing func cell() throws -> Int {
        guard let kept, let state = CellState(kept.state) else { throw NotInTime("a cell", limit: .zero) }
        return CellRecord(key: kept.key, sums: state.sums, mark: state.mark).value.count
    }
}

/// The cell is written once per hundred records: about as often as in a worker's transactions.
func runChurnBare(records: Int) throws -> RunFigures {
    var work = ChurnWork()
    let meter = Meter()
    meter.start()
    for n in 0..<records {
        _ = try work.renewal()
        if n % 100 == 0 { _ = try work.cell() }
    }
    meter.stop()
    return RunFigures(try requireSpending(meter, within: .zero))
}
