// How a worker divides the memory that it may use.

/// The parts of `state.cache.bytes`: everything that grows with the state, with a backlog or with a restore comes out of it. What
/// a process takes beside it (code, threads, connections, memory that the allocator keeps) does not depend on any of them.
public struct MemoryPlan: Sendable, Equatable {
    /// Entries of the state, all partitions together.
    public let entryBytes: Int
    /// Blocks of the stores' files, with their indexes and filters.
    public let blockBytes: Int
    /// One write buffer. Each store has two: one that is filled while another is written out.
    public let writeBufferBytes: Int
    /// Records that one thread has fetched and not dealt with.
    public let readAheadBytes: Int
    /// What one thread has changed and told since its last commit.
    public let cycleBytes: Int
    /// Records of changelogs that are fetched and not in a store yet.
    public let restoreReadAheadBytes: Int
    /// Records of changelogs on their way into stores.
    public let restoreWriteBytes: Int

    /// - Parameters:
    ///   - bytes: the setting `state.cache.bytes`.
    ///   - partitions: all there are: one process may have to own every one of them.
    public init(bytes: Int, threads: Int, partitions: Int) {
        // Two buffers a store, and no less than RocksDB can work with.
        let buffers = 2 * max(1, partitions)
        writeBufferBytes = min(max(bytes / 5 / buffers, 256 << 10), 8 << 20)
        let rest = max(bytes - writeBufferBytes * buffers, bytes / 4)
        blockBytes = rest / 4
        // A restore and a backlog often come together: after a crash.
        restoreReadAheadBytes = rest / 5
        restoreWriteBytes = rest / 20
        readAheadBytes = rest / 8 / max(1, threads)
        cycleBytes = min(rest / 16 / max(1, threads), 32 << 20)
        entryBytes = rest * 2 / 5
    }
}
