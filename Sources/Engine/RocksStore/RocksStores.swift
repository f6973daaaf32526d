// Stores on disk, one RocksDB for each partition.

internal import CRocksDB
internal import Platform
public import Store
internal import Synchronization

/// One directory for each partition, so that one can be deleted without the others.
public final class RocksStores: PartitionStores {
    /// How many stores are opened at the same time.
    private static let openingThreads = 4

    /// Threads that open stores now, in the whole process: the threads of a worker open theirs at the same time, and share
    /// the room of a disk.
    private static let openingNow = Mutex(0)

    /// Needed for opening: the write-ahead log is read into write buffers, which are flushed to files, and compaction
    /// doubles that; in addition there are the list of files and the next log.
    static let roomForOpening = FreeRoom(bytes: 4 * StoreCache.greatestBuffer, files: 32)

    private let directory: String
    private let freeRoom: @Sendable (_ path: String) throws(SystemFailure) -> FreeRoom
    private let cache: StoreCache
    // RocksDB reads it when a store is opened, and it never changes.
    nonisolated(unsafe) private let options: OpaquePointer

    /// - Parameters:
    ///   - directory: created if it does not exist.
    ///   - cache: the same object for all stores of the process.
    public convenience init(directory: String, cache: StoreCache) throws(StoreFault) {
        try self.init(directory: directory, cache: cache, freeRoom: FreeRoom.at)
    }

    /// - Parameter freeRoom: returns the free space; the system's function, or a test's.
    init(
        directory: String, cache: StoreCache,
        freeRoom: @escaping @Sendable (_ path: String) throws(SystemFailure) -> FreeRoom
    ) throws(StoreFault) {
        self.freeRoom = freeRoom
        try asking("make", directory) { () throws(SystemFailure) in try makeDirectories(directory) }
        // RocksDB finds what this process has open by its path: one directory must have one name.
        self.directory = try asking("find", directory) { () throws(SystemFailure) in try canonicalPath(directory) }
        self.cache = cache
        options = makeOptions(cache)
    }

    deinit { rocksdb_options_destroy(options) }

    /// Makes the stores of a directory. All stores that it makes share the cache.
    public static func sharing(
        _ cache: StoreCache
    ) -> @Sendable (_ directory: String) throws(StoreFault) -> any PartitionStores {
        { directory throws(StoreFault) in try RocksStores(directory: directory, cache: cache) }
    }

    public func open(_ partition: Int32) throws(StoreFault) -> any PartitionStore {
        if fileExists(wipeMark(partition)) { try wipe(partition) }
        // Somebody may have deleted it since, to start from the beginning.
        try asking("make", directory) { () throws(SystemFailure) in try makeDirectories(directory) }
        let path = path(partition)
        try requireRoom(for: path)
        do throws(StoreFault) {
            let database = try rocks("open", path) { rocksdb_open(options, path, $0) }
            return RocksStore(database!, path: path, cache: cache)
        } catch {
            guard error.cause == .locked, let holder = processLocking("\(path)/LOCK"), holder != ownProcessID else {
                throw error
            }
            throw StoreFault(.locked, "\(path) is locked by process \(holder), which has it open")
        }
    }

    /// Opening mostly waits for the disk, so several take little longer than one.
    public func open(all partitions: [Int32]) -> [Int32: Result<any PartitionStore, StoreFault>] {
        let threads = takeThreads(atMost: partitions.count)
        defer { Self.openingNow.withLock { $0 -= threads } }
        let shares = (0..<threads).map { thread in
            Share(partitions.enumerated().filter { $0.offset % threads == thread }.map(\.element))
        }
        for share in shares {
            let started = WorkerThread.start("open-stores") { [self] in share.open(self) }
            // A thread that could not be created has its result already, and its body never runs.
            if started.result != nil { share.open(self) }
        }
        return shares.reduce(into: [:]) { $0.merge($1.wait()) { first, _ in first } }
    }

    /// How many threads may open stores now. They count as opening until the caller subtracts them.
    private func takeThreads(atMost count: Int) -> Int {
        Self.openingNow.withLock { opening in
            let threads = min(count, threadsWithRoom(besides: opening))
            opening += threads
            return threads
        }
    }

    /// Each thread needs the room of one opening, which `requireRoom` does not see while the others take theirs.
    func threadsWithRoom(besides others: Int) -> Int {
        guard let room = try? freeRoom(directory) else { return 1 }
        let least = Self.roomForOpening
        let places = min(room.bytes / least.bytes, (room.files ?? .max) / (least.files ?? 1))
        return max(1, min(Self.openingThreads, Int(clamping: places) - others))
    }

    /// Checked before, because RocksDB does not survive a full disk: built with assertions, as by Debian, it ends the
    /// process in the middle of such an opening.
    private func requireRoom(for path: String) throws(StoreFault) {
        let (least, freeRoom) = (Self.roomForOpening, freeRoom)
        let room = try asking("look for room at", directory) { () throws(SystemFailure) in try freeRoom(directory) }
        if room.bytes < least.bytes {
            throw StoreFault(
                .system,
                "open \(path): No space left: its file system has \(room.bytes >> 20) MiB left, but opening a store "
                    + "needs up to \(least.bytes >> 20) MiB. \(StoreFault.makeRoom)")
        }
        if let files = room.files, let wanted = least.files, files < wanted {
            throw StoreFault(
                .system,
                "open \(path): No space left: its file system has room for \(files) more files, but opening a store "
                    + "creates up to \(wanted). \(StoreFault.makeRoom)")
        }
    }

