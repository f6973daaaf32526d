// The current numbers of one partition: for alerts, which cannot wait for somebody to add up cells.

internal import Notices
internal import Zone

/// The stocks over all cells, the counts of the current day, and the time zone.
struct Overview: Sendable, Equatable {
    /// Currencies beyond this number are added to `other`.
    private static let limitCurrencies = 64
    static let otherCurrencies: Text = "other"

    /// The running sums of the deltas.
    private(set) var stocks = Sums()
    /// The monthly revenue by currency, each currency once.
    private(set) var monthlyRevenue: [(currency: Text, amount: Int64)] = []
    private(set) var day: Int64
    private(set) var today = Sums()
    /// The name of the time zone that defines the days. There may be several versions of its data.
    let zone: String

    init(day: Int64, zone: String) {
        self.day = day
        self.zone = zone
    }

    static func == (left: Overview, right: Overview) -> Bool { left.bytes == right.bytes }

    /// Starts a new day.
    mutating func begin(_ day: Int64) {
        guard day > self.day else { return }
        self.day = day
        today = Sums()
    }

    mutating func add(_ sums: Sums, of day: Int64, currency: Text) {
        var revenue: Int64 = 0
        for sum in sums.all {
            if sum.counter.isStock { stocks.add(sum.value, to: sum.counter) }
            if sum.counter.isMonthlyRevenue { revenue &+= sum.value }
        }
        if revenue != 0 { add(revenue, of: currency.orOther) }
        if day == self.day { today.add(sums) }
    }

    private mutating func add(_ amount: Int64, of currency: Text) {
        if let place = monthlyRevenue.firstIndex(where: { $0.currency == currency }) {
            monthlyRevenue[place].amount &+= amount
        } else if monthlyRevenue.count < Self.limitCurrencies || currency == Self.otherCurrencies {
            monthlyRevenue.append((currency, amount))
        } else {
            add(amount, of: Self.otherCurrencies)
        }
    }

    var bytes: [UInt8] {
        var writer = ByteWriter(capacity: 256)
        writer.sums(stocks)
        writer.signed(day)
        writer.sums(today)
        writer.unsigned(UInt64(monthlyRevenue.count))
        for (currency, amount) in monthlyRevenue {
            writer.text(currency)
            writer.signed(amount)
        }
        writer.text(Text(zone))
        return writer.bytes
    }

    /// nil if the bytes are not a valid overview.
    init?(_ bytes: [UInt8]) {
        var reader = ByteReader(bytes)
        guard let stocks = reader.sums(), let day = reader.signed(), let today = reader.sums(),
            let count = reader.count()
        else { return nil }
        self.stocks = stocks
        self.day = day
        self.today = today
        for _ in 0..<count {
            guard let currency = reader.text(), let amount = reader.signed() else { return nil }
            monthlyRevenue.append((currency, amount))
        }
        guard let zone = reader.text()?.description, Zone.isName(zone), reader.isAtEnd else { return nil }
        self.zone = zone
    }
}

extension Text {
    /// Texts that are not codes as in ISO 4217 count together.
    var orOther: Text {
        let isCode = bytes.count == 3 && bytes.allSatisfy { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
        return isCode ? self : Overview.otherCurrencies
    }
}

extension ChurnCounter {
    /// Its running sum is the current number.
    var isStock: Bool {
        switch self {
        case .activeDelta, .trialDelta, .graceDelta, .retryDelta: true
        default: false
        }
    }

    /// The name of a stock's state in metrics.
    var stateName: String {
        switch self {
        case .trialDelta: "trial"
        case .graceDelta: "grace"
        case .retryDelta: "retry"
        default: "active"
        }
    }

    var isMonthlyRevenue: Bool { name.hasPrefix("mrr") }
}
