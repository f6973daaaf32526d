import Glibc
import KafkaTestKit
import Platform
import Testing

@Suite struct `Crash notes` {
    private let scratch: ScratchDirectory
    private var path: String { "\(scratch.path)/notes" }

    init() throws { scratch = try ScratchDirectory("crash-notes") }

    private func probe(
        _ topic: UInt32, _ offset: Int64, _ way: String, backtrace: Bool = false
    ) throws -> ChildProcess {
        // Without core files: some twenty of them would fill a small disk.
        try ChildProcess(
            "/bin/sh",
            [
                "-c", "ulimit -c 0; exec \"$0\" \"$@\"", try productPath("platform-probe"), "trap", path, "\(topic)",
                "\(offset)", way,
            ], environment: .inherited(adding: ["SWIFT_BACKTRACE": "enable=\(backtrace ? "yes" : "no"),color=no"]))
    }

    private func end(_ topic: UInt32, _ offset: Int64, _ way: String) async throws -> ProcessEnding {
        try await probe(topic, offset, way).wait(within: .seconds(30))
    }

    private func traps(_ topic: UInt32, _ offset: Int64) throws -> Int {
        try CrashNotes(path: path).traps(topic: topic, offset: offset)
    }

    @Test(
        arguments: [
            ("fatal-error", [SIGILL, SIGTRAP]), ("array-index", [SIGILL, SIGTRAP]), ("null", [SIGSEGV]),
            ("abort", [SIGABRT]), ("overflow", [SIGSEGV]), ("fpe", [SIGFPE]), ("bus", [SIGBUS]),
        ] as [(String, [Int32])])
    func `count a trap, which stays the end of the process`(_ way: String, _ signals: [Int32]) async throws {
        for count in 1...2 {
            let ending = try await end(3, 1 << 40, way)
            #expect(signals.contains { ending == .killed(signal: $0) }, "\(ending)")
            #expect(try traps(3, 1 << 40) == count)
        }
    }

    /// Swift's handler, which prints the backtrace, is installed before ours, and returns for a signal that was sent.
    @Test(arguments: ["fatal-error", "overflow", "bus"])
    func `leave Swift its backtrace`(_ way: String) async throws {
        let child = try probe(3, 7, way, backtrace: true)
        let ending = try await child.wait(within: .seconds(60))
        #expect([SIGILL, SIGTRAP, SIGSEGV, SIGBUS].contains { ending == .killed(signal: $0) }, "\(ending)")
        #expect(try traps(3, 7) == 1)
        #expect(child.lastLines(.max).contains("*** Program crashed"))
    }

    /// The server of Swift's backtraces reads memory that may not exist, and handles the SIGSEGV of that.
    @Test func `let the handler before get its signal while it runs`() async throws {
        let child = try probe(3, 7, "null-handled")
        #expect(try await child.wait(within: .seconds(30)) == .killed(signal: SIGSEGV))
        #expect(child.lastLines(.max).contains("not blocked"))
        #expect(try traps(3, 7) == 1)
    }

    @Test func `begin again at another record`() async throws {
        _ = try await end(0, 7, "abort")
        _ = try await end(0, 7, "abort")
        #expect(try traps(0, 7) == 2)
        _ = try await end(0, 8, "abort")
        #expect(try traps(0, 7) == 0)
        #expect(try traps(0, 8) == 1)
        // The same offset of another topic is another record.
        _ = try await end(1, 8, "abort")
        #expect(try traps(0, 8) == 0)
        #expect(try traps(1, 8) == 1)
    }

    @Test func `count neither a clean end nor a trap between two records`() async throws {
        #expect(try await end(0, 7, "clean") == .exited(code: 0))
        #expect(try traps(0, 7) == 0)
        #expect(try await end(0, 7, "idle-abort") == .killed(signal: SIGABRT))
        #expect(try traps(0, 7) == 0)
    }

    /// A watchdog's SIGABRT and a person's `kill` are not the record's fault.
    @Test(arguments: [SIGKILL, SIGABRT, SIGSEGV])
    func `do not count a signal from outside, which ends the process as ever`(_ signal: Int32) async throws {
        let child = try probe(0, 7, "wait")
        try await child.waitUntilPrinted("waiting")
        child.kill(signal)
        #expect(try await child.wait() == .killed(signal: signal))
        #expect(try traps(0, 7) == 0)
    }

    @Test(arguments: ["", "x", String(repeating: "x", count: 24), String(repeating: "x", count: 5000)])
    func `are empty in a file of another content`(_ content: String) async throws {
        _ = try scratch.write(content, to: "notes")
        let x = UInt64(0x7878_7878_7878_7878)
        #expect(try traps(UInt32(truncatingIfNeeded: x), Int64(x)) == 0)
        #expect(try traps(0, 0) == 0)
        _ = try await end(0, 7, "abort")
        #expect(try traps(0, 7) == 1)
    }

    @Test func `are empty when a byte of them was damaged`() async throws {
        _ = try await end(0, 7, "abort")
        var bytes = try readFile(path)
        bytes[12] ^= 1
        let file = open(path, O_WRONLY)
        #expect(pwrite(file, bytes, bytes.count, 0) == bytes.count)
        close(file)
        #expect(try traps(0, 7) == 0)
        #expect(try traps(0, 7 + 1 << 32) == 0)
    }

    @Test func `say where they cannot be`() {
        let missing = "\(scratch.path)/missing/notes"
        let failure = #expect(throws: SystemFailure.self) { try CrashNotes(path: missing) }
        #expect(failure?.description == "map the crash notes \(missing): No such file or directory")
    }
}
