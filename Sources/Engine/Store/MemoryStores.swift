// Stores in memory that behave like those on disk: for tests, demonstrations, and states that may be restored at every
// start.

internal import Synchronization

/// What survives the workers: the "disk" of stores in memory. Tests can copy it, delete parts, make it fail, and crash
/// its process. Any thread may call it.
public final class MemoryDisk: Sendable {
    public enum Operation: Sendable, Equatable { case open, read, timers, write, flush, close, wipe }

    struct Partition {
        var contents = StoreContents()
        /// Undoes the writes that a crash of the process would lose.
        var undo: [StoreContents.Undo] = []
        /// Of the store that has it open.
        var holder: UInt64?
    }

    struct State {
        var partitions: [Int32: Partition] = [:]
        var lastHolder: UInt64 = 0
        var fault: (@Sendable (Operation, Int32) -> StoreFault?)?
    }

    let state = Mutex(State())
    /// false: nothing is kept for a crash.
    let canCrash: Bool

    public init() { canCrash = true }

    /// For stores whose disk nobody has: it ends with its process.
    fileprivate init(canCrash: Bool) { self.canCrash = canCrash }

    /// The same contents, open nowhere, like a copy of the files after a crash of the process: `kept` as of `crash`.
    public func copy(kept: (_ writes: Int) -> Int = { _ in 0 }) -> MemoryDisk {
        let copied = MemoryDisk()
        let partitions = state.withLock { $0.partitions }
        copied.state.withLock { $0.partitions = partitions }
        copied.crash(kept: kept)
        return copied
    }

    /// Crashes the process: what was written with `.none` since the last `.process`, `beginFlush` or `close` is lost, and
    /// nothing is open. Stores that were open throw.
    ///
    /// - Parameter kept: gets the number of those writes to a partition, and returns how many of them, the earliest ones,
    ///   were flushed meanwhile, as a store on disk does when a write buffer is full.
    public func crash(kept: (_ writes: Int) -> Int = { _ in 0 }) {
        state.withLock { state in
            for number in state.partitions.keys.sorted() {
                let writes = state.partitions[number]!.undo.count
                state.partitions[number]!.takeBack(to: writes == 0 ? 0 : kept(writes))
                state.partitions[number]!.holder = nil
            }
        }
    }

    /// Deletes the files of a partition, even under an open store, which throws from then on.
    public func lose(_ partition: Int32) {
        state.withLock { $0.partitions[partition] = nil }
    }

    /// `fault` is called before every operation and returns the fault that it meets, or nil. It must not use the disk.
    /// nil instead of a closure: nothing fails any more.
    public func fail(_ fault: (@Sendable (Operation, Int32) -> StoreFault?)?) {
        state.withLock { $0.fault = fault }
    }
}

public final class MemoryStores: PartitionStores {
    private let disk: MemoryDisk

    public init() { disk = MemoryDisk(canCrash: false) }

    public init(disk: MemoryDisk) { self.disk = disk }

    public func open(_ partition: Int32) throws(StoreFault) -> any PartitionStore {
        let holder = try disk.state.withLock { state throws(StoreFault) in
            if let fault = state.fault?(.open, partition) { throw fault }
            try state.requireUnheld(partition)
            state.lastHolder += 1
            state.partitions[partition, default: .init()].holder = state.lastHolder
            return state.lastHolder
        }
        return MemoryStore(disk, partition, holder)
    }

    public func wipe(_ partition: Int32) throws(StoreFault) {
        try disk.state.withLock { state throws(StoreFault) in
            if let fault = state.fault?(.wipe, partition) { throw fault }
            try state.requireUnheld(partition)
            state.partitions[partition] = nil
        }
    }
}

final class MemoryStore: PartitionStore {
    private let disk: MemoryDisk
    private let partition: Int32
    private let holder: UInt64

    init(_ disk: MemoryDisk, _ partition: Int32, _ holder: UInt64) {
        self.disk = disk
        self.partition = partition
        self.holder = holder
    }

    /// Released without `close`: as on disk, the lock ends with its owner, and what was written stays.
    deinit {
        disk.state.withLock { state in
            guard state.partitions[partition]?.holder == holder else { return }
            state.partitions[partition]!.holder = nil
            state.partitions[partition]!.undo = []
        }
    }

    func note() throws(StoreFault) -> [UInt8]? {
        try access(.read) { $0.contents.note }
    }

    func read(_ key: Span<UInt8>, into value: inout [UInt8]) throws(StoreFault) -> Bool {
        let key = key.withUnsafeBytes { Array($0) }
        guard let found = try access(.read, { $0.contents.values[key] }) else {
            value.removeAll(keepingCapacity: true)
            return false
        }
        value = found
        return true
    }

    func scan(
        _ prefix: Span<UInt8>, _ take: (_ key: Span<UInt8>, _ value: Span<UInt8>) -> Bool
    ) throws(StoreFault) {
        let prefix = prefix.withUnsafeBytes { Array($0) }
        let found = try access(.read) { partition in
            partition.contents.values.filter { $0.key.starts(with: prefix) }
                .sorted { $0.key.lexicographicallyPrecedes($1.key) }
        }
        for (key, value) in found where !take(key.span, value.span) { return }
    }

    func timers(after last: TimerEntry?, dueBy moment: Int64, limit: Int) throws(StoreFault) -> [TimerEntry] {
        try access(.timers) { $0.contents.timers.entries(after: last, dueBy: moment, limit: limit) }
    }

    func write(_ changes: StoreChanges, _ durability: StoreDurability) throws(StoreFault) {
        // Converted outside of the lock, whose body may use only values that nothing else uses.
        let steps = StoreContents.steps(changes)
        let note = changes.note
        let wantsUndo = durability == .none && disk.canCrash
        try access(.write) { partition in
            let undo = partition.contents.apply(steps, note: note, wantsUndo: wantsUndo)
            if let undo { partition.undo.append(undo) } else { partition.undo = [] }
        }
    }

    func lastingNote() throws(StoreFault) -> [UInt8]? {
        try access(.read) { $0.undo.isEmpty ? $0.contents.note : $0.undo[0].note }
    }

    func beginFlush() throws(StoreFault) { try access(.flush) { $0.undo = [] } }

    var approximateBytes: Int? { disk.state.withLock { $0.partitions[partition]?.contents.byteCount } }

    func close() throws(StoreFault) {
        try access(.close) { partition in
            partition.undo = []
            partition.holder = nil
        }
    }

    private func access<Result: Sendable>(
        _ operation: MemoryDisk.Operation, _ body: (inout MemoryDisk.Partition) -> Result
    ) throws(StoreFault) -> Result {
        try disk.state.withLock { state throws(StoreFault) in
            if let fault = state.fault?(operation, partition) { throw fault }
            guard state.partitions[partition]?.holder == holder else {
                throw StoreFault(.system, "the store of partition \(partition) is no longer open")
            }
            return body(&state.partitions[partition]!)
        }
    }
}

extension MemoryDisk.State {
    func requireUnheld(_ partition: Int32) throws(StoreFault) {
        guard partitions[partition]?.holder == nil else {
            throw StoreFault(.locked, "the store of partition \(partition) is already open")
        }
    }
}

extension MemoryDisk.Partition {
    /// Undoes all writes but the first `kept` of those that can be undone. These are lasting then.
    mutating func takeBack(to kept: Int) {
        while undo.count > kept { contents.takeBack(undo.removeLast()) }
        undo = []
    }
}
