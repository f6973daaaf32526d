// Sums of cells over all partitions, by kind of row and day: every report is made from them.

public import Contract
internal import Notices
internal import SubscriptionHistory

/// Its size grows with the kinds of rows and the days, not with subscriptions or partitions. A copy shares all memory
/// until one of the two changes: so a request works on a copy and blocks nobody.
public struct CellTable: Sendable {
    /// One kind of row.
    struct Column: Sendable {
        let parts: CellParts
        /// Day numbers, sorted.
        fileprivate(set) var days: [Int32] = []
        /// One for each day.
        fileprivate(set) var sums: [PackedSums] = []
    }

    private(set) var columns: [Column] = []
    private var places: [CellParts: Int] = [:]
    /// The latest clock of any cell; nil: there are no cells.
    public private(set) var asOf: Int64?

    public init() {}

    /// The number of pairs of kind and day that have counts.
    public var count: Int { columns.reduce(0) { $0 + $1.days.count } }

    /// The first day that has counts. It is nil if no day has any.
    var firstDay: CivilDay? { columns.compactMap(\.days.first).min().map { CivilDay(number: Int64($0)) } }

    public mutating func see(asOf: Int64) { self.asOf = max(asOf, self.asOf ?? asOf) }

    /// Replaces the sums of one partition's cell. Empty sums remove it.
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
    /// The first row that is not before the day.
    func row(of day: Int32) -> Int {
        // Most updates concern the newest days.
        if let last = days.last, last < day { return days.count }
        var (low, high) = (0, days.count)
        while low < high {
            let middle = (low + high) / 2
            if days[middle] < day { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

/// Sums in a quarter of the memory.
public struct PackedSums: Sendable, Equatable {
    public let bytes: [UInt8]

    public init(_ sums: Sums) {
        var writer = ByteWriter(capacity: 2 + sums.all.count * 4)
        sums.write(to: &writer)
        bytes = writer.bytes
    }

    /// nil if the bytes are not valid sums.
    public init?(bytes: [UInt8]) {
        guard Self.read(bytes) != nil else { return nil }
        self.bytes = bytes
    }

    public var sums: Sums { Self.read(bytes) ?? Sums() }

    private static func read(_ bytes: [UInt8]) -> Sums? {
        bytes.withUnsafeBufferPointer { bytes in
            var (reader, sums) = (KeptReader(bytes), Sums())
            sums.read(&reader)
            return reader.isValid && reader.isAtEnd ? sums : nil
        }
    }

    func each(_ body: (ChurnCounter, Int64) -> Void) {
        var reader = ByteReader(bytes)
        for _ in 0..<(reader.count() ?? 0) {
            guard let counter = reader.byte().flatMap(ChurnCounter.init(rawValue:)), let value = reader.signed() else {
                return
            }
            body(counter, value)
        }
    }
}
