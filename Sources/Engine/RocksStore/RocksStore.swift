// The store of one partition on disk.

internal import CRocksDB
internal import Store

/// One column family: the first byte of a key distinguishes note, values and timers, and one batch writes them all. A
/// batch goes into one write buffer as a whole, and buffers become files in the order in which they were filled. So
/// after a crash the files contain all batches up to one of them, and nothing of the later ones.
///
/// The durability `none` writes into the buffers only. `process` also writes into the write-ahead log, without fsync:
/// data that the operating system has accepted survives a crash of the process. If the machine crashes, the end of the
/// log may be missing. The note is in the same batches, so it shows from where the state must be completed.
final class RocksStore: PartitionStore {
    private let database: OpaquePointer
    private let path: String
    // The database uses its blocks, so the cache must outlive it. It knows the database while that is open.
    private let cache: StoreCache
    private var isOpen = true

    private let reading = rocksdb_readoptions_create()!
    /// Skips the write buffers. It skips logged writes as well.
    private let readingFiles = rocksdb_readoptions_create()!
    private let scanning = rocksdb_readoptions_create()!
    private let logged = rocksdb_writeoptions_create()!
    private let unlogged = rocksdb_writeoptions_create()!
    private let keys = KeyBuffer()
    /// RocksDB keeps the address of a scan's bound, not its bytes.
    private let bound = KeyBuffer()

    private var floor = TimerFloor()
    private var hasUnloggedWrites = false

    init(_ database: OpaquePointer, path: String, cache: StoreCache) {
        self.database = database
        self.path = path
        self.cache = cache
        rocksdb_writeoptions_disable_WAL(unlogged, 1)
        rocksdb_readoptions_set_read_tier(readingFiles, persistedTier)
        cache.opened(database)
    }

    /// Without this the directory would stay locked until the process ends. It only waits for the disk, some
    /// milliseconds.
    deinit {
        if isOpen { closeDatabase() }
        rocksdb_readoptions_destroy(reading)
        rocksdb_readoptions_destroy(readingFiles)
        rocksdb_readoptions_destroy(scanning)
        rocksdb_writeoptions_destroy(logged)
        rocksdb_writeoptions_destroy(unlogged)
    }

    // MARK: Reading

    func note() throws(StoreFault) -> [UInt8]? {
        var note: [UInt8] = []
        keys.hold(KeySpace.note)
        return try readHeldKey(reading, into: &note) ? note : nil
    }

    func lastingNote() throws(StoreFault) -> [UInt8]? {
        guard hasUnloggedWrites else { return try note() }
        var note: [UInt8] = []
        keys.hold(KeySpace.note)
        return try readHeldKey(readingFiles, into: &note) ? note : nil
    }

    func read(_ key: Span<UInt8>, into value: inout [UInt8]) throws(StoreFault) -> Bool {
        key.withUnsafeBytes { keys.hold(KeySpace.value, $0) }
        return try readHeldKey(reading, into: &value)
    }

    @inline(__always)
    private func readHeldKey(_ options: OpaquePointer, into value: inout [UInt8]) throws(StoreFault) -> Bool {
        precondition(isOpen, "a closed store is not used")
        value.removeAll(keepingCapacity: true)
        // Pinned: the bytes are copied once, from the cache into `value`.
        let found = try rocks("read", path) { rocksdb_get_pinned(database, options, keys.address, keys.count, $0) }
        guard let found else { return false }
        defer { rocksdb_pinnableslice_destroy(found) }
        var count = 0
        let address = rocksdb_pinnableslice_value(found, &count)
        value.append(contentsOf: UnsafeRawBufferPointer(start: address, count: count))
        return true
    }

    func scan(
        _ prefix: Span<UInt8>, _ take: (_ key: Span<UInt8>, _ value: Span<UInt8>) -> Bool
    ) throws(StoreFault) {
        let start = [KeySpace.value] + prefix.withUnsafeBytes { Array($0) }
        _ = try scan(from: start, to: KeySpace.end(ofPrefix: start)) { key, iterator in
            var count = 0
            let value = rocksdb_iter_value(iterator, &count)
            return take(
                Span(_unsafeBytes: UnsafeRawBufferPointer(rebasing: key.dropFirst())),
                Span(_unsafeBytes: UnsafeRawBufferPointer(start: value, count: count)))
        }
    }

    // MARK: Timers

