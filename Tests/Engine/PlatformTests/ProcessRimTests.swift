import Glibc
import KafkaTestKit
import Platform
import Synchronization
import Testing

@Suite struct `The environment` {
    /// In a process of its own, because other tests read the environment while it changes.
    @Test func `has every variable with its whole value`() async {
        await #expect(processExitsWith: .success) {
            setenv("RIM_EQUALS", "a=b=", 1)
            setenv("RIM_EMPTY", "", 1)
            let all = environmentVariables()
            #expect(all.filter { $0.name == "RIM_EQUALS" }.map(\.value) == ["a=b="])
            #expect(all.filter { $0.name == "RIM_EMPTY" }.map(\.value) == [""])
            #expect(all.contains { $0.name == "PATH" && !$0.value.isEmpty })
        }
    }
}

@Suite struct `Writing all of a text` {
    /// Larger than any pipe; no two neighbouring blocks are equal.
    private static let bytes = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 >> 12 ^ $0) }

    private func makePipe() throws -> (reader: Int32, writer: Int32) {
        var ends: [Int32] = [-1, -1]
        try #require(pipe2(&ends, O_CLOEXEC) == 0)
        return (ends[0], ends[1])
    }

    private func makeNonBlocking(_ descriptor: Int32) throws {
        try #require(fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK) == 0)
    }

    @Test(arguments: [false, true])
    func `loses nothing while the reader is slow, whether the descriptor blocks or not`(_ blocks: Bool) async throws {
        let (reader, writer) = try makePipe()
        defer { close(reader) }
        if !blocks { try makeNonBlocking(writer) }
        let writing = WorkerThread.start("writes") {
            writeAll(Self.bytes, to: writer)
            close(writer)
        }
        let received = Mutex<[UInt8]>([])
        try await WorkerThread.start("reads") {
            // The writer is blocked by a full pipe by then, or soon.
            pause(for: .milliseconds(50))
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while case let count = read(reader, &buffer, buffer.count), count > 0 {
                received.withLock { $0 += buffer[..<count] }
            }
        }.join()
        try await writing.join()
        // Does not compare the arrays in the expectation: computing the difference of two this long would take minutes.
        let isSame = received.withLock { $0 == Self.bytes }
        #expect(isSame, "\(received.withLock { $0.count }) bytes came")
    }

    @Test func `gives up on a reader that does not read for too long`() async throws {
        let (reader, writer) = try makePipe()
        defer {
            close(reader)
            close(writer)
        }
        try makeNonBlocking(writer)
        let begin = ContinuousClock.now
        try await WorkerThread.start("writes") {
            writeAll(Self.bytes, to: writer, stallLimit: .milliseconds(200))
        }.join()
        let took = begin.duration(to: .now)
        #expect(took >= .milliseconds(200) && took < patience / 2, "\(took)")
    }

    @Test func `takes a terminal that was closed for a reader that reads no more`() async throws {
        let ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)
        try #require(ours >= 0 && grantpt(ours) == 0 && unlockpt(ours) == 0)
        let theirs = open(ptsname(ours), O_RDWR | O_NOCTTY | O_CLOEXEC)
        try #require(theirs >= 0)
        defer { close(theirs) }
        #expect(!isAbandoned(theirs))
        close(ours)
        try await waitUntil("the terminal is closed", within: patience) { isAbandoned(theirs) }
        #expect(writeAll([1], to: theirs) == nil)
    }

    @Test func `knows a pipe without a reader from one that is only full, and from a file`() async throws {
        let (reader, writer) = try makePipe()
        defer { close(writer) }
        try makeNonBlocking(writer)
        while write(writer, Self.bytes, Self.bytes.count) > 0 {}
        #expect(!isAbandoned(writer))
        close(reader)
        // A process that another test is starting holds the reader's end until it executes its program.
        try await waitUntil("the pipe has no reader", within: patience) { isAbandoned(writer) }
        let nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC)
        defer { close(nowhere) }
        #expect(!isAbandoned(nowhere))
    }

    /// In a process of its own, because SIGPIPE is ignored in the whole process.
    @Test func `ends quietly when nobody reads any more`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            signal(SIGPIPE, SIG_IGN)
            var ends: [Int32] = [-1, -1]
            #expect(pipe2(&ends, O_CLOEXEC | O_NONBLOCK) == 0)
            close(ends[0])
            writeAll([1, 2, 3], to: ends[1])
            _exit(7)
        }
    }
}

/// In processes of their own, because they change the whole process.
@Suite struct `Signals held back` {
    /// The set of signals in a line of /proc; the lowest bit is signal 1.
    private static func signals(_ name: String) throws -> UInt64 {
        let status = String(decoding: try readFile("/proc/thread-self/status"), as: UTF8.self)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("\(name):") })
        return try #require(UInt64(line.split(separator: "\t")[1], radix: 16))
    }

    private static func set(_ signals: [Int32]) -> UInt64 { signals.reduce(0) { $0 | 1 << UInt64($1 - 1) } }

    @Test func `are those that somebody takes, and no others`() async {
        await #expect(processExitsWith: .success) {
            // Threads of the pool start with other masks than `main`.
            var none = sigset_t()
            sigemptyset(&none)
            pthread_sigmask(SIG_SETMASK, &none, nil)
            Signals.holdBack()
            let (blocked, ignored) = (try Self.signals("SigBlk"), try Self.signals("SigIgn"))
            #expect(blocked == Self.set([SIGINT, SIGTERM, SIGHUP]))
            #expect(ignored & Self.set([SIGPIPE]) != 0)
        }
    }

    @Test func `are given to the one who waits, and nil when none comes`() async {
        await #expect(processExitsWith: .success) {
            Signals.holdBack()
            for (number, name) in [(SIGINT, .interrupt), (SIGTERM, .terminate), (SIGHUP, .hangUp)] as [(Int32, Signal)]
            {
                raise(number)
                #expect(Signals.wait(for: patience) == name)
            }
            #expect(Signals.wait(for: .milliseconds(10)) == nil)
        }
    }
}
