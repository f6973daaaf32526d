// The interface of a worker's local state. It is a cache of the changelog: whoever loses it reads it again.

/// What cannot be read or written; the worker closes the store and starts anew, the log has everything.
public struct StoreFault: Error, Equatable, CustomStringConvertible {
    public enum Cause: String, Sendable {
        /// Another process, or another task of this one, has it open.
        case locked
        /// The bytes on disk make no sense: wiping and restoring helps.
        case corrupt
        /// A value is in a format that this build does not read: a person has to start another build.
        case format
        /// Disk full, no right, or whatever else the system says.
        case system
    }

    public var cause: Cause
    public var words: String

    public init(_ cause: Cause, _ words: String) {
        self.cause = cause
        self.words = words
    }

    public var description: String { words }
}

/// A moment at which a key wants to be woken. In the order in which they fire: by due time, then key, then kind.
public struct TimerEntry: Sendable, Hashable, Comparable {
    /// Milliseconds since 1970.
    public var due: Int64
    public var key: [UInt8]
    /// A key has at most one timer of each kind.
    public var kind: UInt8

    public init(due: Int64, key: [UInt8], kind: UInt8) {
        self.due = due
        self.key = key
        self.kind = kind
    }

    public static func < (left: TimerEntry, right: TimerEntry) -> Bool {
        if left.due != right.due { return left.due < right.due }
        if left.key != right.key { return left.key.lexicographicallyPrecedes(right.key) }
        return left.kind < right.kind
    }
}

/// The state of one partition: values by key, timers in order, and a note on where in the log all that stands. One thread at
/// a time.
public protocol PartitionStore: AnyObject {
    /// The note of the last write; nil when nothing was ever written.
    func note() throws(StoreFault) -> [UInt8]?
    /// Puts the value of `key` into `value`, whose old bytes go. False: there is none.
    func read(_ key: Span<UInt8>, into value: inout [UInt8]) throws(StoreFault) -> Bool
    /// Hands over what has a key that begins with `prefix`, in the order of the keys' bytes, until `take` is false. Nothing of the
    /// store may be called in there.
    func scan(_ prefix: Span<UInt8>, _ take: (_ key: Span<UInt8>, _ value: Span<UInt8>) -> Bool) throws(StoreFault)
    /// At most `limit` timers that are due by then, in order, beginning behind `last`.
    func timers(after last: TimerEntry?, dueBy moment: Int64, limit: Int) throws(StoreFault) -> [TimerEntry]
    /// The due time of the first timer there is.
    func firstTimer() throws(StoreFault) -> Int64?
    /// All of the changes or none, also when the process dies in the middle.
    func write(_ changes: StoreChanges, _ durability: StoreDurability) throws(StoreFault)
    /// What the store takes on disk and in its write buffers; nil: it does not know.
    var approximateBytes: Int? { get }
    /// Nothing may be called afterwards. What was written stays.
    func close() throws(StoreFault)
}

extension PartitionStore {
    public var approximateBytes: Int? { nil }
}

public enum StoreDurability: Sendable {
    /// Survives the death of the process.
    case process
    /// May be lost with the process, but never in part: for a restore, which would begin again where the note says.
    case none
}

/// Where the stores of a worker's partitions lie.
public protocol PartitionStores: Sendable {
    /// Opens the store, an empty one when there is none. `locked` when it is open elsewhere.
    func open(_ partition: Int32) throws(StoreFault) -> any PartitionStore
    /// Removes what is there of a partition that is not open.
    func wipe(_ partition: Int32) throws(StoreFault)
}

/// Changes that are written in one step, in this order. One thread.
public final class StoreChanges {
    public enum Change {
        case put(key: Range<Int>, value: Range<Int>)
        case delete(key: Range<Int>)
        case addTimer(due: Int64, key: Range<Int>, kind: UInt8)
        case removeTimer(due: Int64, key: Range<Int>, kind: UInt8)
    }

    public private(set) var changes: [Change] = []
    /// What the ranges of the changes point into.
    public private(set) var bytes: [UInt8] = []
    /// Written with the changes, in the place of the one before.
    public var note: [UInt8] = []

    public init() {}

    public func put(_ key: Span<UInt8>, _ value: Span<UInt8>) {
        changes.append(.put(key: keep(key), value: keep(value)))
    }
    public func delete(_ key: Span<UInt8>) { changes.append(.delete(key: keep(key))) }
    public func addTimer(due: Int64, key: Span<UInt8>, kind: UInt8) {
        changes.append(.addTimer(due: due, key: keep(key), kind: kind))
    }
    public func removeTimer(due: Int64, key: Span<UInt8>, kind: UInt8) {
        changes.append(.removeTimer(due: due, key: keep(key), kind: kind))
    }

    public func removeAll() {
        changes.removeAll(keepingCapacity: true)
        bytes.removeAll(keepingCapacity: true)
        note.removeAll(keepingCapacity: true)
    }

    private func keep(_ span: Span<UInt8>) -> Range<Int> {
        let start = bytes.count
        span.withUnsafeBytes { bytes.append(contentsOf: $0) }
        return start..<bytes.count
    }
}
