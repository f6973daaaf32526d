// The product's own code from records to cells, for tests.

import Churn
import Contract
import JSON
import Notices
import PlainChurn
import Testing
import Zone

let second: Int64 = 1_000
let hour: Int64 = 3_600 * second
let day: Int64 = 24 * hour

func facts(_ record: [UInt8]) throws -> Facts? {
    var json = JSONDocument()
    try json.read(record.span)
    return Facts(notification: json)
}

/// One subscription as the worker keeps it, and the cells that it contributes to.
struct Chain {
    let id: String
    let partition: Int32
    var zone = Zone.utc
    private(set) var state = ChainState()
    private(set) var cells: [String: Sums] = [:]
    /// The sum over all days.
    private(set) var totals: [CellParts: Sums] = [:]
    private(set) var nextChange: Int64?
    private(set) var clock = Int64.min

    init(_ id: String, partition: Int32 = 3) {
        self.id = id
        self.partition = partition
    }

    /// In the order of a partition: timers first, then the record.
    mutating func hear(_ record: [UInt8], at instant: Int64) throws {
        advance(to: instant)
        guard let news = try facts(record), news.saysAnything else { return }
        guard state.facts.merge(news) else { return }
        settle()
    }

    mutating func advance(to instant: Int64) {
        while let due = nextChange, due <= instant {
            clock = due
            // Nothing was read from bytes, so the facts are those that were written last.
            settle(keepsBytes: false)
        }
        clock = max(clock, instant)
    }

    private mutating func settle(keepsBytes: Bool = true) {
        // The state is stored as bytes.
        guard var kept = keepsBytes ? ChainState(state.bytes) : state else {
            preconditionFailure("the state cannot be read")
        }
        let settlement = kept.settle(
            at: clock, originalTransactionId: TransactionId(Text(id)), zone)
        for change in settlement.changes {
            let key = CellKey(partition: partition, day: change.day, parts: change.parts).bytes
            let name = String(decoding: key, as: UTF8.self)
            cells[name, default: Sums()].add(change.sums)
            if cells[name]?.isEmpty ?? false { cells[name] = nil }
            totals[change.parts, default: Sums()].add(change.sums)
        }
        state = kept
        nextChange = settlement.nextChange
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
