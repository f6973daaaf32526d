// The directory in which a replica keeps its files.

internal import Glibc
internal import Platform
public import Store
import Synchronization

/// The directory of one worker in one environment: a store and crash notes of each partition, and a lock file for each
/// replica. Replicas on one machine may share it: if a partition moves between them, its store is already there.
public final class WorkerDirectory: CrashNotesProvider, Sendable {
    public let stores: any PartitionStores
    /// Used only by this replica, for partitions whose stores another replica keeps locked.
    public let aside: any PartitionStores
    /// Dynamic replicas that have worked here and have ended.
    public let leftovers: [Leftover]
    private let path: String
    /// Held until the process ends.
    private let lock: FileLock

    /// - Parameters:
    ///   - directory: the setting `state.directory`.
    ///   - group: the worker's group; its subdirectory has this name.
    ///   - threads: the number of the worker's threads.
    ///   - makeStores: makes the stores of a directory, such as `RocksStores.sharing` does.
    public init(
        directory: String, group: String, replica: Replica, threads: Int = 1,
        makeStores: @escaping @Sendable (_ directory: String) throws(StoreFault) -> any PartitionStores
    ) throws(WorkerEnd) {
        path = "\(directory)/\(group)"
        aside = AsideStores("\(path)/\(replica.fileName).aside", makeStores)
        do throws(StoreFault) {
            // The lock below needs it too, also where the stores are in memory.
            do throws(SystemFailure) { try makeDirectories(path) } catch { throw StoreFault("make", path: path, error) }
            stores = try makeStores(path)
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
                    "worker.slot \(replica) cannot work in \(path): \(error). Give every replica its own worker.slot"
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
            // A worker without notes still works. Only a record that crashes it would stop it again and again.
            return nil
        }
    }
}

/// Creates its directory only when it is needed, which is rare.
private final class AsideStores: PartitionStores {
    private let directory: String
    private let makeStores: @Sendable (_ directory: String) throws(StoreFault) -> any PartitionStores

    init(
        _ directory: String,
        _ makeStores: @escaping @Sendable (_ directory: String) throws(StoreFault) -> any PartitionStores
    ) {
        self.directory = directory
        self.makeStores = makeStores
    }

    func open(_ partition: Int32) throws(StoreFault) -> any PartitionStore { try makeStores(directory).open(partition) }

    func wipe(_ partition: Int32) throws(StoreFault) {
        guard fileExists("\(directory)/\(partition)") else { return }
        try makeStores(directory).wipe(partition)
    }
}

private final class PartitionCrashNotes: CrashNoting {
    private let notes: CrashNotes

    init(_ notes: CrashNotes) { self.notes = notes }

    // No record of a revoked partition is in process any more.
    deinit { notes.idle() }

    func working(topic: Int, offset: Int64) { notes.working(topic: UInt32(topic), offset: offset) }
    func idle() { notes.idle() }
    func isPoison(topic: Int, offset: Int64, limit: Int) -> Bool {
        notes.traps(topic: UInt32(topic), offset: offset) >= limit
    }
}

/// A dynamic replica that has ended: no process will use its names again, so another one ends the transactions that it
/// left open.
public final class Leftover: Sendable {
    public let identities: [String]
    private let path: String
    /// Held while the transactions are ended: two replicas that start together need not do the same.
    private let lock: Mutex<FileLock?>

    private init(identities: [String], path: String, lock: consuming FileLock) {
        self.identities = identities
        self.path = path
        self.lock = Mutex(lock)
    }

    /// The replicas whose lock file is unlocked: their processes have ended in some way.
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

    /// All its transactions are ended. The file is deleted before the lock is released: no process uses this name
    /// again.
    func forget() {
        unlink(path)
        lock.withLock { $0.take()?.release() }
    }
}