    /// RocksDB deletes one file after another. If the process crashed in the middle, the rest might open as a store
    /// with missing data. So a mark is written first, and an opening that finds one continues with the deletion.
    public func wipe(_ partition: Int32) throws(StoreFault) {
        let (path, mark) = (path(partition), wipeMark(partition))
        try asking("mark", mark) { () throws(SystemFailure) in try makeFile(mark) }
        do throws(StoreFault) {
            try rocks("wipe", path) { rocksdb_destroy_db(options, path, $0) }
        } catch {
            // Another owner has it, and the next opening must not wipe it. After any other fault the mark stays.
            if error.cause == .locked { try? removeFile(mark) }
            throw error
        }
        try asking("remove", mark) { () throws(SystemFailure) in try removeFile(mark) }
    }

    private func path(_ partition: Int32) -> String { "\(directory)/\(partition)" }
    private func wipeMark(_ partition: Int32) -> String { "\(directory)/\(partition).wiping" }
}

/// The partitions that one of several threads opens.
///
/// Unchecked: the stores are handed over by the latch, and no other thread uses them before.
private final class Share: @unchecked Sendable {
    private let partitions: [Int32]
    private var opened: [Int32: Result<any PartitionStore, StoreFault>] = [:]
    private let hasBegun = Atomic(false)
    private let ended = Latch()

    init(_ partitions: [Int32]) { self.partitions = partitions }

    func open(_ stores: RocksStores) {
        if hasBegun.exchange(true, ordering: .relaxed) { return }
        for partition in partitions {
            opened[partition] = Result { () throws(StoreFault) in try stores.open(partition) }
        }
        ended.open()
    }

    func wait() -> [Int32: Result<any PartitionStore, StoreFault>] {
        ended.wait()
        return opened
    }
}

private func asking<Result>(
    _ operation: String, _ path: String, _ body: () throws(SystemFailure) -> Result
) throws(StoreFault) -> Result {
    do throws(SystemFailure) {
        return try body()
    } catch {
        throw StoreFault(operation, path: path, error)
    }
}

private func makeOptions(_ cache: StoreCache) -> OpaquePointer {
    let options = rocksdb_options_create()!
    rocksdb_options_set_create_if_missing(options, 1)

    // Memory.
    rocksdb_options_set_write_buffer_size(options, cache.bufferSize)
    rocksdb_options_set_arena_block_size(options, StoreCache.arenaBlock)
    // One is filled while the other is written to a file.
    rocksdb_options_set_max_write_buffer_number(options, 2)
    let tables = rocksdb_block_based_options_create()!
    rocksdb_block_based_options_set_block_cache(tables, cache.cache)
    // Some ten states. With half of it, RocksDB's own choice, there are twice as many blocks to write, to find and to merge.
    rocksdb_block_based_options_set_block_size(tables, 8 << 10)
    // Indexes and filters grow with the state, and outside of the cache nothing limits them.
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(tables, 1)
    rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(tables, 1)
    rocksdb_block_based_options_set_pin_top_level_index_and_filter(tables, 1)
    // Those of the newest files, in which every read looks.
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(tables, 1)
    // Ten bits per key: of lookups of missing keys only one in a hundred reads a block in vain.
    rocksdb_block_based_options_set_filter_policy(tables, rocksdb_filterpolicy_create_bloom_full(10))
    rocksdb_options_set_block_based_table_factory(options, tables)
    rocksdb_block_based_options_destroy(tables)
    // Reads search the write buffers before the files, and that costs more than the rest of a read. With a filter of a
    // fiftieth of each buffer, nearly every search for a missing key is skipped.
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(options, 0.02)
    rocksdb_options_set_memtable_whole_key_filtering(options, 1)
    // Files of 64 MiB each: files of a larger store that are not in use are opened again when they are read.
    rocksdb_options_set_max_open_files(options, 256)

    // Eight new files at a time are merged into a first level that is about as large as they are. Four of them, and a
    // level of 256 MiB, would be RocksDB's own choice: each change would be copied twice as often.
    rocksdb_options_set_level0_file_num_compaction_trigger(options, 8)
    rocksdb_options_set_max_bytes_for_level_base(options, 64 << 20)
    // A merge reads files from their beginning to their end. RocksDB 7.8 would read block by block.
    rocksdb_options_compaction_readahead_size(options, 256 << 10)
    // Saves time: states are compact already, and a block is read far more often than written.
    rocksdb_options_set_compression(options, Int32(rocksdb_no_compression))
    // All stores of the process share them: the processors are for the workers.
    rocksdb_options_set_max_background_jobs(options, 2)
    rocksdb_options_set_skip_stats_update_on_db_open(options, 1)
    rocksdb_options_set_stats_dump_period_sec(options, 0)
    rocksdb_options_set_stats_persist_period_sec(options, 0)
    // Timers are removed in their order on disk: a file of which half are tombstones is worth a compaction.
    rocksdb_options_add_compact_on_deletion_collector_factory(options, 1024, 512)

    // RocksDB's own log beside the data: warnings, and at most two files of one MiB.
    rocksdb_options_set_info_log_level(options, 2)
    rocksdb_options_set_keep_log_file_num(options, 2)
    rocksdb_options_set_max_log_file_size(options, 1 << 20)
    return options
}
