// The verdict on one key of two topics.

/// The last value of a key on one side.
public struct KeptValue: Sendable, Equatable {
    /// nil: the key was deleted.
    public var value: [UInt8]?
    /// It was made from a record that the other side has not processed yet.
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
    /// One side is ahead: there is no verdict until the other has caught up.
    case newer
    /// Neither side has a value: both deleted it, or one deleted what the other never had.
    case nothing

    public var isDifference: Bool {
        switch self {
        case .different, .onlyHere, .onlyThere: true
        case .same, .newer, .nothing: false
        }
    }
}

/// Judges one key after the other. Single-threaded.
public struct KeyJudge: ~Copyable {
    private var values: ValueComparison

    public init(_ rules: ComparisonRules) { values = ValueComparison(rules) }

    /// nil for a side without any record of the key.
    public mutating func judge(here: KeptValue?, there: KeptValue?) -> KeyVerdict {
        if here?.value == nil, there?.value == nil { return .nothing }
        // This comes before the values: equal values may differ after the next record.
        if here?.isNewer == true || there?.isNewer == true { return .newer }
        guard let mine = here?.value else { return .onlyThere }
        guard let other = there?.value else { return .onlyHere }
        switch values.compare(here: mine, there: other) {
        case .same: return .same
        case .different(let differences): return .different(differences)
        }
    }
}
