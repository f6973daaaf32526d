import Glibc
import KafkaTestKit
import Platform
import Testing

@Suite struct `Reading a file` {
    private let scratch: ScratchDirectory

    init() throws { scratch = try ScratchDirectory("platform-files") }

    @Test func `gives all its bytes`() throws {
        let path = try scratch.write("one\ntwo\0é", to: "file")
        #expect(try readFile(path) == Array("one\ntwo\0é".utf8))
        #expect(try readFile(try scratch.write("", to: "empty")) == [])
    }

    @Test func `takes a file of just its limit, and refuses one byte more`() throws {
        let path = try scratch.write("12345678", to: "file")
        #expect(try readFile(path, limitBytes: 8).count == 8)
        let fault = #expect(throws: FileFault.self) { try readFile(path, limitBytes: 7) }
        #expect(fault == .tooLarge(path: path, limitBytes: 7))
        #expect(fault?.description.contains("larger than 7 bytes") == true)
    }

    @Test func `names what is missing, and why`() {
        let path = "\(scratch.path)/missing"
        let fault = #expect(throws: FileFault.self) { try readFile(path) }
        #expect(fault?.description == "cannot read \(path): No such file or directory")
    }

    @Test func `refuses a directory`() {
        #expect(throws: FileFault.notAFile(path: scratch.path)) { try readFile(scratch.path) }
    }

    @Test func `refuses a device`() {
        #expect(throws: FileFault.notAFile(path: "/dev/zero")) { try readFile("/dev/zero") }
    }

    @Test func `does not wait for the writer of a FIFO`() async throws {
        let path = "\(scratch.path)/fifo"
        try #require(mkfifo(path, 0o600) == 0)
        let reader = WorkerThread.start("reads") { _ = try readFile(path) }
        // On a thread of its own, so that a hanging reader fails the test and does not block it.
        try await waitUntil("the reader is back") { reader.isFinished }
        await #expect(throws: FileFault.notAFile(path: path)) { try await reader.join() }
    }

    /// Files of /proc report the size 0, and any file may grow after its size was read.
    @Test func `takes what there is, not what its size was`() throws {
        let path = "/proc/self/status"
        var status = stat()
        try #require(stat(path, &status) == 0 && status.st_size == 0)
        #expect(try String(decoding: readFile(path), as: UTF8.self).hasPrefix("Name:"))
        #expect(throws: FileFault.tooLarge(path: path, limitBytes: 10)) { try readFile(path, limitBytes: 10) }
    }
}
