import Glibc
import KafkaTestKit
import Platform
import Synchronization
import TestTraits
import Testing

@testable import RocksStore
@testable import Store

@Suite struct `A store whose process dies` {
    /// Kills a writer again and again, each time after a random number of writes, and checks what it has left.
    @Test(arguments: ["process", "none", "mixed", "flushed"])
    func `has all of a write or nothing, and everything before it`(_ durability: String) async throws {
        let scratch = try ScratchDirectory("store-kill")
        // With 8 KiB for each of nine values a write buffer is full every hundred writes, so that files are written, too.
        let padding = 8 << 10
        for _ in 0..<5 {
            let writes = Int.random(in: 1...400)
            let writer = try ChildProcess(
                try productPath("store-probe"), ["write", scratch.path, durability, "\(padding)"])
            try await waitUntil("\(writes) writes", within: .seconds(60)) {
                writer.standardOutput.count(where: { $0 == "\n" }) >= writes
            }
            writer.killNow()
            _ = try await writer.wait()
            // The last line may be incomplete.
            let printed = writer.standardOutput.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
                .map { line in line.split(separator: " ").compactMap { Int($0) } }
            let last = try #require(printed.last)
            try #require(last.count == 2)
            try await blocking {
                let store = try RocksStores(directory: scratch.path, cache: StoreCache(bytes: 1 << 20)).open(0)
                try checkWrites(store, upTo: last[0], lasting: last[1], durability)
                try store.close()
            }
        }
    }

    /// - Parameter lasting: the write that was to be left at least, as the store said before it died.
    private func checkWrites(
        _ store: any PartitionStore, upTo last: Int, lasting: Int, _ durability: String
    ) throws {
        let number = try Int(store.noteText() ?? "0")!
        #expect(number >= lasting)
        switch durability {
        case "process": #expect(number >= last)
        // At most nine writes were not logged, or not flushed.
        case "mixed", "flushed": #expect(number >= last - 9)
        default: break
        }
        guard number > 0 else { return }
        for key in 0..<8 { #expect(try store.value("shared \(key)")?.hasPrefix("\(number) ") == true) }
        for own in 1...number where try store.value("own \(own)")?.hasPrefix("\(own) ") != true {
            Issue.record("write \(own) is missing in \(number)")
            return
        }
        #expect(try store.value("own \(number + 1)") == nil)
        #expect(try store.timers() == [TimerEntry(Int64(number), "timer")])
    }

    @Test func `is free at once`() async throws {
        let scratch = try ScratchDirectory("store-kill")
        let holder = try ChildProcess(try productPath("store-probe"), ["hold", scratch.path])
        try await holder.waitUntilPrinted("open")
        let stores = try RocksStores(directory: scratch.path, cache: StoreCache(bytes: 1 << 20))
        let found = fault { _ = try stores.open(0) }
        #expect(found?.cause == .locked)
        #expect(found?.words == "\(scratch.path)/0 is locked by process \(holder.processID), which has it open")
        #expect(cause { try stores.wipe(0) } == .locked)
        holder.killNow()
        _ = try await holder.wait()
        try stores.open(0).close()
    }
}

@Suite(.ownThreads) struct `A store on disk` {
    private let scratch: ScratchDirectory
    private let stores: RocksStores
    private var partition: String { "\(scratch.path)/0" }

    init() throws {
        scratch = try ScratchDirectory("store-disk")
        stores = try RocksStores(directory: scratch.path, cache: StoreCache(bytes: 1 << 20))
    }

    private func files(_ ending: String) throws -> [String] {
        guard let directory = opendir(partition) else { throw SystemFailure.last("list") }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            names.append(
                withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
        }
        return names.filter { $0.hasSuffix(ending) || $0.hasPrefix(ending) }.map { "\(partition)/\($0)" }
    }

    /// Writes into files, and not only into the write-ahead log.
    private func fill() throws {
        let store = try stores.open(0)
        let changes = StoreChanges()
        for key in 0..<1000 {
            changes.put(
                Array("key \(key)".utf8).span, [UInt8](repeating: UInt8(truncatingIfNeeded: key), count: 500).span)
        }
        for timer in 0..<10_000 { changes.addTimer(due: Int64(timer), key: Array("key".utf8).span, kind: 0) }
        try store.write(changes, .none)
        try store.close()
    }

