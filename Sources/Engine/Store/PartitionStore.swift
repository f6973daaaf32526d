// The interface of a worker's local state. It is a cache of the changelog: if it is lost, the worker reads the
// changelog again.

/// A failed read or write. The worker closes the store and restores it; the log has everything.
public struct StoreFault: Error, Equatable, CustomStringConvertible {
    public enum Cause: String, Sendable {
        /// Another process, or another task of this one, has the store open.
        case locked
        /// The bytes on disk are invalid: wiping and restoring helps.
        case corrupt
        /// A value has a format that this build does not read: a person must start another build.
        case format
        /// Disk full, a missing permission, or any other error of the system.
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

/// A time at which a timer of a key fires. Sorted in the order of firing: by due time, then key, then kind.
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

/// The state of one partition: values by key, timers in order, and a note with the position in the log. For use by one
/// thread at a time.
public protocol PartitionStore: AnyObject {
    /// The note of the last write; nil if nothing was ever written.
    func note() throws(StoreFault) -> [UInt8]?
    /// Replaces the contents of `value` by the value of `key`. False: the key has none.
    func read(_ key: Span<UInt8>, into value: inout [UInt8]) throws(StoreFault) -> Bool
    /// Passes each key that begins with `prefix`, and its value, to `take`, in the order of the keys' bytes, until
    /// `take` returns false. `take` must not call the store.
    func scan(_ prefix: Span<UInt8>, _ take: (_ key: Span<UInt8>, _ value: Span<UInt8>) -> Bool) throws(StoreFault)
    /// At most `limit` timers that are due at `moment`, in order, starting after `last`.
    func timers(after last: TimerEntry?, dueBy moment: Int64, limit: Int) throws(StoreFault) -> [TimerEntry]
    /// Writes all of the changes or none, even if the process crashes in the middle.
    func write(_ changes: StoreChanges, _ durability: StoreDurability) throws(StoreFault)
    /// The note that a crash of the process would leave now; nil: it would leave an empty store.
    func lastingNote() throws(StoreFault) -> [UInt8]?
    /// Begins to make everything lasting that was written, and does not wait for it: `lastingNote` shows when it is.
    func beginFlush() throws(StoreFault)
    /// Bytes of the store on disk and in its write buffers; nil: the number is not known.
    var approximateBytes: Int? { get }
    /// After this nothing may be called. What was written stays, whatever its durability.
    func close() throws(StoreFault)
}

extension PartitionStore {
    public var approximateBytes: Int? { nil }
}

public enum StoreDurability: Sendable {
    /// Survives a crash of the process.
    case process
    /// A crash of the process may lose the write with all later ones, but never a part of it: for a store that is
    /// completed from a log, which is read again from the note.
    case none
}

/// The stores of a worker's partitions.
public protocol PartitionStores: Sendable {
    /// Opens the store, or creates an empty one. Throws `locked` if it is open elsewhere.
    func open(_ partition: Int32) throws(StoreFault) -> any PartitionStore
    /// The same for several partitions, perhaps side by side.
    func open(all partitions: [Int32]) -> [Int32: Result<any PartitionStore, StoreFault>]
    /// Deletes the store of a partition that is not open.
    func wipe(_ partition: Int32) throws(StoreFault)
}

extension PartitionStores {
    public func open(all partitions: [Int32]) -> [Int32: Result<any PartitionStore, StoreFault>] {
        var opened: [Int32: Result<any PartitionStore, StoreFault>] = [:]
        for partition in partitions {
            opened[partition] = Result { () throws(StoreFault) in try open(partition) }
        }
        return opened
    }
}

/// Changes that are written in one step, in this order. For use by one thread.
public final class StoreChanges {
    public enum Change {
        case put(key: Range<Int>, value: Range<Int>)
        case delete(key: Range<Int>)
        case addTimer(due: Int64, key: Range<Int>, kind: UInt8)
        case removeTimer(due: Int64, key: Range<Int>, kind: UInt8)
    }

    public private(set) var changes: [Change] = []
    /// The bytes to which the ranges of the changes refer.
    public private(set) var bytes: [UInt8] = []
    /// Written with the changes; replaces the previous note.
    public var note: [UInt8] = []
    /// Memory that a store needs while it writes, left here for the next one: for each store of a thread it would be a
    /// dozen times as much.
    public var storeMemory: AnyObject?

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
