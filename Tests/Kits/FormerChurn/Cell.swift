// A cell: the counts of one partition, one day and one kind of row.

internal import Contract
internal import JSON
internal import Notices

/// The kind of a row: counts are kept apart by these values. Absent values are empty.
struct CellParts: Sendable, Hashable {
    var bundleId: Text
    var productId: Text
    /// Empty for a product that does not renew.
    var billingPlan: Text
    var storefront: Text
    var currency: Text

    init(bundleId: Text, productId: Text, billingPlan: Text, storefront: Text, currency: Text) {
        self.bundleId = bundleId
        self.productId = productId
        self.billingPlan = billingPlan
        self.storefront = storefront
        self.currency = currency
    }

    fileprivate var all: [Text] { [bundleId, productId, billingPlan, storefront, currency] }
}

struct CellKey: Sendable, Hashable {
    /// Separates the parts in the key; no part contains it.
    static let divider = UInt8(ascii: "|")

    var partition: Int32
    var day: CivilDay
    var parts: CellParts

    init(partition: Int32, day: CivilDay, parts: CellParts) {
        self.partition = partition
        self.day = day
        self.parts = parts
    }

    /// The key of the cell's record.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(96)
        bytes += String(partition).utf8
        bytes.append(Self.divider)
        bytes += day.text
        for part in parts.all {
            bytes.append(Self.divider)
            bytes += part.bytes
        }
        return bytes
    }

    init?(_ bytes: [UInt8]) {
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

/// Sums by counter, without zeros. They wrap around instead of stopping a worker: subtracting what was added is still
/// exact.
struct Sums: Sendable, Equatable {
    struct Sum: Sendable, Equatable {
        var counter: ChurnCounter
        var value: Int64
    }

    /// Sorted by the counters' numbers.
    private(set) var all: [Sum] = []

    init() {}

    init(capacity: Int) { all.reserveCapacity(capacity) }

    var isEmpty: Bool { all.isEmpty }

    subscript(_ counter: ChurnCounter) -> Int64 {
        let place = place(of: counter)
        return place < all.count && all[place].counter == counter ? all[place].value : 0
    }

    mutating func add(_ value: Int64, to counter: ChurnCounter) {
        guard value != 0 else { return }
        let place = place(of: counter)
        guard place < all.count, all[place].counter == counter else {
            all.insert(Sum(counter: counter, value: value), at: place)
            return
        }
        all[place].value &+= value
        if all[place].value == 0 { all.remove(at: place) }
    }

    mutating func add(_ other: Sums) {
        for sum in other.all { add(sum.value, to: sum.counter) }
    }

    private func place(of counter: ChurnCounter) -> Int {
        var place = 0
        while place < all.count, all[place].counter.rawValue < counter.rawValue { place += 1 }
        return place
    }

    /// `"counts":{...},"money":{...}`
    func write(to json: inout JSONWriter) {
        json.name("counts")
        json.object { json in
            for sum in all where !sum.counter.isMoney { write(sum, to: &json) }
        }
        json.name("money")
        json.object { json in
            for sum in all where sum.counter.isMoney { write(sum, to: &json) }
        }
    }

    private func write(_ sum: Sum, to json: inout JSONWriter) {
        json.name(text: sum.counter.name)
        json.integer(sum.value)
    }
}

extension ByteWriter {
    mutating func sums(_ sums: Sums) {
        unsigned(UInt64(sums.all.count))
        for sum in sums.all {
            byte(sum.counter.rawValue)
            signed(sum.value)
        }
    }
}

extension ByteReader {
    mutating func sums() -> Sums? {
        guard let count = count() else { return nil }
        var sums = Sums(capacity: min(count, ChurnCounter.allCases.count))
        var last: ChurnCounter?
        for _ in 0..<count {
            guard let counter = byte().flatMap(ChurnCounter.init(rawValue:)), let value = signed(), value != 0,
                last.map({ $0.rawValue < counter.rawValue }) ?? true
            else { return nil }
            last = counter
            sums.append(counter, value)
        }
        return sums
    }
}

extension Sums {
    /// The counter must be greater than all counters so far.
    fileprivate mutating func append(_ counter: ChurnCounter, _ value: Int64) {
        all.append(Sum(counter: counter, value: value))
    }
}
