// What a promotion has to know of a worker: what its values say, and what of its state goes with them.

public import Log

/// Of one worker. Pure.
public protocol PromotionRules {
    /// The output that holds one value per key, in the partition of the state it comes from: its index in the definition.
    var values: Int { get }
    /// All outputs that are compacted.
    var compacted: [Int] { get }

    /// What takes the place of a live value; empty when that says the same already.
    ///
    /// - Parameters:
    ///   - live: nil: the key has no value.
    ///   - shadow: nil: the replay has none for this key.
    func replacement(of key: [UInt8], live: [UInt8]?, shadow: [UInt8]?) -> [PromotedRecord]

    /// The replay's state of a key, as it goes on behind the live value.
    ///
    /// - Parameter value: of the same key in the live topic, when the promotion has ended; nil: there is none.
    func state(_ state: [UInt8], format: UInt8, of key: [UInt8], after value: [UInt8]?) -> [UInt8]
}

/// A record of one of the worker's live outputs.
public struct PromotedRecord: Sendable, Equatable {
    public var output: Int
    /// nil: that of the state.
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

/// Why a promotion does not go on. What was done stays, and the same call again goes on from there.
public enum PromotionFault: Error, Equatable, CustomStringConvertible {
    /// The answer is no, in words for a person: one reason a line.
    case refused([String])
    case log(LogFault)
    /// Of the scratch directory.
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

/// What a promotion does, in this order.
public enum PromotionStep: Sendable, Equatable, CustomStringConvertible {
    /// The live state and values are copied, so that there is a way back.
    case keep
    /// Every partition's state is marked: from here on no worker works on it before the end.
    case mark
    /// State and values of one partition take the place of the live ones.
    case move(Int32)
    /// The marks go, all at once: workers may start.
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

/// What was moved, or would be.
public struct PromotionCounts: Sendable, Equatable {
    /// Values that say something else.
    public var changed = 0
    /// Keys without a live value.
    public var added = 0
    /// Keys that only the live topic has: they get a tombstone.
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