    func timers(after last: TimerEntry?, dueBy moment: Int64, limit: Int) throws(StoreFault) -> [TimerEntry] {
        if limit <= 0 { return [] }
        if let first = floor.knownFirst, first == nil || first! > moment { return [] }
        var start = floor.bytes
        var isFromFloor = true
        if let last {
            // A key followed by a zero byte is the next possible key.
            let behind = TimerKey.bytes(of: last) + [0]
            if TimerFloor.order(behind, start) > 0 { (start, isFromFloor) = (behind, false) }
        }
        var entries: [TimerEntry] = []
        let end = TimerKey.end(dueBy: moment)
        let first = try scan(from: start, to: end) { bytes, _ in
            guard let entry = TimerKey.entry(bytes) else { return nil }
            entries.append(entry)
            return entries.count < limit
        }
        if isFromFloor { settle(first, before: end) }
        return entries
    }

    private func settle(_ first: [UInt8]?, before end: [UInt8]) {
        if let first { floor.found(first) } else { floor.foundNone(before: end) }
    }

    /// Passes each key of the range, and its value, to `take` until it returns false; nil from `take`: the key is
    /// invalid.
    /// - Returns: the first key.
    private func scan(
        from start: [UInt8], to end: [UInt8], _ take: (UnsafeRawBufferPointer, _ iterator: OpaquePointer) -> Bool?
    ) throws(StoreFault) -> [UInt8]? {
        precondition(isOpen, "a closed store is not used")
        start.withUnsafeBytes { keys.hold($0) }
        end.withUnsafeBytes { bound.hold($0) }
        rocksdb_readoptions_set_iterate_upper_bound(scanning, bound.address, bound.count)
        let iterator = rocksdb_create_iterator(database, scanning)!
        defer { rocksdb_iter_destroy(iterator) }
        rocksdb_iter_seek(iterator, keys.address, keys.count)
        var first: [UInt8]?
        while rocksdb_iter_valid(iterator) != 0 {
            var count = 0
            let key = UnsafeRawBufferPointer(start: rocksdb_iter_key(iterator, &count), count: count)
            if first == nil { first = Array(key) }
            guard let wantsMore = take(key, iterator) else {
                throw StoreFault("scan", path: path, rocks: "Corruption: a key of \(count) bytes is not a timer")
            }
            if !wantsMore { return first }
            rocksdb_iter_next(iterator)
        }
        // An iterator that has failed looks like one that has reached its end.
        try rocks("scan", path) { rocksdb_iter_get_error(iterator, $0) }
        return first
    }

    // MARK: Writing

    func write(_ changes: StoreChanges, _ durability: StoreDurability) throws(StoreFault) {
        precondition(isOpen, "a closed store is not used")
        if durability == .process && hasUnloggedWrites { try flush(waits: true) }
        let memory = changes.storeMemory as? WriteMemory ?? WriteMemory()
        changes.storeMemory = memory
        collect(changes, in: memory)
        defer { rocksdb_writebatch_clear(memory.batch) }
        do throws(StoreFault) {
            let options = durability == .process ? logged : unlogged
            try rocks("write", path) { rocksdb_write(database, options, memory.batch, $0) }
        } catch {
            // The floor was moved for timers that were not written.
            floor = TimerFloor()
            throw error
        }
        if durability == .none { hasUnloggedWrites = true }
        cache.wrote(database)
    }

    /// In the order of the keys: RocksDB continues from where it put the previous key, and a search from the beginning
    /// for each of a thousand keys costs twice as much.
    private func collect(_ changes: StoreChanges, in memory: WriteMemory) {
        let batch = memory.batch
        // One call into the other module instead of one for each change.
        let list = changes.changes
        changes.bytes.withUnsafeBytes { bytes in
            memory.places.removeAll(keepingCapacity: true)
            for (index, change) in list.enumerated() {
                memory.places.append(ChangePlace(of: change, at: index, in: bytes))
            }
            memory.places.sort(by: <)
            for place in memory.places {
                switch list[place.index] {
                case .put(let key, let value):
                    keys.hold(KeySpace.value, UnsafeRawBufferPointer(rebasing: bytes[key]))
                    put(UnsafeRawBufferPointer(rebasing: bytes[value]), in: batch)
                case .delete(let key):
                    keys.hold(KeySpace.value, UnsafeRawBufferPointer(rebasing: bytes[key]))
                    rocksdb_writebatch_delete(batch, keys.address, keys.count)
                case .addTimer(let due, let key, let kind):
                    hold(timer: due, UnsafeRawBufferPointer(rebasing: bytes[key]), kind, in: memory)
                    put(UnsafeRawBufferPointer(start: nil, count: 0), in: batch)
                    floor.added(memory.timer)
                case .removeTimer(let due, let key, let kind):
                    hold(timer: due, UnsafeRawBufferPointer(rebasing: bytes[key]), kind, in: memory)
                    rocksdb_writebatch_delete(batch, keys.address, keys.count)
                    floor.removed(memory.timer)
                }
            }
        }
        keys.hold(KeySpace.note)
        changes.note.withUnsafeBytes { put($0, in: batch) }
    }