    private func overwrite(_ path: String, with bytes: [UInt8], at offset: Int) {
        let file = open(path, O_WRONLY)
        #expect(pwrite(file, bytes, bytes.count, offset) == bytes.count)
        close(file)
    }

    private func readAll() throws {
        let store = try stores.open(0)
        for key in 0..<1000 { _ = try store.value("key \(key)") }
    }

    /// Wiping and restoring is the remedy, and it works.
    private func expectCorrupt(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let found = fault { try readAll() }
        #expect(found?.cause == .corrupt, "\(String(describing: found))", sourceLocation: sourceLocation)
        #expect(found?.words.contains("Delete") == false, sourceLocation: sourceLocation)
        try stores.wipe(0)
        let store = try stores.open(0)
        #expect(try store.value("key 1") == nil, sourceLocation: sourceLocation)
        try store.close()
    }

    @Test func `is corrupt when bytes of a file have changed`() throws {
        try fill()
        let file = try #require(try files(".sst").first)
        for offset in stride(from: 1000, to: 400_000, by: 3000) { overwrite(file, with: [1, 2, 3, 4, 5], at: offset) }
        try expectCorrupt()
    }

    /// A scan that fails early would look like a scan that has reached its end: timers would never fire.
    @Test func `is corrupt when it cannot read its timers`() throws {
        try fill()
        let file = try #require(try files(".sst").first)
        // After the values, because the files are in the order of the keys.
        for offset in stride(from: 520_000, to: 600_000, by: 3000) {
            overwrite(file, with: [1, 2, 3, 4, 5], at: offset)
        }
        let store = try stores.open(0)
        #expect(try store.value("key 1") != nil)
        #expect(cause { _ = try store.timers() } == .corrupt)
        try store.close()
    }

    @Test func `is corrupt when a file is gone`() throws {
        try fill()
        for file in try files(".sst") { unlink(file) }
        try expectCorrupt()
    }

    @Test(arguments: ["CURRENT", "MANIFEST"])
    func `is corrupt when its list of files makes no sense`(_ name: String) throws {
        try fill()
        let file = try #require(try files(name).first)
        try #require(truncate(file, 3) == 0)
        try expectCorrupt()
    }

    @Test(arguments: ["CURRENT", "MANIFEST"])
    func `is corrupt or empty when its list of files is gone`(_ name: String) throws {
        try fill()
        for file in try files(name) { unlink(file) }
        let found = fault { try readAll() }
        #expect(found == nil || found?.cause == .corrupt, "\(String(describing: found))")
        try stores.wipe(0)
        try stores.open(0).close()
    }

    @Test func `goes on with a wipe that was cut short`() throws {
        try fill()
        // What the death of the process leaves between the mark and the last file.
        _ = try scratch.write("", to: "0.wiping")
        let store = try stores.open(0)
        #expect(try store.value("key 1") == nil)
        try store.write([("key", "1")])
        try store.close()
        let again = try stores.open(0)
        #expect(try again.value("key") == "1")
        try again.close()
    }

    @Test func `is not wiped later for a wipe that was refused`() throws {
        let store = try stores.open(0)
        #expect(cause { try stores.wipe(0) } == .locked)
        #expect(!fileExists("\(scratch.path)/0.wiping"))
        try store.close()
    }

    @Test func `is locked under every name of its directory`() throws {
        let store = try stores.open(0)
        let link = "\(scratch.path)/link"
        try #require(symlink(scratch.path, link) == 0)
        for name in [link, "\(scratch.path)/./", "\(link)/../\(scratch.path.split(separator: "/").last!)"] {
            let others = try RocksStores(directory: name, cache: StoreCache(bytes: 1 << 20))
            #expect(cause { _ = try others.open(0) } == .locked, "\(name)")
        }
        try store.close()
    }

    @Test func `makes the directories it needs`() throws {
        let deep = "\(scratch.path)/one/two/three"
        try RocksStores(directory: deep, cache: StoreCache(bytes: 1 << 20)).open(12).close()
        #expect(fileExists("\(deep)/12/CURRENT"))
    }

