// The worker `churn`: it reads notifications and writes numbers.

internal import Churn
public import Contract
internal import Crypto
internal import JSON
public import Log
internal import Notices
public import NotificationWorker
internal import Records
public import Runtime
internal import SubscriptionHistory
internal import Telemetry
public import Zone

/// Stores the facts of each subscription and its contribution to the cells. Whenever the contribution changes, by a
/// notification or by time, it adds the difference.
///
/// Each subscription has one timer, at the next time when its contribution may change without a notification. The cells
/// are states too, under their own keys, and are published once per commit.
public final class ChurnProcessor: Processor {
    public let definition: WorkerDefinition
    private let zone: Zone
    private let metrics: ChurnMetrics
    /// The memory of these is used again for every record; nothing else is.
    private var json = JSONDocument()
    private let reader = NoticeReader()
    private var chain: ChainState
    private var cell = CellState(at: CellState.Mark(asOf: 0, offset: 0))
    private var overview: Overview
    private var cellKey = ByteWriter(capacity: 256)
    private var bytes = ByteWriter(capacity: 4_096)
    private var value = JSONWriter(capacity: 1_024)
    private var id: [UInt8] = []

    private enum Output {
        static let cells = 0
        static let events = 1
    }
    private static let contributionChanges: UInt8 = 0
    /// None of Apple's ids begins with it.
    private static let cellPrefix: UInt8 = 0
    /// The key of the partition's overview; no cell has it.
    private static let overviewKey: [UInt8] = [cellPrefix]

    /// - Parameters:
    ///   - app: `perennial/<version>`.
    ///   - shadow: the replay that the worker runs for, if any.
    public init(
        _ names: Names, zone: Zone, partitions: Int32, app: String, metrics: ChurnMetrics, shadow: Shadow? = nil
    ) {
        self.zone = zone
        self.metrics = metrics
        chain = ChainState(zone)
        overview = Overview(day: 0, zone: zone.name)
        var definition = WorkerDefinition(
            .churn, names, outputs: [(.churnCells, .churnCell), (.churnEvents, .churnEvent)], partitions: partitions,
            app: app)
        definition.stateFormat = ChainState.format
        definition.settledPrefix = Self.cellPrefix
        definition.rules = CellRules(zone).header
        definition.failureReasons = ["json", "key", "no_notification", "state", "zone"]
        self.definition = definition.shadow(shadow)
    }

    // MARK: Subscriptions

