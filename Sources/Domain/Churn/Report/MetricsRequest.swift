// The parameters of a report.

public import Contract
public import Notices

public enum Dimension: String, Sendable, CaseIterable {
    case product, plan, storefront, currency
}

/// The length of the parts of a series.
public enum Interval: String, Sendable, CaseIterable {
    case day
    /// Begins on Monday.
    case week
    case month

    /// The first day of the part that begins after this day.
    func next(after day: Int64) -> Int64 {
        switch self {
        case .day: return day + 1
        // Day 0 was a Thursday.
        case .week: return (day + 3).floorDivided(by: 7) * 7 + 4
        case .month:
            let day = CivilDay(number: day)
            return CivilDay(year: day.year, month: day.month, day: 1).adding(months: 1).number
        }
    }
}

public struct MetricsRequest: Sendable, Equatable {
    /// What is wrong; parameters have their names from the request.
    public enum Flaw: Error, Equatable {
        case day(parameter: String)
        case order
        case tooLong
        case dimension(String)
        case interval(String)
    }

    /// Ten years: an answer has a row for each open day, and a chart a place for each day.
    public static let limitDays = 3_660

    public let from: CivilDay
    /// The first day not included.
    public let to: CivilDay
    /// Each dimension once, in the order of `Dimension`.
    public let by: [Dimension]
    /// nil: no series; the days are reported as a whole.
    public let interval: Interval?

    public init(
        from: CivilDay, to: CivilDay, by: [Dimension] = [], interval: Interval? = nil
    ) throws(Flaw) {
        guard from < to else { throw .order }
        guard to.number - from.number <= Int64(Self.limitDays) else { throw .tooLong }
        self.from = from
        self.to = to
        self.by = Dimension.allCases.filter(by.contains)
        self.interval = interval
    }

    /// - Parameter by: names separated by commas, with or without spaces around them; an empty text means none.
    public init(from: String, to: String, by: String, interval: String? = nil) throws(Flaw) {
        guard let first = CivilDay(from) else { throw .day(parameter: "from") }
        guard let end = CivilDay(to) else { throw .day(parameter: "to") }
        var dimensions: [Dimension] = []
        for name in by.isEmpty ? [] : by.split(separator: ",", omittingEmptySubsequences: false) {
            let words = name.split(separator: " ")
            guard words.count == 1, let dimension = Dimension(rawValue: String(words[0])) else {
                throw .dimension(String(name))
            }
            dimensions.append(dimension)
        }
        let length = try interval.map { name throws(Flaw) in
            guard let length = Interval(rawValue: name) else { throw .interval(name) }
            return length
        }
        try self.init(from: first, to: end, by: dimensions, interval: length)
    }

    /// The same request, grouped by currency as well.
    public var byCurrency: MetricsRequest {
        MetricsRequest(self, by: Dimension.allCases.filter { by.contains($0) || $0 == .currency })
    }

    private init(_ other: MetricsRequest, by: [Dimension]) {
        from = other.from
        to = other.to
        interval = other.interval
        self.by = by
    }

    var days: Range<Int64> { from.number..<to.number }

    /// The parts of a series. The first and the last one may be shorter than the interval.
    var parts: [Range<Int64>] {
        guard let interval else { return [days] }
        var parts: [Range<Int64>] = []
        var start = days.lowerBound
        while start < days.upperBound {
            let end = min(interval.next(after: start), days.upperBound)
            parts.append(start..<end)
            start = end
        }
        return parts
    }

    /// The parts of a group's name, with their names in cells.
    public func names(of group: CellParts) -> [(name: StaticString, value: Text)] {
        by.flatMap { dimension -> [(name: StaticString, value: Text)] in
            switch dimension {
            case .product: [("bundleId", group.bundleId), ("productId", group.productId)]
            case .plan: [("billingPlan", group.billingPlan)]
            case .storefront: [("storefront", group.storefront)]
            case .currency: [("currency", group.currency)]
            }
        }
    }
}

extension CellParts {
    /// The name of the group of a row: parts that are not grouped by are empty.
    func only(_ dimensions: [Dimension]) -> CellParts {
        func part(_ dimension: Dimension, _ text: Text) -> Text { dimensions.contains(dimension) ? text : "" }
        // The same product id in two apps means two products.
        return CellParts(
            bundleId: part(.product, bundleId), productId: part(.product, productId),
            billingPlan: part(.plan, billingPlan), storefront: part(.storefront, storefront),
            currency: part(.currency, currency))
    }
}

/// How far the counts reach: the latest clock of any cell.
public struct Horizon: Sendable {
    public let asOf: Int64?
    /// The current day, which is not over. nil: there are no counts, and no day is over.
    public let day: CivilDay?
    private let dayOf: @Sendable (Int64) -> CivilDay

    /// - Parameter dayOf: gives the day of an instant in the time zone of the cells.
    public init(_ asOf: Int64?, dayOf: @escaping @Sendable (Int64) -> CivilDay) {
        self.asOf = asOf
        self.dayOf = dayOf
        day = asOf.map(dayOf)
    }

    func isOver(_ day: Int64) -> Bool { self.day.map { day < $0.number } ?? false }

    /// The first day with events that may be younger than this number of times 24 hours.
    func firstDayYounger(thanDays days: Int64) -> Int64 {
        asOf.map { dayOf(adding($0, -days * millisecondsPerDay)).number } ?? .min
    }
}

/// The UTC day of an instant.
public func dayInUTC(_ instant: Int64) -> CivilDay { CivilDay(number: instant.floorDivided(by: millisecondsPerDay)) }