    /// A place that no test can write to, not even as root.
    @Test func `says what to do about a directory that it may not write`() {
        let found = fault { _ = try RocksStores(directory: "/sys/state", cache: StoreCache(bytes: 1 << 20)) }
        #expect(found?.cause == .system)
        #expect(found?.words.hasPrefix("make /sys/state: ") == true, "\(String(describing: found))")
        #expect(found?.words.contains("set state.directory to another place") == true, "\(String(describing: found))")
    }

    @Test func `says what to do about a file in the place of a directory`() throws {
        let file = try scratch.write("", to: "0")
        for found in [
            fault { _ = try stores.open(0) },
            fault { _ = try RocksStores(directory: file, cache: StoreCache(bytes: 1 << 20)) },
            fault { _ = try RocksStores(directory: "\(file)/below", cache: StoreCache(bytes: 1 << 20)) },
        ] {
            #expect(found?.cause == .system, "\(String(describing: found))")
            #expect(
                found?.words.contains("There is a file where a directory is needed") == true,
                "\(String(describing: found))")
        }
    }

    @Test(
        arguments: [
            (RocksStores.roomForOpening.bytes - 1, nil, "31 MiB left"),
            (RocksStores.roomForOpening.bytes, 31, "31 more files"),
            (0, 0, "0 MiB left"),
        ] as [(Int, Int?, String)])
    func `is not opened where there is too little room for it`(_ bytes: Int, _ files: Int?, _ words: String) throws {
        let room = Mutex(FreeRoom(bytes: bytes, files: files))
        let stores = try RocksStores(directory: scratch.path, cache: StoreCache(bytes: 1 << 20)) { _ in
            room.withLock { $0 }
        }
        let found = fault { _ = try stores.open(0) }
        #expect(found?.cause == .system)
        #expect(found?.words.hasPrefix("open \(partition): No space left") == true, "\(String(describing: found))")
        #expect(found?.words.contains(words) == true, "\(String(describing: found))")
        #expect(found?.words.contains("Free space on the disk") == true)
        room.withLock { $0 = RocksStores.roomForOpening }
        try stores.open(0).close()
    }

    @Test(arguments: [(4, 0, 4), (4, 3, 1), (4, 9, 1), (8, 3, 4), (100, 9, 4), (0, 0, 1)])
    func `are opened by as many threads as there is room for, others that open stores counted`(
        _ rooms: Int, _ others: Int, _ threads: Int
    ) throws {
        let stores = try RocksStores(directory: scratch.path, cache: StoreCache(bytes: 1 << 20)) { _ in
            FreeRoom(bytes: rooms * RocksStores.roomForOpening.bytes)
        }
        #expect(stores.threadsWithRoom(besides: others) == threads)
    }

    /// RocksDB, if built with assertions, would end this process.
    @Test(.enabled(if: SmallDisk.canBeMounted, "cannot mount a file system here: run as a user who may"))
    func `says that a disk is full, and opens again when there is room`() throws {
        let disk = try SmallDisk(megabytes: 64)
        defer { disk.unmount() }
        let stores = try RocksStores(directory: "\(disk.path)/state", cache: StoreCache(bytes: 1 << 20))
        let store = try stores.open(0)
        try store.write([("key", "1")])
        try store.close()
        try disk.fill()
        let found = fault { _ = try stores.open(0) }
        #expect(found?.cause == .system)
        #expect(found?.words.contains("0 MiB left") == true, "\(String(describing: found))")
        #expect(found?.words.contains("Free space on the disk") == true)
        try disk.makeRoom()
        let again = try stores.open(0)
        #expect(try again.value("key") == "1")
        try again.close()
    }

    @Test func `throws when files may not grow, and opens again with what it had`() async throws {
        let writer = try await run(try productPath("store-probe"), ["fill", scratch.path, "process", "2000000"])
        #expect(writer.standardError.hasPrefix("system: write \(partition): IO error"), "\(writer.words)")
        let last = try #require(writer.standardOutput.split(separator: "\n").last?.split(separator: " ").first)
        let store = try stores.open(0)
        #expect(try store.noteText() == "\(last)")
        #expect(try store.value("own \(last)")?.hasPrefix("\(last) ") == true)
        try store.close()
    }

