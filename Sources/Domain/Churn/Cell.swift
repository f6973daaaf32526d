// A cell: the counts of one partition, one day and one kind of row.

public import Contract
internal import JSON
public import Notices
internal import SubscriptionHistory

/// The kind of a row: counts are kept apart by these values. Absent values are empty.
public struct CellParts: Sendable, Hashable {
    public var bundleId: Text
    public var productId: Text
    /// Empty for a product that does not renew.
    public var billingPlan: Text
    public var storefront: Text
    public var currency: Text

    public init(bundleId: Text, productId: Text, billingPlan: Text, storefront: Text, currency: Text) {
        self.bundleId = bundleId
        self.productId = productId
        self.billingPlan = billingPlan
        self.storefront = storefront
        self.currency = currency
    }

    fileprivate var all: [Text] { [bundleId, productId, billingPlan, storefront, currency] }
}

public struct CellKey: Sendable, Hashable {
    /// Separates the parts in the key; no part contains it.
    static let divider = UInt8(ascii: "|")

    public var partition: Int32
    public var day: CivilDay
    public var parts: CellParts

    public init(partition: Int32, day: CivilDay, parts: CellParts) {
        self.partition = partition
        self.day = day
        self.parts = parts
    }

    /// The key of the cell's record.
    public var bytes: [UInt8] {
        var writer = ByteWriter(capacity: 96)
        writer.cell(partition: partition, day)
        for part in parts.all { part.bytes.withUnsafeBufferPointer { writer.part($0) } }
        return writer.bytes
    }

    public init?(_ bytes: [UInt8]) {
        let parts = bytes.split(separator: Self.divider, omittingEmptySubsequences: false)
        guard parts.count == 7, let partition = Int32(String(decoding: parts[0], as: UTF8.self)), partition >= 0,
            let day = CivilDay(String(decoding: parts[1], as: UTF8.self))
        else { return nil }
        self.init(
            partition: partition, day: day,
            parts: CellParts(
                bundleId: Text(Array(parts[2])), productId: Text(Array(parts[3])), billingPlan: Text(Array(parts[4])),
                storefront: Text(Array(parts[5])), currency: Text(Array(parts[6]))))
    }
}

/// A key is written part by part: so no text of it is copied before.
extension ByteWriter {
    mutating func cell(partition: Int32, _ day: CivilDay) {
        decimal(Int(partition), width: 1)
        byte(CellKey.divider)
        decimal(day.year, width: 4)
        byte(UInt8(ascii: "-"))
        decimal(day.month, width: 2)
        byte(UInt8(ascii: "-"))
        decimal(day.day, width: 2)
    }

    mutating func part(_ text: UnsafeBufferPointer<UInt8>) {
        byte(CellKey.divider)
        append(text)
    }

    private mutating func decimal(_ value: Int, width: Int) {
        if value < 0 { byte(UInt8(ascii: "-")) }
        let rest = value.magnitude
        if rest >= 10 || width > 1 { decimal(Int(rest / 10), width: width - 1) }
        byte(UInt8(ascii: "0") + UInt8(rest % 10))
    }
}

/// Sums by counter, without zeros. They wrap around instead of stopping a worker: subtracting what was added is still
/// exact.
public struct Sums: Sendable, Equatable {
    public struct Sum: Sendable, Equatable, BitwiseCopyable {
        public var counter: ChurnCounter
        public var value: Int64
    }

    /// Sorted by the counters' numbers.
    public private(set) var all: [Sum] = []

    public init() {}

    /// Empties them. They keep their memory.
    mutating func removeAll() { all.removeAll(keepingCapacity: true) }

    public var isEmpty: Bool { all.isEmpty }

    public subscript(_ counter: ChurnCounter) -> Int64 {
        let place = place(of: counter)
        return place < all.count && all[place].counter == counter ? all[place].value : 0
    }

    public mutating func add(_ value: Int64, to counter: ChurnCounter) {
        guard value != 0 else { return }
        let place = place(of: counter)
        guard place < all.count, all[place].counter == counter else {
            all.insert(Sum(counter: counter, value: value), at: place)
            return
        }
        all[place].value &+= value
        if all[place].value == 0 { all.remove(at: place) }
    }

    public mutating func add(_ other: Sums) { other.all.withUnsafeBufferPointer { add($0) } }

    public mutating func add(_ others: UnsafeBufferPointer<Sum>) {
        for sum in others { add(sum.value, to: sum.counter) }
    }

    private func place(of counter: ChurnCounter) -> Int {
        var place = 0
        while place < all.count, all[place].counter.rawValue < counter.rawValue { place += 1 }
        return place
    }

    /// `"counts":{...},"money":{...}`
    func write(to json: inout JSONWriter) { all.withUnsafeBufferPointer { $0.write(to: &json) } }
}

extension UnsafeBufferPointer<Sums.Sum> {
    /// `"counts":{...},"money":{...}`
    func write(to json: inout JSONWriter) {
        json.name("counts")
        json.object { json in
            for sum in self where !sum.counter.isMoney { sum.write(to: &json) }
        }
        json.name("money")
        json.object { json in
            for sum in self where sum.counter.isMoney { sum.write(to: &json) }
        }
    }
}

extension Sums.Sum {
    fileprivate func write(to json: inout JSONWriter) {
        json.name(text: counter.name)
        json.integer(value)
    }
}

// MARK: As bytes

extension Sums {
    func write(to writer: inout ByteWriter) {
        writer.unsigned(UInt64(all.count))
        for sum in all {
            writer.byte(sum.counter.rawValue)
            writer.signed(sum.value)
        }
    }

    /// Reads what `write` wrote. After invalid bytes the reader is invalid.
    mutating func read(_ reader: inout KeptReader) {
        removeAll()
        for _ in 0..<reader.count() {
            let counter = ChurnCounter(rawValue: reader.byte())
            let value = reader.signed()
            guard reader.isValid, let counter, value != 0, all.last.map({ $0.counter.rawValue < counter.rawValue }) ?? true
            else { return reader.refuse() }
            all.append(Sum(counter: counter, value: value))
        }
    }
}
