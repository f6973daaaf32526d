// The current numbers of one partition: for alerts, which cannot wait for somebody to add up cells.

internal import Contract
public import Notices
internal import SubscriptionHistory
internal import Zone

/// The stocks over all cells, the counts of the current day, and the time zone.
public struct Overview: Sendable, Equatable {
    /// Currencies beyond this number are added to `other`.
    private static let limitCurrencies = 64

    /// The running sums of the deltas.
    public private(set) var stocks = Sums()
    /// The monthly revenue by currency, each currency once.
    public private(set) var monthlyRevenue: [(currency: CurrencyCode, amount: Int64)] = []
    public private(set) var day: Int64
    public private(set) var today = Sums()
    private var zoneName: [UInt8]

    public init(day: Int64, zone: String) {
        self.day = day
        zoneName = Array(zone.utf8)
    }

    /// The name of the time zone that defines the days. There may be several versions of its data.
    public var zone: String { String(decoding: zoneName, as: UTF8.self) }

    public static func == (left: Overview, right: Overview) -> Bool {
        left.stocks == right.stocks && left.day == right.day && left.today == right.today
            && left.zoneName == right.zoneName
            && left.monthlyRevenue.elementsEqual(right.monthlyRevenue) { $0 == $1 }
    }

    /// Starts a new day.
    public mutating func begin(_ day: Int64) {
        guard day > self.day else { return }
        self.day = day
        today.removeAll()
    }

    /// - Parameter currency: as the row has it, or empty.
    public mutating func add(
        _ sums: UnsafeBufferPointer<Sums.Sum>, of day: Int64, currency: UnsafeBufferPointer<UInt8>
    ) {
        var revenue: Int64 = 0
        for sum in sums {
            if sum.counter.isStock { stocks.add(sum.value, to: sum.counter) }
            if sum.counter.isMonthlyRevenue { revenue &+= sum.value }
        }
        if revenue != 0 { add(revenue, of: CurrencyCode(orOther: currency)) }
        if day == self.day { today.add(sums) }
    }

    private mutating func add(_ amount: Int64, of currency: CurrencyCode) {
        if let place = monthlyRevenue.firstIndex(where: { $0.currency == currency }) {
            monthlyRevenue[place].amount &+= amount
        } else if monthlyRevenue.count < Self.limitCurrencies || currency == .other {
            monthlyRevenue.append((currency, amount))
        } else {
            add(amount, of: .other)
        }
    }

    public func write(to writer: inout ByteWriter) {
        stocks.write(to: &writer)
        writer.signed(day)
        today.write(to: &writer)
        writer.unsigned(UInt64(monthlyRevenue.count))
        for (currency, amount) in monthlyRevenue {
            writer.unsigned(UInt64(currency.count))
            for place in 0..<currency.count { writer.byte(currency.byte(place)) }
            writer.signed(amount)
        }
        zoneName.withUnsafeBufferPointer { writer.text($0) }
    }

    /// Reads what `write` wrote, into the memory that the overview before has used.
    /// - Returns: false: the bytes are not a valid overview.
    public mutating func read(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var reader = KeptReader(bytes)
        stocks.read(&reader)
        day = reader.signed()
        guard (CivilDay.first.number...CivilDay.last.number).contains(day) else { return false }
        today.read(&reader)
        monthlyRevenue.removeAll(keepingCapacity: true)
        for _ in 0..<reader.count() {
            guard let currency = CurrencyCode(reader.text().bytes) else { return false }
            monthlyRevenue.append((currency, reader.signed()))
        }
        let name = reader.text().bytes
        guard reader.isValid, reader.isAtEnd else { return false }
        if name.elementsEqual(zoneName) { return true }
        guard Zone.isName(String(decoding: name, as: UTF8.self)) else { return false }
        zoneName.removeAll(keepingCapacity: true)
        zoneName.append(contentsOf: name)
        return true
    }
}

/// A currency as in ISO 4217, or that which stands for all others: a plain value.
public struct CurrencyCode: Sendable, Hashable, BitwiseCopyable, CustomStringConvertible {
    /// Its bytes, the first one lowest.
    private let packed: UInt64

    public static let other = CurrencyCode("other")

    private init(_ word: StaticString) {
        packed = (0..<word.utf8CodeUnitCount).reduce(0) { $0 | UInt64(word.utf8Start[$1]) << (8 * UInt64($1)) }
    }

    /// nil: it is neither a code nor `other`.
    init?(_ text: UnsafeBufferPointer<UInt8>) {
        guard text.count <= 8 else { return nil }
        var packed: UInt64 = 0
        for (place, byte) in text.enumerated() { packed |= UInt64(byte) << (8 * UInt64(place)) }
        self.packed = packed
        let isCode = text.count == 3 && text.allSatisfy { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
        guard isCode || self == .other else { return nil }
    }

    /// Texts that are not codes count together.
    public init(orOther text: UnsafeBufferPointer<UInt8>) { self = CurrencyCode(text) ?? .other }

    var count: Int { (71 - packed.leadingZeroBitCount) / 8 }

    func byte(_ place: Int) -> UInt8 { UInt8(truncatingIfNeeded: packed >> (8 * UInt64(place))) }

    public var description: String { String(decoding: (0..<count).map(byte), as: UTF8.self) }
}

extension ChurnCounter {
    /// Its running sum is the current number.
    public var isStock: Bool {
        switch self {
        case .activeDelta, .trialDelta, .graceDelta, .retryDelta: true
        default: false
        }
    }

    /// The name of a stock's state in metrics.
    public var stateName: String {
        switch self {
        case .trialDelta: "trial"
        case .graceDelta: "grace"
        case .retryDelta: "retry"
        default: "active"
        }
    }

    public var isMonthlyRevenue: Bool {
        (ChurnCounter.mrrNew.rawValue...ChurnCounter.mrrReactivation.rawValue).contains(rawValue)
    }
}