    public func process(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {
        guard let key = record.key, let value = record.value else {
            throw ProcessFailure("no_notification", "a notification must have a key and a value")
        }
        guard key.count > 0, key[0] != Self.cellPrefix else {
            throw Self.strangeKey
        }
        do { _ = try UTF8Span(validating: key) } catch { throw Self.strangeKey }
        do throws(JSONFault) { try json.read(value) } catch { throw ProcessFailure("json", "\(error)") }
        guard json.kind(of: json.root) == .object else {
            throw ProcessFailure("json", "the value of a notification must be an object")
        }
        let notice = reader.read(json)
        guard let news = ChurnNews(notice, of: json) else {
            metrics.undated.add()
            return
        }
        if news.hasUnusableTransaction { metrics.unusable.add() }
        // Many notifications are not about a subscription: tests, summaries, tokens of external purchases.
        guard news.saysAnything else { return }

        let place = try turn.state(key)
        let cause = ChurnEvent.Cause(notice, partition: record.partition, offset: record.offset)
        try withKept(place) { () throws(ProcessFailure) in
            guard chain.merge(news) else { return }
            // A timer that is still to come has not been lost, and nothing changes before it.
            let isInStep = place.due(Self.contributionChanges).map { turn.clock < $0 } ?? false
            try count(place, turn, cause, isInStep: isInStep)
        }
    }

    private static let strangeKey = ProcessFailure(
        "key", "the key of a subscription must be its originalTransactionId as UTF-8")

    public func fire(_ timer: TimerName, _ turn: Turn) throws(ProcessFailure) {
        let place = try turn.state(timer.key.span)
        if timer.key == Self.overviewKey {
            try readOverview(place, turn)
            overview.begin(Int64(zone.dayNumber(of: turn.clock)))
            keepOverview(place, at: turn.clock)
            return
        }
        try withKept(place) { () throws(ProcessFailure) in
            // This is the next change, so it is the only one since the last.
            try count(place, turn, nil, isInStep: true)
        }
    }

    /// The kept bytes stay where they are while `body` uses them.
    private func withKept(
        _ place: KeyState, _ body: () throws(ProcessFailure) -> Void
    ) throws(ProcessFailure) {
        guard let kept = place.value else {
            chain.removeAll()
            return try body()
        }
        try kept.withUnsafeBufferPointer { (bytes) throws(ProcessFailure) in
            guard chain.read(bytes, format: place.format) else {
                throw ProcessFailure("state", "the \(bytes.count) bytes stored for this subscription are damaged")
            }
            try body()
        }
    }

    /// Adds the changes to the cells, and stores the facts.
    private func count(
        _ place: KeyState, _ turn: Turn, _ cause: ChurnEvent.Cause?, isInStep: Bool
    ) throws(ProcessFailure) {
        let key = place.key
        try key.withUnsafeBufferPointer { (key) throws(ProcessFailure) in
            chain.settle(
                at: turn.clock,
                originalTransactionId: PurchaseId(TextPlace(start: key.baseAddress!, count: key.count)),
                isInStep: isInStep)
            if !chain.changes.isEmpty {
                try publish(ChurnEvent(originalTransactionId: key, clock: turn.clock, cause: cause), turn)
            }
        }
        bytes.removeAll()
        chain.write(to: &bytes)
        bytes.written.withSpan { place.put($0) }
        place.setTimer(Self.contributionChanges, due: chain.nextChange)
    }

    // MARK: Cells

    private func publish(_ event: ChurnEvent, _ turn: Turn) throws(ProcessFailure) {
        let place = try turn.state(Self.overviewKey.span)
        try readOverview(place, turn)
        overview.begin(Int64(zone.dayNumber(of: turn.clock)))
        for number in chain.changes.indices {
            let change = chain.changes[number]
            overview.add(chain.sums(of: change), of: change.day, currency: chain.currency(of: change))
            try add(change, event, turn)
        }
        keepOverview(place, at: turn.clock)
    }

    private func add(_ change: ChainState.Change, _ event: ChurnEvent, _ turn: Turn) throws(ProcessFailure) {
        cellKey.removeAll()
        cellKey.byte(Self.cellPrefix)
        chain.writeKey(of: change, partition: turn.partition, to: &cellKey)
        let place = try cellKey.written.withSpan { (key) throws(ProcessFailure) in try turn.state(key) }
        let mark = CellState.Mark(asOf: turn.recordClock, offset: turn.offset)
        if !(try readCell(place)) { cell.removeAll(at: mark) }
        cell.add(chain.sums(of: change), at: mark)
        bytes.removeAll()
        cell.write(to: &bytes)
        bytes.written.withSpan { place.put($0) }
        id.removeAll(keepingCapacity: true)
        turn.appendNextID(to: &id)
        value.removeAll()
        let key = UnsafeBufferPointer(rebasing: cellKey.written.dropFirst())
        id.withUnsafeBufferPointer { event.write(id: $0, cell: key, change: chain.sums(of: change), to: &value) }
        let written = value.bytes
        event.originalTransactionId.withSpan { turn.emit(Output.events, key: $0, value: written.span) }
    }

    /// - Returns: false: nothing was counted in this cell yet.
    private func readCell(_ place: KeyState) throws(ProcessFailure) -> Bool {
        guard let kept = place.value else { return false }
        guard kept.withUnsafeBufferPointer({ cell.read($0) }) else {
            throw ProcessFailure("state", "the \(kept.count) bytes stored for this cell are damaged")
        }
        return true
    }

    /// Publishes a cell as it is before the commit; a cell whose sums have returned to zero is deleted.
    public func settle(_ place: KeyState, _ turn: Turn) throws(ProcessFailure) {
        if place.key == Self.overviewKey {
            if let kept = place.value, kept.withUnsafeBufferPointer({ overview.read($0) }) {
                metrics.show(overview, of: turn.partition)
            }
            return
        }
        guard try readCell(place) else { return }
        let key = Array(place.key.dropFirst())
        guard let cellKey = CellKey(key) else { throw ProcessFailure("state", "the key of this cell is damaged") }
        let record = cell.sums.isEmpty ? nil : CellRecord(key: cellKey, sums: cell.sums, mark: cell.mark).value
        if let record {
            emit(record, of: key, cell.mark, turn)
        } else if place.isCommitted {
            emit(nil, of: key, cell.mark, turn)
        }
        // If a cell appeared and disappeared between two commits, it was never published. And while a record is being
        // processed, it may add again what its timers have subtracted: then nothing has changed after all.
        if record == nil, !turn.isUnderWay { place.delete() }
    }

    private func emit(_ value: [UInt8]?, of key: [UInt8], _ mark: CellState.Mark, _ turn: Turn) {
        let origin = Origin(
            id: id(mark.offset, of: value ?? key, turn), offset: mark.offset, timestamp: mark.asOf)
        if let value {
            turn.emit(Output.cells, as: origin, key: key.span, value: value.span)
        } else {
            turn.emit(Output.cells, as: origin, key: key.span, value: nil)
        }
    }

    /// Depends only on the published content: it must not show where commits happen.
    private func id(_ offset: Int64, of content: [UInt8], _ turn: Turn) -> [UInt8] {
        Array("\(turn.partition)-\(offset)-\(hexadecimal(Array(SHA256.digest(content.span).prefix(8))))".utf8)
    }

    // MARK: Overview

    private static let dayEnds: UInt8 = 1

    /// Days of two zones in one count would be meaningless, and nobody would notice. So the counted cells stay as they
    /// are.
    public func opened(_ turn: Turn) throws(ProcessFailure) {
        let place = try turn.state(Self.overviewKey.span)
        guard place.value != nil else { return metrics.show(nil, of: turn.partition) }
        try readOverview(place, turn)
        if overview.zone != zone.name {
            throw ProcessFailure(
                "zone",
                "partition \(turn.partition) has counted by days of \(overview.zone), but churn.zone is "
                    + "\(zone.name): set it back to \(overview.zone)")
        }
        metrics.show(overview, of: turn.partition)
    }

    public func closed(_ partition: Int32) { metrics.show(nil, of: partition) }

    private func readOverview(_ place: KeyState, _ turn: Turn) throws(ProcessFailure) {
        guard let kept = place.value else {
            overview = Overview(day: Int64(zone.dayNumber(of: turn.clock)), zone: zone.name)
            return
        }
        guard kept.withUnsafeBufferPointer({ overview.read($0) }) else {
            throw ProcessFailure(
                "state",
                "the \(kept.count) bytes stored for partition \(turn.partition) are damaged, or from a build that "
                    + "this one does not know: start the build that wrote them")
        }
    }

    private func keepOverview(_ place: KeyState, at clock: Int64) {
        bytes.removeAll()
        overview.write(to: &bytes)
        bytes.written.withSpan { place.put($0) }
        let end = zone.start(of: CivilDay(number: overview.day + 1))
        // The last representable day has no end.
        place.setTimer(Self.dayEnds, due: end > clock ? end : nil)
    }
}

extension UnsafeBufferPointer<UInt8> {
    fileprivate func withSpan<Result, Failure>(_ body: (Span<UInt8>) throws(Failure) -> Result) throws(Failure)
        -> Result
    {
        try body(Span(_unsafeElements: self))
    }
}
