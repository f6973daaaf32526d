// Cells added up over partitions, by kind of row and by day: what every report is made from.

public import Contract
internal import Notices

/// Grows with the kinds of rows and with the days, not with subscriptions or partitions. A copy shares everything until one of the
/// two changes: who answers takes one, and holds nobody up.
public struct CellTable: Sendable {
    /// One kind of row.
    struct Column: Sendable {
        let parts: CellParts
        /// In order, by their numbers.
        fileprivate(set) var days: [Int32] = []
        /// Of each day.
        fileprivate(set) var sums: [PackedSums] = []
    }

    private(set) var columns: [Column] = []
    private var places: [CellParts: Int] = [:]
    /// The latest clock that a cell was written by; nil: there was none.
    public private(set) var asOf: Int64?

    public init() {}

    /// The number of kinds and days that something is counted of.
    public var count: Int { columns.reduce(0) { $0 + $1.days.count } }

    /// Of which something is counted; nil: nothing is.
    var firstDay: CivilDay? { columns.compactMap(\.days.first).min().map { CivilDay(number: Int64($0)) } }

    public mutating func see(asOf: Int64) { self.asOf = max(asOf, self.asOf ?? asOf) }

    /// A partition's cell is another one now. Without sums it is not there.
    public mutating func replace(_ old: Sums, by new: Sums, of parts: CellParts, on day: CivilDay) {
        guard old != new else { return }
        var change = new
        for sum in old.all { change.add(0 &- sum.value, to: sum.counter) }
        add(change, of: parts, on: day)
    }

    public mutating func add(_ cell: CellRecord) {
        add(cell.sums, of: cell.key.parts, on: cell.key.day)
        see(asOf: cell.mark.asOf)
    }

    private mutating func add(_ more: Sums, of parts: CellParts, on day: CivilDay) {
        guard !more.isEmpty, let number = Int32(exactly: day.number) else { return }
        let place = place(of: parts)
        let row = columns[place].row(of: number)
        guard row < columns[place].days.count, columns[place].days[row] == number else {
            columns[place].days.insert(number, at: row)
            columns[place].sums.insert(PackedSums(more), at: row)
            return
        }
        var sums = columns[place].sums[row].sums
        sums.add(more)
        if sums.isEmpty {
            columns[place].days.remove(at: row)
            columns[place].sums.remove(at: row)
        } else {
            columns[place].sums[row] = PackedSums(sums)
        }
    }

    private mutating func place(of parts: CellParts) -> Int {
        if let place = places[parts] { return place }
        places[parts] = columns.count
        columns.append(Column(parts: parts))
        return columns.count - 1
    }
}

extension CellTable.Column {
    /// The first that is not before the day.
    func row(of day: Int32) -> Int {
        // Most are written about the newest days.
        if let last = days.last, last < day { return days.count }
        var (low, high) = (0, days.count)
        while low < high {
            let middle = (low + high) / 2
            if days[middle] < day { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

/// Sums in a fourth of the space.
public struct PackedSums: Sendable, Equatable {
    public let bytes: [UInt8]

    public init(_ sums: Sums) {
        var writer = ByteWriter(capacity: 2 + sums.all.count * 4)
        writer.sums(sums)
        bytes = writer.bytes
    }

    /// nil for bytes that no sums have.
    public init?(bytes: [UInt8]) {
        var reader = ByteReader(bytes)
        guard reader.sums() != nil, reader.isAtEnd else { return nil }
        self.bytes = bytes
    }

    public var sums: Sums {
        var reader = ByteReader(bytes)
        return reader.sums() ?? Sums()
    }

    func each(_ body: (Counter, Int64) -> Void) {
        var reader = ByteReader(bytes)
        for _ in 0..<(reader.count() ?? 0) {
            guard let counter = reader.byte().flatMap(Counter.init(rawValue:)), let value = reader.signed() else {
                return
            }
            body(counter, value)
        }
    }
}
