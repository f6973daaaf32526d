// What a report is asked for.

public import Contract
public import Notices

public enum Dimension: String, Sendable, CaseIterable {
    case product, plan, storefront, currency
}

public struct MetricsRequest: Sendable, Equatable {
    /// What has to be mended, named as the parameters are.
    public enum Flaw: Error, Equatable {
        case day(parameter: String)
        case order
        case tooLong
        case dimension(String)
    }

    /// Ten years: an answer has a row for each day that is open, and a chart a place for each.
    public static let limitDays = 3_660

    public let from: CivilDay
    /// Not in it.
    public let to: CivilDay
    /// Each once, in the order of the dimensions.
    public let by: [Dimension]

    public init(from: CivilDay, to: CivilDay, by: [Dimension] = []) throws(Flaw) {
        guard from < to else { throw .order }
        guard to.number - from.number <= Int64(Self.limitDays) else { throw .tooLong }
        self.from = from
        self.to = to
        self.by = Dimension.allCases.filter(by.contains)
    }

    /// - Parameter by: names with commas between them, and spaces around them or not; nothing is no name.
    public init(from: String, to: String, by: String) throws(Flaw) {
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
        try self.init(from: first, to: end, by: dimensions)
    }

    /// The same with money told apart.
    public var byCurrency: MetricsRequest {
        MetricsRequest(self, by: Dimension.allCases.filter { by.contains($0) || $0 == .currency })
    }

    private init(_ other: MetricsRequest, by: [Dimension]) {
        from = other.from
        to = other.to
        self.by = by
    }

    var days: Range<Int64> { from.number..<to.number }

    /// What the group of such a row is called: what it is not asked by is empty.
    func group(of parts: CellParts) -> CellParts {
        func part(_ dimension: Dimension, _ text: Text) -> Text { by.contains(dimension) ? text : "" }
        // The same name in two apps is two products.
        return CellParts(
            bundleId: part(.product, parts.bundleId), productId: part(.product, parts.productId),
            billingPlan: part(.plan, parts.billingPlan), storefront: part(.storefront, parts.storefront),
            currency: part(.currency, parts.currency))
    }

    /// The parts of a group's name, as cells call them.
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

/// Up to when things are counted: the latest clock that any cell was written by.
public struct Horizon: Sendable {
    public let asOf: Int64?
    /// The day that is not over yet. nil: nothing was counted, and no day is over.
    public let day: CivilDay?
    private let dayOf: @Sendable (Int64) -> CivilDay

    /// - Parameter dayOf: the day of an instant, where the days of the cells begin.
    public init(_ asOf: Int64?, dayOf: @escaping @Sendable (Int64) -> CivilDay) {
        self.asOf = asOf
        self.dayOf = dayOf
        day = asOf.map(dayOf)
    }

    func isOver(_ day: Int64) -> Bool { self.day.map { day < $0.number } ?? false }

    /// The first day of which something may be younger than so many times 24 hours.
    func firstDayYounger(thanDays days: Int64) -> Int64 {
        asOf.map { dayOf(adding($0, -days * millisecondsPerDay)).number } ?? .min
    }
}

/// The day in which an instant lies in UTC.
public func dayInUTC(_ instant: Int64) -> CivilDay { CivilDay(number: instant.floorDivided(by: millisecondsPerDay)) }