    /// Its buffers are written to files by a thread of RocksDB: the next write reports the fault.
    @Test func `throws when its buffers cannot be flushed, and opens again with what was flushed`() async throws {
        let first = try stores.open(0)
        try first.write([("key", "1")], note: "0", .none)
        try first.close()
        let writer = try await run(try productPath("store-probe"), ["fill", scratch.path, "none", "2000000"])
        #expect(writer.standardError.hasPrefix("system: write \(partition): IO error"), "\(writer.words)")
        // Each line: the write, and the last one that is in the files.
        let line = try #require(writer.standardOutput.split(separator: "\n").last?.split(separator: " "))
        let (written, lasting) = (try #require(Int(line[0])), try #require(Int(line[1])))
        let store = try stores.open(0)
        let kept = try #require(Int(try store.noteText() ?? ""))
        #expect(kept >= lasting && kept <= written, "\(kept) of \(written) writes, \(lasting) in files")
        #expect(try store.value("key") == "1")
        #expect(try kept == 0 || store.value("own \(kept)")?.hasPrefix("\(kept) ") == true)
        #expect(try store.value("own \(kept + 1)") == nil)
        try store.close()
    }

    @Test(.enabled(if: SmallDisk.canBeMounted, "cannot mount a file system here: run as a user who may"))
    func `says that its buffers find no room on the disk, and opens again when there is room`() async throws {
        let disk = try SmallDisk(megabytes: 64)
        defer { disk.unmount() }
        let stores = try RocksStores(directory: "\(disk.path)/state", cache: StoreCache(bytes: 1 << 20))
        let first = try stores.open(0)
        try first.write([("key", "1")], note: "0", .none)
        try first.close()
        let writer = try await run(
            try productPath("store-probe"), ["fill", "\(disk.path)/state", "none", "\(1 << 30)"])
        #expect(
            writer.standardError.hasPrefix("system: write \(disk.path)/state/0: IO error: No space left"),
            "\(writer.words)")
        let lasting = try #require(writer.standardOutput.split(separator: "\n").last?.split(separator: " ").last)
        #expect(Int(lasting)! > 0)
        try disk.fill()
        #expect(cause { _ = try stores.open(0) } == .system)
        try disk.makeRoom()
        let store = try stores.open(0)
        #expect(try Int(store.noteText() ?? "")! >= Int(lasting)!)
        #expect(try store.value("own \(lasting)")?.hasPrefix("\(lasting) ") == true)
        try store.close()
    }

    @Test(
        arguments: [
            ("IO error: No space left on device: While appending to file: x", .system, "Free space on the disk"),
            ("IO error: Permission denied: While mkdir if missing: x", .system, "permission to write there"),
            (
                "IO error: Read-only file system: While open a file for appending: x", .system,
                "permission to write there"
            ),
            ("IO error: Too many open files: While open a file: x", .system, "ulimit -n"),
            ("IO error: Input/output error: While fsync: x", .system, "Check the disk"),
            ("IO error: lock hold by current process, acquire time 1: x", .locked, "already open"),
            ("IO error: While lock file: x: Resource temporarily unavailable", .locked, "already open"),
            ("Operation aborted: Memory limit reached", .system, "Check the disk"),
            ("Result incomplete: x", .system, "Check the disk"),
            ("Corruption: block checksum mismatch", .corrupt, ""),
            ("Not implemented: unknown table format", .corrupt, ""),
            ("Invalid argument: unknown comparator", .corrupt, ""),
        ] as [(String, StoreFault.Cause, String)])
    func `says for each kind of error what helps`(_ words: String, _ cause: StoreFault.Cause, _ advice: String) {
        let fault = StoreFault("write", path: "/state/0", rocks: words)
        #expect(fault.cause == cause)
        #expect(fault.words.contains("/state/0"), "\(fault)")
        #expect(advice.isEmpty ? fault.words.hasSuffix(words) : fault.words.contains(advice), "\(fault)")
    }

    @Test func `names another place when the directory cannot be made, though nothing is to be wiped`() throws {
        let found = fault { _ = try RocksStores(directory: "/proc/nowhere", cache: StoreCache(bytes: 1 << 20)) }
        #expect(found?.cause == .system)
        #expect(found?.words.contains("set state.directory to another place") == true, "\(String(describing: found))")
    }

    /// A new owner of twelve partitions waits for this.
    @Test func `is closed without writing its log out again`() throws {
        let store = try stores.open(0)
        try store.write([("key", "1")])
        try store.close()
        #expect(try files(".sst") == [])
    }
}
