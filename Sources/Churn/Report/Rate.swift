// The numbers of a report, each with how it is reckoned.

/// What is there at an instant: the sum of all changes before it.
public struct Stock: Sendable, Equatable {
    /// For programs.
    public let name: String
    /// For people.
    public let title: String
    public let formula: String
    public let start: Int64
    public let end: Int64
}

public struct Rate: Sendable, Equatable {
    /// Why a rate may be another one tomorrow. Refunds and what is delivered late can change any.
    public enum Doubt: String, Sendable, CaseIterable {
        /// The last days of the time asked for are not over.
        case daysNotOver
        /// Apple still tries to bill some of those who lapsed.
        case retryOpen
        case trialsOpen
        case commitmentsOpen
    }

    public let name: String
    public let title: String
    public let formula: String
    public let ratio: Ratio
    public let doubts: [Doubt]
    /// What is not decided yet, beside it.
    public var beside: Counter?
    public var besideValue: Int64 = 0
    /// Days that it is reckoned from, and days of which it cannot be said yet. nil: all days count.
    public var days: Days?
    public var isApproximate = false
    /// A factor rather than a share: not shown in percent.
    public var isFactor = false
    /// Of amounts in milliunits.
    public var isMoney = false

    public struct Days: Sendable, Equatable {
        public let counted: Int
        public let leftOut: Int
    }

    public var isProvisional: Bool { !doubts.isEmpty }

    /// Digits of `value` in answers.
    public static let digits = 6
}
