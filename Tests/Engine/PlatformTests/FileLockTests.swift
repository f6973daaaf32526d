import Glibc
import KafkaTestKit
import Platform
import Testing

@Suite struct `A file lock` {
    private let scratch: ScratchDirectory
    private var path: String { "\(scratch.path)/lock" }

    init() throws { scratch = try ScratchDirectory("file-lock") }

    private func fault() -> FileLockFault? {
        do throws(FileLockFault) {
            try FileLock.take(path).release()
            return nil
        } catch { return error }
    }

    @Test func `is held by one process, whose number the others learn`() async throws {
        let holder = try ChildProcess(try productPath("platform-probe"), ["lock", path])
        try await holder.waitUntilPrinted("locked")
        #expect(fault() == .held(path: path, by: Int(holder.processID)))
        let second = try await run(try productPath("platform-probe"), ["lock", path])
        #expect(second.code != 0)
        #expect(second.standardError.contains("\(path) is locked by process \(holder.processID): only one process"))
    }

    @Test func `goes with its process, however that ends`() async throws {
        let holder = try ChildProcess(try productPath("platform-probe"), ["lock", path])
        try await holder.waitUntilPrinted("locked")
        holder.killNow()
        _ = try await holder.wait()
        #expect(fault() == nil)
    }

    @Test func `excludes the same process, too, until it is released`() throws {
        let lock = try FileLock.take(path)
        #expect(fault() == .held(path: path, by: Int(getpid())))
        lock.release()
        #expect(fault() == nil)
    }

    @Test func `of an unwritten file is held by somebody`() throws {
        let file = open(path, O_RDWR | O_CREAT, 0o600)
        defer { close(file) }
        try #require(flock(file, LOCK_EX) == 0)
        #expect(fault()?.description == "\(path) is locked by another process: only one process may work here")
    }

    @Test func `has the number of its last holder alone`() throws {
        _ = try scratch.write("123456789012\nand more\n", to: "lock")
        let lock = try FileLock.take(path)
        #expect(try String(decoding: readFile(path), as: UTF8.self) == "\(getpid())\n")
        lock.release()
    }

    @Test func `says where it cannot be`() {
        let missing = "\(scratch.path)/missing/lock"
        let fault = #expect(throws: FileLockFault.self) { try FileLock.take(missing).release() }
        #expect(fault?.description == "open \(missing): No such file or directory")
    }
}
