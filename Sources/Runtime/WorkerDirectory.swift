// Where a replica keeps what it has on disk.

internal import Platform
public import Store

/// The directory of one worker in one environment: a store and crash notes of each partition, and a lock for each replica.
/// Replicas on one machine may share it: a partition that moves between them finds its store there.
public final class WorkerDirectory: CrashNotesProvider, Sendable {
    public let stores: RocksStores
    /// This replica's alone: for partitions whose stores another one keeps locked.
    public let aside: any PartitionStores
    private let path: String
    /// Held until the process ends.
    private let lock: FileLock

    /// - Parameters:
    ///   - directory: the setting `state.directory`.
    ///   - group: of the worker; its part of the directory has this name.
    public init(directory: String, group: String, slot: Int, memory: MemoryPlan) throws(WorkerEnd) {
        path = "\(directory)/\(group)"
        let cache = StoreCache(bytes: memory.blockBytes)
        aside = AsideStores(
            directory: "\(path)/slot-\(slot).aside", cache: cache, writeBufferBytes: memory.writeBufferBytes)
        do throws(StoreFault) {
            stores = try RocksStores(directory: path, cache: cache, writeBufferBytes: memory.writeBufferBytes)
        } catch {
            throw WorkerEnd("state.directory cannot be used: \(error.words)")
        }
        do throws(FileLockFault) {
            lock = try FileLock.take("\(path)/slot-\(slot).lock")
        } catch {
            switch error {
            case .held:
                throw WorkerEnd(
                    "worker.slot \(slot) cannot work in \(path): \(error). Give every replica a worker.slot of its own")
            case .system(let failure):
                throw WorkerEnd("state.directory cannot be used: \(StoreFault("lock", path: path, failure).words)")
            }
        }
    }

    public func notes(_ partition: Int32) -> (any CrashNoting)? {
        do throws(SystemFailure) {
            return PartitionCrashNotes(try CrashNotes(path: "\(path)/\(partition).crash"))
        } catch {
            // A worker without notes still works; only poison would stop it again and again.
            return nil
        }
    }
}

/// Makes its directory when it is needed, which is seldom.
private final class AsideStores: PartitionStores {
    private let directory: String
    private let cache: StoreCache
    private let writeBufferBytes: Int

    init(directory: String, cache: StoreCache, writeBufferBytes: Int) {
        self.directory = directory
        self.cache = cache
        self.writeBufferBytes = writeBufferBytes
    }

    func open(_ partition: Int32) throws(StoreFault) -> any PartitionStore {
        try RocksStores(directory: directory, cache: cache, writeBufferBytes: writeBufferBytes).open(partition)
    }

    func wipe(_ partition: Int32) throws(StoreFault) {
        guard fileExists("\(directory)/\(partition)") else { return }
        try RocksStores(directory: directory, cache: cache, writeBufferBytes: writeBufferBytes).wipe(partition)
    }
}

private final class PartitionCrashNotes: CrashNoting {
    private let notes: CrashNotes

    init(_ notes: CrashNotes) { self.notes = notes }

    // A record of a partition that is given away is not worked on any more.
    deinit { notes.idle() }

    func working(topic: Int, offset: Int64) { notes.working(topic: UInt32(topic), offset: offset) }
    func idle() { notes.idle() }
    func isPoison(topic: Int, offset: Int64, limit: Int) -> Bool {
        notes.traps(topic: UInt32(topic), offset: offset) >= limit
    }
}
