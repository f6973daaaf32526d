// What two values do not share.

/// One place of two JSON values that is not the same in both.
public struct Difference: Sendable, Equatable {
    /// Where it is: `accessUntil`, `retry.until`, `runs[0].end`. Empty: the value as a whole.
    public let path: String
    /// The bytes as they were written; nil: not there, or null.
    public let here: [UInt8]?
    public let there: [UInt8]?

    public init(_ path: String, here: [UInt8]?, there: [UInt8]?) {
        self.path = path
        self.here = here
        self.there = there
    }
}

public enum Verdict: Sendable, Equatable {
    case same
    /// At least one.
    case different([Difference])
}
