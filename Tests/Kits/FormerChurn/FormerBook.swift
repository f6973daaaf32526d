// What the worker did with one notification or timer: the oracle for the domain that took the place of this one.

internal import Contract
internal import JSON
internal import Notices
public import Zone

/// What was written about one subscription.
public struct FormerOutput: Equatable {
    public var state: [UInt8] = []
    public var due: Int64?
    /// In the order in which they are written.
    public var events: [[UInt8]] = []
    /// The states of the cells that changed, by key.
    public var cells: [[UInt8]: [UInt8]] = [:]
    public var overview: [UInt8] = []

    public init() {}
}

public enum FormerOutcome: Equatable {
    case notJSON, undated, damagedState
    case nothing(isUnusable: Bool)
    case nothingNew(isUnusable: Bool)
    case written(FormerOutput, isUnusable: Bool)
}

/// All cells of a partition, and its overview.
public struct FormerBook {
    private let zone: Zone
    private let partition: Int32
    private var cells: [[UInt8]: [UInt8]] = [:]
    private var overview: [UInt8]?
    private var json = FormerDocument()

    public init(_ zone: Zone, partition: Int32) {
        self.zone = zone
        self.partition = partition
    }

    public mutating func hear(
        _ value: [UInt8], key: [UInt8], kept: [UInt8]?, clock: Int64, offset: Int64
    ) -> FormerOutcome {
        guard json.read(value) else { return .notJSON }
        guard let news = Facts(notification: json.document) else { return .undated }
        guard news.saysAnything else { return .nothing(isUnusable: news.hasUnusableTransaction) }
        guard var state = kept.map({ ChainState($0) }) ?? ChainState() else { return .damagedState }
        guard state.facts.merge(news) else { return .nothingNew(isUnusable: news.hasUnusableTransaction) }
        let cause = Cause(json.document, partition: partition, offset: offset)
        return .written(
            count(&state, key, clock: clock, offset: offset, cause), isUnusable: news.hasUnusableTransaction)
    }

    public mutating func fire(key: [UInt8], kept: [UInt8]?, clock: Int64, offset: Int64) -> FormerOutcome {
        guard var state = kept.map({ ChainState($0) }) ?? ChainState() else { return .damagedState }
        return .written(count(&state, key, clock: clock, offset: offset, nil), isUnusable: false)
    }

    private mutating func count(
        _ state: inout ChainState, _ key: [UInt8], clock: Int64, offset: Int64, _ cause: Cause?
    ) -> FormerOutput {
        var output = FormerOutput()
        let settlement = state.settle(at: clock, originalTransactionId: TransactionId(Text(key)), zone)
        let today = Int64(zone.dayNumber(of: clock))
        var overview = overview.flatMap { Overview($0) } ?? Overview(day: today, zone: zone.name)
        overview.begin(today)
        for change in settlement.changes {
            overview.add(change.sums, of: change.day.number, currency: change.parts.currency)
            let cellKey = CellKey(partition: partition, day: change.day, parts: change.parts).bytes
            let mark = CellState.Mark(asOf: clock, offset: offset)
            var cell = cells[cellKey].flatMap { CellState($0) } ?? CellState(at: mark)
            cell.add(change.sums, at: mark)
            cells[cellKey] = cell.bytes
            output.cells[cellKey] = cell.bytes
            let event = ChurnEvent(
                originalTransactionId: key, cell: cellKey, change: change.sums, at: cause?.signedDate ?? clock,
                cause: cause)
            output.events.append(event.value(id: "id-\(output.events.count)"))
        }
        self.overview = overview.bytes
        output.overview = overview.bytes
        output.state = state.bytes
        output.due = settlement.nextChange
        return output
    }

    /// What is published of a cell.
    public func record(of key: [UInt8]) -> [UInt8]? {
        guard let cell = cells[key].flatMap({ CellState($0) }), let key = CellKey(key) else { return nil }
        return CellRecord(key: key, sums: cell.sums, mark: cell.mark).value
    }

    /// A worker may have written these bytes. Some that it read it could not have written.
    public static func mayHaveWritten(_ state: [UInt8]) -> Bool {
        guard let read = ChainState(state), read.bytes == state,
            Set(read.facts.texts).count == read.facts.texts.count
        else { return false }
        return read.facts.notices.allSatisfy { notice in
            guard let transaction = notice.transaction else { return true }
            if case .text(let number) = transaction.id, let text = read.facts.text(number),
                case .number = TransactionId(text).form
            {
                return false
            }
            return (0...10_000_000_000_000).contains(transaction.price ?? 0)
                && (0...100_000).contains(transaction.revocationPercentage ?? 0)
        }
    }
}

/// Keeps its buffers.
private final class FormerDocument {
    var document = JSONDocument()

    func read(_ value: [UInt8]) -> Bool {
        (try? document.read(value.span)) != nil && document.kind(of: document.root) == .object
    }
}
