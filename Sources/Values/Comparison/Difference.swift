// The differences between two values.

/// One place where two JSON values differ.
public struct Difference: Sendable, Equatable {
    /// The place: `accessUntil`, `retry.until`, `runs[0].end`. Empty for the whole value.
    public let path: String
    /// The original bytes; nil: the member is absent or null.
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
    /// Never empty.
    case different([Difference])
}
