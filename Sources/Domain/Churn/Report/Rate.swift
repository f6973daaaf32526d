// The numbers of a report, each with its formula.

/// A number at an instant: the sum of all changes before it.
public struct Stock: Sendable, Equatable {
    /// The member's name in JSON.
    public let name: String
    /// The name for people.
    public let title: String
    public let formula: String
    public let start: Int64
    public let end: Int64
}

public struct Rate: Sendable, Equatable {
    /// Why a rate may still change. Refunds and late deliveries can change any rate.
    public enum Doubt: String, Sendable, CaseIterable {
        /// The last requested days are not over.
        case daysNotOver
        /// Apple still retries billing for some customers who lapsed.
        case retryOpen
        case trialsOpen
        case commitmentsOpen
    }

    public let name: String
    public let title: String
    public let formula: String
    public let ratio: Ratio
    public let doubts: [Doubt]
    /// A count of undecided cases to show next to the rate.
    public var beside: ChurnCounter?
    public var besideValue: Int64 = 0
    /// The number of days included, and of days that are not final yet. nil: all days are included.
    public var days: Days?
    public var isApproximate = false
    /// A factor and not a share: it is not shown in percent.
    public var isFactor = false
    /// The ratio is between amounts in milliunits.
    public var isMoney = false

    public struct Days: Sendable, Equatable {
        public let counted: Int
        public let leftOut: Int
    }

    public var isProvisional: Bool { !doubts.isEmpty }

    /// Decimal places of `value` in answers.
    public static let digits = 6
}
