// Where a replica keeps what it has on disk.

internal import Glibc
internal import Platform
public import Store
import Synchronization

/// The directory of one worker in one environment: a store and crash notes of each partition, and a lock for each replica.
/// Replicas on one machine may share it: a partition that moves between them finds its store there.
public final class WorkerDirectory: CrashNotesProvider, Sendable {
    public let stores: RocksStores
    /// This replica's alone: for partitions whose stores another one keeps locked.
    public let aside: any PartitionStores
    /// Dynamic replicas that have worked here and are gone.
    public let leftovers: [Leftover]
    private let path: String
    /// Held until the process ends.
    private let lock: FileLock

    /// - Parameters:
    ///   - directory: the setting `state.directory`.
    ///   - group: of the worker; its part of the directory has this name.
    ///   - threads: as many as the worker has.
    public init(
        directory: String, group: String, replica: Replica, threads: Int = 1, memory: MemoryPlan
    ) throws(WorkerEnd) {
        path = "\(directory)/\(group)"
        let cache = StoreCache(bytes: memory.blockBytes)
        aside = AsideStores(
            directory: "\(path)/\(replica.fileName).aside", cache: cache, writeBufferBytes: memory.writeBufferBytes)
        do throws(StoreFault) {
            stores = try RocksStores(directory: path, cache: cache, writeBufferBytes: memory.writeBufferBytes)
        } catch {
            throw WorkerEnd("state.directory cannot be used: \(error.words)")
        }
        do throws(FileLockFault) {
            switch replica {
            case .slot: lock = try FileLock.take("\(path)/\(replica.fileName).lock")
            case .dynamic: lock = try FileLock.take("\(path)/\(replica.fileName).\(threads).lock")
            }
        } catch {
            switch error {
            case .held:
                throw WorkerEnd(
                    "worker.slot \(replica) cannot work in \(path): \(error). Give every replica a worker.slot of its own"
                )
            case .system(let failure):
                throw WorkerEnd("state.directory cannot be used: \(StoreFault("lock", path: path, failure).words)")
            }
        }
        leftovers = Leftover.find(in: path, group: group)
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

/// A dynamic replica that is gone: nobody will have its names again, so somebody else ends what it has left open in the log.
public final class Leftover: Sendable {
    public let identities: [String]
    private let path: String
    /// Held meanwhile: two that start at once need not do the same.
    private let lock: Mutex<FileLock?>

    private init(identities: [String], path: String, lock: consuming FileLock) {
        self.identities = identities
        self.path = path
        self.lock = Mutex(lock)
    }

    /// Those whose lock nobody holds: their processes have ended, however that happened.
    static func find(in path: String, group: String) -> [Leftover] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var found: [Leftover] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            let parts = name.split(separator: ".")
            guard parts.count == 3, parts[0].hasPrefix(Replica.dynamicPrefix), parts[2] == "lock",
                let threads = Int(parts[1]), (1...256).contains(threads),
                let lock = try? FileLock.take("\(path)/\(name)")
            else { continue }
            let replica = Replica.dynamic(String(parts[0]))
            found.append(
                Leftover(
                    identities: (0..<threads).map { replica.identity(group: group, thread: $0) },
                    path: "\(path)/\(name)", lock: lock))
        }
        return found
    }

    /// It has left nothing open any more. The file goes before the lock: nobody takes this name again.
    func forget() {
        unlink(path)
        lock.withLock { $0.take()?.release() }
    }
}
