// Divides a worker's memory.

/// The parts of `state.cache.bytes`: all memory that grows with the state, with a backlog or with a restore. What a
/// process uses besides (code, threads, connections, memory that the allocator keeps) depends on none of them.
public struct MemoryPlan: Sendable, Equatable {
    /// Entries of the state, for all partitions together.
    public let entryBytes: Int
    /// Blocks of the stores' files, with their indexes and filters.
    public let blockBytes: Int
    /// Write buffers of all stores together.
    public let bufferBytes: Int
    /// Stores that may be open at the same time.
    public let stores: Int
    /// Records that one thread has fetched and not processed yet.
    public let readAheadBytes: Int
    /// Changes and outputs of one thread since its last commit.
    public let cycleBytes: Int
    /// Records of changelogs that are fetched and not in a store yet.
    public let restoreReadAheadBytes: Int
    /// Records of changelogs that are being written to stores.
    public let restoreWriteBytes: Int

    /// - Parameters:
    ///   - bytes: the setting `state.cache.bytes`.
    /// - partitions: the number of all partitions, because one process may have to own every one of them.
    public init(bytes: Int, threads: Int, partitions: Int) {
        // Two buffers of 8 MiB for each store are enough, and less than 256 KiB for each are none.
        stores = max(1, partitions)
        bufferBytes = min(max(bytes / 8, stores * 256 << 10), stores * 16 << 20)
        let rest = max(bytes - bufferBytes, bytes / 4)
        blockBytes = rest / 4
        // A restore and a backlog often occur together, after a crash.
        restoreReadAheadBytes = rest / 10
        restoreWriteBytes = rest / 20
        readAheadBytes = rest / 16 / max(1, threads)
        cycleBytes = min(rest / 8 / max(1, threads), 32 << 20)
        entryBytes = rest / 2
    }
}
