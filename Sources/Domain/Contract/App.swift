// The configuration of the apps.

/// One app of the `apps` file.
public struct App: Sendable, Hashable {
    /// The name of an entitlement, and the products that give it: any of them is enough.
    public struct Entitlement: Sendable, Hashable {
        public let name: String
        public let productIds: [String]

        public init(name: String, productIds: [String]) {
            self.name = name
            self.productIds = productIds
        }
    }

    /// How long a non-renewing product lasts, which Apple does not say.
    public struct ProductPeriod: Sendable, Hashable {
        public let productId: String
        public let period: Period

        public init(productId: String, period: Period) {
            self.productId = productId
            self.period = period
        }
    }

    public let bundleId: String
    /// Required for what Apple signs in production; an app that is only in sandbox has none yet.
    public let appAppleId: Int64?
    /// In the order of the file.
    public let entitlements: [Entitlement]
    public let periods: [ProductPeriod]

    public init(bundleId: String, appAppleId: Int64?, entitlements: [Entitlement], periods: [ProductPeriod]) {
        self.bundleId = bundleId
        self.appAppleId = appAppleId
        self.entitlements = entitlements
        self.periods = periods
    }
}

/// A duration in calendar units, in ISO 8601 without hours: `P30D`, `P1Y6M`, `P2W`.
public struct Period: Sendable, Hashable {
    /// A century: more is probably a typing error.
    static let limitDigits = 4
    private static let limitDays = 36_525

    public private(set) var years = 0
    public private(set) var months = 0
    public private(set) var weeks = 0
    public private(set) var days = 0

    /// As in the file, without units that are zero.
    public var text: String {
        let parts = [(years, "Y"), (months, "M"), (weeks, "W"), (days, "D")]
        return "P" + parts.filter { $0.0 > 0 }.map { "\($0)\($1)" }.joined()
    }

    /// nil for any other text, for an empty duration and for more than a century.
    public init?(_ text: String) {
        var rest = Array(text.utf8)[...]
        guard rest.popFirst() == UInt8(ascii: "P"), !rest.isEmpty else { return nil }
        var units = Array("YMWD".utf8)[...]
        while !rest.isEmpty {
            let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            rest = rest.dropFirst(digits.count)
            // Units in descending order, each once.
            guard (1...Self.limitDigits).contains(digits.count),
                let count = Int(String(decoding: digits, as: UTF8.self)),
                let unit = rest.popFirst(), let place = units.firstIndex(of: unit)
            else { return nil }
            units = units[(place + 1)...]
            set(count, unit: unit)
        }
        guard (1...Self.limitDays).contains(years * 366 + months * 31 + weeks * 7 + days) else { return nil }
    }

    private mutating func set(_ count: Int, unit: UInt8) {
        switch unit {
        case UInt8(ascii: "Y"): years = count
        case UInt8(ascii: "M"): months = count
        case UInt8(ascii: "W"): weeks = count
        default: days = count
        }
    }
}
