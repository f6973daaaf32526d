// The product's own code from records to cells, for tests.

import Contract
import JSON
import Notices
import PlainChurn
import SubscriptionHistory
import Testing
import Zone

@testable import Churn

let second: Int64 = 1_000
let hour: Int64 = 3_600 * second
let day: Int64 = 24 * hour

/// What the worker uses again for one subscription after the other.
final class Desk {
    private var json = JSONDocument()
    private let reader = NoticeReader()
    var state: ChainState

    init(_ zone: Zone = .utc) { state = ChainState(zone) }

    /// nil: it says nothing about a subscription. Valid until the next record is read.
    func news(_ record: [UInt8]) throws -> ChurnNews? {
        try json.read(record.span)
        guard let news = ChurnNews(reader.read(json), of: json), news.saysAnything else { return nil }
        return news
    }

    /// With the state that was kept.
    func with<Result>(kept: [UInt8]?, _ body: (inout ChainState) throws -> Result) throws -> Result {
        guard let kept else {
            state.removeAll()
            return try body(&state)
        }
        return try kept.withUnsafeBufferPointer { bytes in
            let isState = state.read(bytes)
            try #require(isState, "the state cannot be read")
            return try body(&state)
        }
    }
}

/// The text stays where it is for ever.
func purchaseId(_ id: String) -> PurchaseId {
    let bytes = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: max(id.utf8.count, 1))
    _ = bytes.initialize(from: id.utf8)
    let purchase = PurchaseId(TextPlace(start: bytes.baseAddress!, count: id.utf8.count))
    if purchase.text == nil { bytes.deallocate() }
    return purchase
}

extension ChainState {
    /// What is written, and the same again without copies of kept bytes.
    mutating func written() throws -> [UInt8] {
        var writer = ByteWriter()
        write(to: &writer)
        var fresh = ByteWriter()
        write(to: &fresh, copiesKept: false)
        try #require(writer.bytes == fresh.bytes)
        return writer.bytes
    }

    /// What was last added to the cells.
    var postings: [Posting] {
        var all = Scratch<Posting>()
        contribution.copy(to: &all)
        return Array(all.values)
    }

    mutating func settled(at clock: Int64, _ id: PurchaseId) -> Sums {
        settle(at: clock, originalTransactionId: id)
        var all = Sums()
        for number in changes.indices { all.add(sums(of: changes[number])) }
        return all
    }

    func key(of change: Change, partition: Int32) -> [UInt8] {
        var writer = ByteWriter()
        writeKey(of: change, partition: partition, to: &writer)
        return writer.bytes
    }
}

/// One subscription as the worker keeps it, and the cells that it contributes to.
struct Chain {
    let id: String
    let partition: Int32
    let purchase: PurchaseId
    var zone = Zone.utc { didSet { desk = Desk(zone) } }
    private(set) var desk = Desk()
    /// nil: nothing was heard.
    private(set) var kept: [UInt8]?
    private(set) var cells: [String: Sums] = [:]
    /// The sum over all days.
    private(set) var totals: [CellParts: Sums] = [:]
    private(set) var nextChange: Int64?
    private(set) var clock = Int64.min
    /// How often only the tail of the life was counted.
    private(set) var tails = 0

    init(_ id: String, partition: Int32 = 3) {
        self.id = id
        self.partition = partition
        purchase = purchaseId(id)
    }

    /// In the order of a partition: timers first, then the record.
    mutating func hear(_ record: [UInt8], at instant: Int64) throws {
        try advance(to: instant)
        guard let news = try desk.news(record) else { return }
        var chain = self
        try desk.with(kept: kept) { state in
            if state.merge(news) { try chain.settle(&state, isInStep: chain.nextChange != nil) }
        }
        self = chain
    }

    mutating func advance(to instant: Int64) throws {
        while let due = nextChange, due <= instant {
            clock = due
            var chain = self
            try desk.with(kept: kept) { try chain.settle(&$0, isInStep: true) }
            self = chain
        }
        clock = max(clock, instant)
    }

    /// As when a timer could not be processed.
    mutating func loseTimer() { nextChange = nil }

    private mutating func settle(_ state: inout ChainState, isInStep: Bool) throws {
        state.settle(at: clock, originalTransactionId: purchase, isInStep: isInStep)
        if state.hasCountedTail { tails += 1 }
        for number in state.changes.indices {
            let change = state.changes[number]
            let name = String(decoding: state.key(of: change, partition: partition), as: UTF8.self)
            let sums = state.sums(of: change)
            cells[name, default: Sums()].add(sums)
            if cells[name]?.isEmpty ?? false { cells[name] = nil }
            totals[try #require(CellKey(Array(name.utf8))).parts, default: Sums()].add(sums)
        }
        nextChange = state.nextChange
        kept = try state.written()
    }
}

extension Sums {
    var plain: PlainCell {
        var cell = PlainCell()
        for sum in all {
            if sum.counter.isMoney {
                cell.money[sum.counter.name] = sum.value
            } else {
                cell.counts[sum.counter.name] = sum.value
            }
        }
        return cell
    }
}

extension Chain {
    var plain: [String: PlainCell] { cells.mapValues(\.plain) }

    /// The cells as they would be published, without their times.
    func records() throws -> [[UInt8]] {
        let mark = CellState.Mark(asOf: 0, offset: 0)
        return try cells.sorted { $0.key < $1.key }.map { name, sums in
            CellRecord(key: try #require(CellKey(Array(name.utf8))), sums: sums, mark: mark).value
        }
    }
}

/// The differences of two of them as text; nil: they are equal.
func difference(_ left: [String: PlainCell], _ right: [String: PlainCell]) -> String? {
    var lines: [String] = []
    for key in Set(left.keys).union(right.keys).sorted() where left[key] != right[key] {
        let (one, other) = (left[key] ?? PlainCell(), right[key] ?? PlainCell())
        for (mine, theirs) in [(one.counts, other.counts), (one.money, other.money)] {
            for name in Set(mine.keys).union(theirs.keys).sorted() where mine[name] != theirs[name] {
                lines.append("\(key) \(name): \(mine[name] ?? 0), not \(theirs[name] ?? 0)")
            }
        }
    }
    return lines.isEmpty ? nil : lines.joined(separator: "\n")
}
