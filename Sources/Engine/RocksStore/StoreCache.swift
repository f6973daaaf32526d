// Memory that all stores of a process share.

internal import CRocksDB
internal import Synchronization

/// Blocks of files, and write buffers. Any thread may use it.
///
/// The buffers have one budget: when they are too large together, the largest is written to a file. So a partition with
/// many changes uses what quiet ones do not need, and the files are larger and fewer than with a fixed share for each.
public final class StoreCache: Sendable {
    /// Bytes of one write buffer at most. It also limits the write-ahead log that an opening may have to read.
    static let greatestBuffer = 8 << 20
    /// RocksDB takes the memory of a buffer in blocks of this size. The buffer of a quiet store has one or two, so they
    /// must be small beside the budget.
    static let arenaBlock = 64 << 10

    // RocksDB's caches accept calls from every thread.
    nonisolated(unsafe) let cache: OpaquePointer
    /// Bytes at which a store begins to fill another buffer, whatever the budget.
    let bufferSize: Int
    private let budget: Int
    /// Bytes of the buffers that are being filled. The rest of the budget is for those that are being written to files.
    private let fillingLimit: Int
    /// The bytes that each open store is filling, by the address of its database.
    private let filling = Mutex<[UInt: Int]>([:])

    /// - Parameters:
    ///   - bytes: the limit for the blocks, including the indexes and filters of the files.
    ///   - bufferBytes: the budget of all write buffers together.
    ///   - stores: how many stores may be open. A buffer has at most four times the share of a store: a fiftieth of this
    ///     size is its filter, which also the buffer of a quiet store has.
    public init(bytes: Int, bufferBytes: Int = 32 << 20, stores: Int = 12) {
        let options = rocksdb_lru_cache_options_create()!
        defer { rocksdb_lru_cache_options_destroy(options) }
        rocksdb_lru_cache_options_set_capacity(options, bytes)
        rocksdb_lru_cache_options_set_num_shard_bits(options, Self.shardBits(of: bytes))
        cache = rocksdb_cache_create_lru_opts(options)
        bufferSize = min(max(4 * bufferBytes / max(16, stores), 256 << 10), Self.greatestBuffer)
        budget = bufferBytes
        fillingLimit = bufferBytes / 4 * 3
    }

    deinit { rocksdb_cache_destroy(cache) }

    /// RocksDB would divide the cache into shards of half a MiB, so that threads rarely wait for each other. The index of
    /// a file fills such a shard: it would make room for the next one, and be read again for nearly every key. So there
    /// are four shards at most, and none is smaller than 8 MiB.
    static func shardBits(of bytes: Int) -> Int32 {
        switch bytes >> 20 {
        case ..<16: 0
        case ..<32: 1
        default: 2
        }
    }

    /// Bytes of blocks in memory.
    public var blockBytes: Int { rocksdb_cache_get_usage(cache) }

    /// Bytes of all write buffers, with those that are being written to files.
    public var bufferBytes: Int {
        filling.withLock { Self.bufferBytes($0.keys) }
    }

    // MARK: For stores

    func opened(_ database: OpaquePointer) { filling.withLock { $0[UInt(bitPattern: database)] = 0 } }

    /// Call this before the database is closed.
    func closes(_ database: OpaquePointer) { filling.withLock { $0[UInt(bitPattern: database)] = nil } }

    /// Begins to flush the largest buffer if there is too much in all of them: often that of another store, which may be
    /// written by another thread, or not any more.
    func wrote(_ database: OpaquePointer) {
        let own = UInt(bitPattern: database)
        let bytes = Self.bytes("rocksdb.cur-size-active-mem-table", own)
        // Under the lock, so that the other store is not closed meanwhile.
        filling.withLock { filling in
            filling[own] = bytes
            guard filling.values.reduce(0, +) > fillingLimit,
                let largest = filling.max(by: { ($0.value, $0.key) < ($1.value, $1.key) })
            else { return }
            filling[largest.key] = 0
            // If the disk is slower than the changes, this thread waits, and so do all others that write.
            let isFull = Self.bufferBytes(filling.keys) + largest.value > budget
            Self.flush(largest.key, waits: isFull)
        }
    }

    private static func bufferBytes(_ stores: Dictionary<UInt, Int>.Keys) -> Int {
        stores.reduce(0) { sum, store in sum + bytes("rocksdb.cur-size-all-mem-tables", store) }
    }

    /// RocksDB writes buffers to files in the order in which it was asked to, so after waiting for the last one all are
    /// written. A fault is reported by the next write to that store.
    private static func flush(_ database: UInt, waits: Bool) {
        let options = rocksdb_flushoptions_create()!
        defer { rocksdb_flushoptions_destroy(options) }
        rocksdb_flushoptions_set_wait(options, waits ? 1 : 0)
        var words: UnsafeMutablePointer<CChar>?
        rocksdb_flush(OpaquePointer(bitPattern: database)!, options, &words)
        if let words { rocksdb_free(words) }
    }

    private static func bytes(_ property: String, _ database: UInt) -> Int {
        var bytes: UInt64 = 0
        guard rocksdb_property_int(OpaquePointer(bitPattern: database)!, property, &bytes) == 0 else { return 0 }
        return Int(clamping: bytes)
    }
}
