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
    /// Its buffers are reused for every record; nothing else is.
    private var json = JSONDocument()

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
        guard let news = Facts(notification: json) else {
            metrics.undated.add()
            return
        }
        if news.hasUnusableTransaction { metrics.unusable.add() }
        // Many notifications are not about a subscription: tests, summaries, tokens of external purchases.
        guard news.saysAnything else { return }

        let place = try turn.state(key)
        var state = try load(place)
        guard state.facts.merge(news) else { return }
        try count(place, &state, turn, cause: Cause(json, partition: record.partition, offset: record.offset))
    }

    private static let strangeKey = ProcessFailure(
        "key", "the key of a subscription must be its originalTransactionId as UTF-8")

    public func fire(_ timer: TimerName, _ turn: Turn) throws(ProcessFailure) {
        let place = try turn.state(timer.key.span)
        if timer.key == Self.overviewKey {
            var overview = try overview(place, turn)
            overview.begin(Int64(zone.dayNumber(of: turn.clock)))
            keep(overview, place, at: turn.clock)
            return
        }
        var state = try load(place)
        try count(place, &state, turn, cause: nil)
    }

    private func load(_ place: KeyState) throws(ProcessFailure) -> ChainState {
        guard let bytes = place.value else { return ChainState() }
        guard let state = ChainState(bytes, format: place.format) else {
            throw ProcessFailure("state", "the \(bytes.count) bytes stored for this subscription are damaged")
        }
        return state
    }

    /// Adds the changes to the cells, and stores the facts.
    private func count(_ place: KeyState, _ state: inout ChainState, _ turn: Turn, cause: Cause?)
        throws(ProcessFailure)
    {
        let id = TransactionId(Text(place.key))
        let settlement = state.settle(at: turn.clock, originalTransactionId: id, zone)
        if !settlement.changes.isEmpty {
            let overviewPlace = try turn.state(Self.overviewKey.span)
            var overview = try overview(overviewPlace, turn)
            overview.begin(Int64(zone.dayNumber(of: turn.clock)))
            for change in settlement.changes {
                overview.add(change.sums, of: change.day.number, currency: change.parts.currency)
                try add(change.sums, to: change.parts, change.day, place.key, turn, cause: cause)
            }
            keep(overview, overviewPlace, at: turn.clock)
        }
        place.put(state.bytes.span)
        place.setTimer(Self.contributionChanges, due: settlement.nextChange)
    }

    // MARK: Cells

    private func add(
        _ change: Sums, to parts: CellParts, _ day: CivilDay, _ chain: [UInt8], _ turn: Turn, cause: Cause?
    ) throws(ProcessFailure) {
        let key = CellKey(partition: turn.partition, day: day, parts: parts).bytes
        let place = try turn.state(([Self.cellPrefix] + key).span)
        let mark = CellState.Mark(asOf: turn.recordClock, offset: turn.offset)
        var cell = try place.value.map { bytes throws(ProcessFailure) in try Self.cell(bytes) } ?? CellState(at: mark)
        cell.add(change, at: mark)
        place.put(cell.bytes.span)
        let event = ChurnEvent(
            originalTransactionId: chain, cell: key, change: change, at: cause?.signedDate ?? turn.clock, cause: cause)
        turn.emit(Output.events, key: chain.span, value: event.value(id: turn.nextID).span)
    }

    private static func cell(_ bytes: [UInt8]) throws(ProcessFailure) -> CellState {
        guard let cell = CellState(bytes) else {
            throw ProcessFailure("state", "the \(bytes.count) bytes stored for this cell are damaged")
        }
        return cell
    }

    /// Publishes a cell as it is before the commit; a cell whose sums have returned to zero is deleted.
    public func settle(_ place: KeyState, _ turn: Turn) throws(ProcessFailure) {
        if place.key == Self.overviewKey {
            if let bytes = place.value, let overview = Overview(bytes) { metrics.show(overview, of: turn.partition) }
            return
        }
        guard let bytes = place.value else { return }
        let cell = try Self.cell(bytes)
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
        let overview = try overview(place, turn)
        if overview.zone != zone.name {
            throw ProcessFailure(
                "zone",
                "partition \(turn.partition) has counted by days of \(overview.zone), but churn.zone is "
                    + "\(zone.name): set it back to \(overview.zone)")
        }
        metrics.show(overview, of: turn.partition)
    }

    public func closed(_ partition: Int32) { metrics.show(nil, of: partition) }

    private func overview(_ place: KeyState, _ turn: Turn) throws(ProcessFailure) -> Overview {
        guard let bytes = place.value else {
            return Overview(day: Int64(zone.dayNumber(of: turn.clock)), zone: zone.name)
        }
        guard let overview = Overview(bytes) else {
            throw ProcessFailure(
                "state",
                "the \(bytes.count) bytes stored for partition \(turn.partition) are damaged, or from a build that "
                    + "this one does not know: start the build that wrote them")
        }
        return overview
    }

    private func keep(_ overview: Overview, _ place: KeyState, at clock: Int64) {
        place.put(overview.bytes.span)
        let end = zone.start(of: CivilDay(number: overview.day + 1))
        // The last representable day has no end.
        place.setTimer(Self.dayEnds, due: end > clock ? end : nil)
    }
}
