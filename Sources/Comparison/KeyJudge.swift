// What is to be said of one key of two topics.

/// The last value that one side has of a key.
public struct KeptValue: Sendable, Equatable {
    /// nil: it was deleted.
    public var value: [UInt8]?
    /// It was made from a record that the other side has not dealt with.
    public var isNewer: Bool

    public init(_ value: [UInt8]?, isNewer: Bool = false) {
        self.value = value
        self.isNewer = isNewer
    }
}

public enum KeyVerdict: Sendable, Equatable {
    case same
    case different([Difference])
    case onlyHere
    case onlyThere
    /// One of the sides has moved on: nothing can be said before the other has followed.
    case newer
    /// Neither side has a value: both have deleted it, or one of them what the other never had.
    case nothing

    public var isDifference: Bool {
        switch self {
        case .different, .onlyHere, .onlyThere: true
        case .same, .newer, .nothing: false
        }
    }
}

/// One key after the other. One thread.
public struct KeyJudge: ~Copyable {
    private var values: ValueComparison

    public init(_ rules: ComparisonRules) { values = ValueComparison(rules) }

    /// nil: that side knows nothing of the key.
    public mutating func judge(here: KeptValue?, there: KeptValue?) -> KeyVerdict {
        if here?.value == nil, there?.value == nil { return .nothing }
        // Before the values: what is the same only now may be another value a record later.
        if here?.isNewer == true || there?.isNewer == true { return .newer }
        guard let mine = here?.value else { return .onlyThere }
        guard let other = there?.value else { return .onlyHere }
        switch values.compare(here: mine, there: other) {
        case .same: return .same
        case .different(let differences): return .different(differences)
        }
    }
}