    private func hold(timer due: Int64, _ key: UnsafeRawBufferPointer, _ kind: UInt8, in memory: WriteMemory) {
        memory.timer.removeAll(keepingCapacity: true)
        TimerKey.append(due: due, key: key, kind: kind, to: &memory.timer)
        memory.timer.withUnsafeBytes { keys.hold($0) }
    }

    private func put(_ value: UnsafeRawBufferPointer, in batch: OpaquePointer) {
        // RocksDB does not accept a null address, even for no bytes.
        let address = value.baseAddress?.assumingMemoryBound(to: CChar.self) ?? UnsafePointer(keys.address)
        rocksdb_writebatch_put(batch, keys.address, keys.count, address, value.count)
    }

    /// After a crash RocksDB replays the write-ahead log over the files. A logged write that follows unlogged ones,
    /// which are in no file yet, would come back without them: a state that never existed. So the unlogged writes are
    /// flushed to files first.
    private func flush(waits: Bool) throws(StoreFault) {
        let options = rocksdb_flushoptions_create()!
        defer { rocksdb_flushoptions_destroy(options) }
        rocksdb_flushoptions_set_wait(options, waits ? 1 : 0)
        try rocks("write", path) { rocksdb_flush(database, options, $0) }
        if waits { hasUnloggedWrites = false }
    }

    func beginFlush() throws(StoreFault) {
        precondition(isOpen, "a closed store is not used")
        if hasUnloggedWrites { try flush(waits: false) }
    }

    // MARK: The whole store

    var approximateBytes: Int? {
        precondition(isOpen, "a closed store is not used")
        var files: UInt64 = 0
        var buffers: UInt64 = 0
        guard rocksdb_property_int(database, "rocksdb.total-sst-files-size", &files) == 0,
            rocksdb_property_int(database, "rocksdb.size-all-mem-tables", &buffers) == 0
        else { return nil }
        return Int(clamping: files + buffers)
    }

    /// Logged writes are not flushed: the next opening reads at most two write buffers of the write-ahead log.
    func close() throws(StoreFault) {
        precondition(isOpen, "a store is closed once")
        isOpen = false
        // Also after a fault: the lock on the directory must be released.
        defer { closeDatabase() }
        if hasUnloggedWrites { try flush(waits: true) }
    }

    private func closeDatabase() {
        cache.closes(database)
        rocksdb_close(database)
    }
}

/// What a write needs besides its changes.
private final class WriteMemory {
    let batch = rocksdb_writebatch_create()!
    var places: [ChangePlace] = []
    /// The timer that was held last.
    var timer: [UInt8] = []

    deinit { rocksdb_writebatch_destroy(batch) }
}

/// `ReadTier::kPersistedTier`, which RocksDB's C interface does not name.
private let persistedTier: Int32 = 2

/// Bytes at an address for C, kept from call to call. For use by one thread.
private final class KeyBuffer {
    private(set) var address: UnsafeMutablePointer<CChar>
    private(set) var count = 0
    private var capacity = 64

    init() { address = .allocate(capacity: capacity) }
    deinit { address.deallocate() }

    @inline(__always)
    func hold(_ space: UInt8, _ key: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)) {
        prepare(key.count + 1)
        address[0] = CChar(bitPattern: space)
        guard let base = key.baseAddress else { return }
        UnsafeMutableRawPointer(address + 1).copyMemory(from: base, byteCount: key.count)
    }

    @inline(__always)
    func hold(_ bytes: UnsafeRawBufferPointer) {
        prepare(bytes.count)
        guard let base = bytes.baseAddress else { return }
        UnsafeMutableRawPointer(address).copyMemory(from: base, byteCount: bytes.count)
    }

    @inline(__always)
    private func prepare(_ count: Int) {
        self.count = count
        if count > capacity { grow(to: count) }
    }

    private func grow(to count: Int) {
        address.deallocate()
        capacity = count * 2
        address = .allocate(capacity: capacity)
    }
}
