// What a promotion must know about a worker: the meaning of its values, and the state that belongs to them.

public import Log

/// The rules of one worker. Pure functions.
public protocol PromotionRules {
    /// Index of the output that holds one value per key, in the partition of the state that it comes from.
    var values: Int { get }
    /// All outputs that are compacted.
    var compacted: [Int] { get }

    /// The records that replace a live value. Empty if it already says the same.
    ///
    /// - Parameters:
    /// - live: nil: the key has no value.
    /// - shadow: nil: the replay has no value for this key.
    func replacement(of key: [UInt8], live: [UInt8]?, shadow: [UInt8]?) -> [PromotedRecord]

    /// The replay's state of a key, changed so that it can continue from the live value.
    ///
    /// - Parameter value: the value of the same key in the live topic when the promotion has ended; nil: the key has
    ///   none.
    func state(_ state: [UInt8], format: UInt8, of key: [UInt8], after value: [UInt8]?) -> [UInt8]
}

/// A record of one of the worker's live outputs.
public struct PromotedRecord: Sendable, Equatable {
    public var output: Int
    /// nil: the value is in the partition of the state.
    public var partition: Int32?
    public var key: [UInt8]
    public var value: [UInt8]?

    public init(output: Int, partition: Int32? = nil, key: [UInt8], value: [UInt8]?) {
        self.output = output
        self.partition = partition
        self.key = key
        self.value = value
    }
}

/// Why a promotion stops. What was done stays, and the same call continues from there.
public enum PromotionFault: Error, Equatable, CustomStringConvertible {
    /// The promotion is not possible. Reasons for a person, one per line.
    case refused([String])
    case log(LogFault)
    /// A fault of the scratch directory.
    case store(String)

    public var description: String {
        switch self {
        case .refused(let reasons): reasons.joined(separator: "; ")
        case .log(let fault): fault.words
        case .store(let words): "the scratch directory cannot be used: \(words)"
        }
    }

    static func asking<Answer>(_ body: () throws(LogFault) -> Answer) throws(PromotionFault) -> Answer {
        do throws(LogFault) {
            return try body()
        } catch {
            if error.cause == .generation { throw .refused([error.words]) }
            throw .log(error)
        }
    }
}

/// The steps of a promotion, in this order.
public enum PromotionStep: Sendable, Equatable, CustomStringConvertible {
    /// Copies the live state and values, so that the promotion can be undone.
    case keep
    /// Marks every partition's state: until the end no worker processes it.
    case mark
    /// Replaces the live state and values of one partition.
    case move(Int32)
    /// Removes all marks at once: workers may start.
    case finish

    public var description: String {
        switch self {
        case .keep: "keeps the state and values of today"
        case .mark: "marks the state"
        case .move(let partition): "moves partition \(partition)"
        case .finish: "ends"
        }
    }
}

/// What was moved, or would be moved.
public struct PromotionCounts: Sendable, Equatable {
    /// Keys whose live value differs.
    public var changed = 0
    /// Keys without a live value.
    public var added = 0
    /// Keys that only the live topic has. They get a tombstone.
    public var removed = 0
    public var same = 0
    /// Entries of the state that were written or deleted.
    public var state = 0

    public init() {}

    public static func += (left: inout PromotionCounts, right: PromotionCounts) {
        left.changed += right.changed
        left.added += right.added
        left.removed += right.removed
        left.same += right.same
        left.state += right.state
    }
}
