// The work of the worker `churn` for a notification, without an engine around it.

import CLoops
import Churn
import Contract
import JSON
import KafkaTestKit
import Notices
import Platform
import SubscriptionHistory
import Zone

func churnState(end: Int64) -> [UInt8] {
    churnState(after: Notifications.history(end: end), at: Notifications.lastNews(end: end))
}

/// What the worker keeps after these records.
func churnState(after records: [[UInt8]], at clock: Int64) -> [UInt8] {
    ChurnWork(after: records, at: clock).kept ?? []
}

struct ChurnWork: ~Copyable {
    /// Sizes in bytes. The key of a cell is also that of the output.
    struct Made {
        var changes = 0
        var event = 0
        var state = 0
        var cellKey = 0
        var cellState = 0
        var overview = 0
    }

    private static let partition: Int32 = 11
    private static let eventID: StaticString = "11-100000-1"
    private var notifications = Notifications()
    private var json = JSONDocument()
    private let reader = NoticeReader()
    private var chain = ChainState(.utc)
    /// The state of the subscription. Each notification is about the same one.
    private(set) var kept: [UInt8]?
    /// The timer of the kept state.
    private var due: Int64?
    private var offset: Int64 = 100_000
    /// The cell that changed last, and its state.
    private var cellKey: [UInt8] = []
    private var keptCell: [UInt8] = []
    private var cell = CellState(at: CellState.Mark(asOf: 0, offset: 0))
    private var keptOverview: [UInt8]
    private var overview = Overview(day: Zone.utc.day(of: Notifications.usualEnd).number, zone: "UTC")
    private var writer = ByteWriter(capacity: 16_384)
    private var value = JSONWriter(capacity: 1_024)

    /// It has heard these records.
    init(
        after records: [[UInt8]] = Notifications.history(end: Notifications.usualEnd),
        at clock: Int64 = Notifications.lastNews(end: Notifications.usualEnd)
    ) {
        var writer = ByteWriter()
        overview.write(to: &writer)
        keptOverview = writer.bytes
        for record in records {
            guard (try? hear(record, at: clock)) ?? nil != nil else { preconditionFailure("each period is news") }
            keep()
        }
    }

    /// Hears a renewal.
    mutating func renewal() throws -> Made {
        notifications.make(0, of: 0)
        let value = notifications.value
        guard let made = try hear(value, at: notifications.timestamp), made.changes == 1, chain.nextChange != nil else {
            throw NotInTime("one change", limit: .zero)
        }
        return made
    }

    /// Reads a notification and the kept bytes, and writes all results except the records of cells. nil: it is not new.
    mutating func hear(_ notification: [UInt8], at clock: Int64) throws -> Made? {
        try json.read(notification.span)
        offset += 1
        let notice = reader.read(json)
        guard let news = ChurnNews(notice, of: json) else { throw NotInTime("a date", limit: .zero) }
        guard let kept else {
            chain.removeAll()
            return made(of: notice, news, at: clock)
        }
        return kept.withUnsafeBufferPointer { chain.read($0) ? made(of: notice, news, at: clock) : nil }
    }

    private mutating func made(of notice: NoticeNews, _ news: ChurnNews, at clock: Int64) -> Made? {
        guard chain.merge(news) else { return nil }
        var made = Made()
        let cause = ChurnEvent.Cause(notice, partition: Self.partition, offset: offset)
        let key = Notifications.key
        key.withUnsafeBufferPointer { key in
            chain.settle(
                at: clock, originalTransactionId: PurchaseId(TextPlace(start: key.baseAddress!, count: key.count)),
                isInStep: due.map { clock < $0 } ?? false)
            guard !chain.changes.isEmpty else { return }
            let event = ChurnEvent(originalTransactionId: key, clock: clock, cause: cause)
            let isOverview = keptOverview.withUnsafeBufferPointer { overview.read($0) }
            precondition(isOverview, "an overview")
            for number in chain.changes.indices { add(chain.changes[number], event, &made) }
            writer.removeAll()
            overview.write(to: &writer)
            made.overview = writer.written.count
        }
        writer.removeAll()
        chain.write(to: &writer)
        made.state = writer.written.count
        return made
    }

    private mutating func add(_ change: ChainState.Change, _ event: ChurnEvent, _ made: inout Made) {
        overview.add(chain.sums(of: change), of: change.day, currency: chain.currency(of: change))
        writer.removeAll()
        chain.writeKey(of: change, partition: Self.partition, to: &writer)
        made.cellKey = writer.written.count
        cellKey.removeAll(keepingCapacity: true)
        cellKey.append(contentsOf: writer.written)
        let mark = CellState.Mark(asOf: event.clock, offset: offset)
        if !(keptCell.withUnsafeBufferPointer { cell.read($0) }) { cell.removeAll(at: mark) }
        cell.add(chain.sums(of: change), at: mark)
        value.removeAll()
        Self.eventID.withUTF8Buffer { id in
            event.write(id: id, cell: writer.written, change: chain.sums(of: change), to: &value)
        }
        made.event += value.bytes.count
        writer.removeAll()
        cell.write(to: &writer)
        made.cellState = writer.written.count
        keptCell.removeAll(keepingCapacity: true)
        keptCell.append(contentsOf: writer.written)
        made.changes += 1
    }

    /// Keeps the state that was written last.
    private mutating func keep() {
        kept = Array(writer.written)
        due = chain.nextChange
    }

    /// Encodes the cell as before a commit. Returns its size in bytes.
    borrowing func cellRecord() throws -> Int {
        guard let key = CellKey(cellKey) else { throw NotInTime("a cell", limit: .zero) }
        return CellRecord(key: key, sums: cell.sums, mark: cell.mark).value.count
    }
}

/// The cell is written once per hundred records: about as often as in a worker's transactions.
func runChurnBare(records: Int) throws -> RunFigures {
    var work = ChurnWork()
    let meter = Meter()
    meter.start()
    for n in 0..<records {
        _ = try work.renewal()
        if n % 100 == 0 { _ = try work.cellRecord() }
    }
    meter.stop()
    return RunFigures(try requireSpending(meter, within: .zero))
}
