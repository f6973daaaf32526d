// Programs that a test starts, watches and kills.

import CTestKit
import Glibc
public import Platform
import Synchronization

/// How a program ended.
public enum ProcessEnding: Sendable, Equatable, CustomStringConvertible {
    case exited(code: Int32)
    case killed(signal: Int32)

    public var description: String {
        switch self {
        case .exited(let code): "exit code \(code)"
        case .killed(let signal): "killed by signal \(signal)"
        }
    }
}

/// The environment of a program.
public enum ProcessEnvironment: Sendable {
    /// Ours, with these values added or replaced.
    case inherited(adding: [String: String] = [:])
    case only([String: String])

    var entries: [String] {
        switch self {
        case .only(let values): values.map { "\($0.key)=\($0.value)" }
        case .inherited(let values):
            environmentVariables().filter { values[$0.name] == nil }.map { "\($0.name)=\($0.value)" }
                + values.map { "\($0.key)=\($0.value)" }
        }
    }
}

/// A running program. It has a process group of its own, default signals and none of our descriptors; it is killed when this
/// object or the test process ends, however that happens. Output goes to files in memory and can be read at any time.
public final class ChildProcess: Sendable {
    /// More output than any test reads; of more than this only the end is kept in view.
    private static let outputLimitBytes = 64 << 20

    public let program: String
    public let processID: Int32
    private let outputFile: Descriptor
    private let errorFile: Descriptor
    private let knownEnding = Mutex<ProcessEnding?>(nil)

    /// Starts at once.
    /// - Parameters:
    ///   - program: a path, or a name to be found in PATH.
    ///   - input: what the program reads from standard input; empty: the end of it.
    ///   - mergesErrors: standard error goes into `standardOutput`, in the order of writing.
    public init(
        _ program: String, _ arguments: [String] = [], environment: ProcessEnvironment = .inherited(),
        workingDirectory: String? = nil, input: String = "", mergesErrors: Bool = false
    ) throws(SystemFailure) {
        let path = try Self.locate(program)
        let inputFile = try Self.memoryFile("input")
        writeAll(Array(input.utf8), to: inputFile.number)
        guard lseek(inputFile.number, 0, SEEK_SET) == 0 else { throw .last("prepare the input of \(program)") }
        let outputFile = try Self.memoryFile("output")
        let errorFile = try Self.memoryFile("errors")
        let streams = (inputFile.number, outputFile.number, mergesErrors ? outputFile.number : errorFile.number)
        processID = try Self.spawn(path, [program] + arguments, environment.entries, workingDirectory, streams)
        self.program = program
        self.outputFile = outputFile
        self.errorFile = errorFile
        ExitCleanup.add(child: processID)
    }

    deinit {
        guard ending == nil else { return }
        killNow()
        // The wait is short, but a deinit must not wait at all: the pool may be two threads wide.
        let pid = processID
        WorkerThread.start("reaper") {
            var code: Int32 = 0
            var isSignal = false
            perennial_reap_child(pid, true, &code, &isSignal)
            ExitCleanup.remove(child: pid)
        }
    }

    // MARK: Signals

    /// Sends a signal to the program and what it started in its group; nothing happens when it has ended.
    public func kill(_ signal: Int32) {
        knownEnding.withLock { ending in
            // Under the lock nobody reaps, so the number cannot be somebody else's by now.
            if Self.reap(processID, &ending) == nil { _ = Glibc.kill(-processID, signal) }
        }
    }

    /// SIGKILL: no handler, no flush.
    public func killNow() { kill(SIGKILL) }

    /// SIGSTOP: the program stands still, its connections stay open.
    public func suspend() { kill(SIGSTOP) }

    /// SIGCONT: ends `suspend()`.
    public func resume() { kill(SIGCONT) }

    // MARK: Ending

    /// nil while it runs. Does not block.
    public var ending: ProcessEnding? { knownEnding.withLock { Self.reap(processID, &$0) } }

    public var isRunning: Bool { ending == nil }

    /// Waits for the end. The error, when it does not come in time, shows the last lines of output.
    public func wait(within limit: Duration = patience) async throws -> ProcessEnding {
        let deadline = Deadline(after: limit)
        while true {
            if let ending { return ending }
            guard !deadline.hasPassed else {
                throw NotInTime("\(program) ends", limit: limit, detail: lastLines(30))
            }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Waits until a text, such as the word that says it is ready, is in the output or the error output.
    /// Does not wait on for a program that has ended without it.
    public func waitUntilPrinted(_ text: String, within limit: Duration = patience) async throws {
        let deadline = Deadline(after: limit)
        while true {
            // In this order: what is printed last comes before the end.
            let ending = ending
            if standardOutput.contains(text) || standardError.contains(text) { return }
            if let ending {
                throw KafkaTestFault("\(program) ended (\(ending)) without \"\(text)\":\n\(lastLines(30))")
            }
            guard !deadline.hasPassed else {
                throw NotInTime("\(program) prints \"\(text)\"", limit: limit, detail: lastLines(30))
            }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// SIGTERM, and SIGKILL for what does not end within the limit.
    @discardableResult
    public func terminate(within limit: Duration = patience) async throws -> ProcessEnding {
        kill(SIGTERM)
        do {
            return try await wait(within: limit)
        } catch is NotInTime {
            killNow()
            return try await wait()
        }
    }

    /// The most memory that it has ever had resident (VmHWM). It runs still.
    public func peakMemoryBytes() throws -> Int {
        let status = String(decoding: try readFile("/proc/\(processID)/status", limitBytes: 1 << 16), as: UTF8.self)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        guard let kilobytes = line?.split(whereSeparator: { " \t".contains($0) }).dropFirst().first.flatMap({ Int($0) })
        else { throw SystemFailure(operation: "read the memory of process \(processID)", code: EINVAL) }
        return kilobytes * 1024
    }

    // MARK: Output

    /// All that it has written so far.
    public var standardOutput: String { Self.text(of: outputFile) }
    public var standardError: String { Self.text(of: errorFile) }

    /// The end of both streams, for messages.
    public func lastLines(_ count: Int) -> String {
        [standardOutput, standardError]
            .map { $0.split(separator: "\n").suffix(count).joined(separator: "\n") }
            .filter { !$0.isEmpty }
            .joined(separator: "\n")
    }

    // MARK: System calls

    /// Reaps by this one number only: other children of the process belong to others.
    private static func reap(_ processID: Int32, _ ending: inout ProcessEnding?) -> ProcessEnding? {
        if let ending { return ending }
        var code: Int32 = 0
        var isSignal = false
        guard perennial_reap_child(processID, false, &code, &isSignal) == 1 else { return nil }
        ending = isSignal ? .killed(signal: code) : .exited(code: code)
        ExitCleanup.remove(child: processID)
        return ending
    }

    private static func locate(_ program: String) throws(SystemFailure) -> String {
        if program.contains("/") { return program }
        let path = environmentVariables().first { $0.name == "PATH" }?.value ?? "/usr/bin:/bin"
        for folder in path.split(separator: ":") {
            let candidate = "\(folder)/\(program)"
            if access(candidate, X_OK) == 0 { return candidate }
        }
        throw SystemFailure(operation: "find \(program) in PATH", code: ENOENT)
    }

    private static func memoryFile(_ label: String) throws(SystemFailure) -> Descriptor {
        let number = perennial_anonymous_file(label)
        guard number >= 0 else { throw .last("make a file in memory") }
        return Descriptor(owning: number)
    }

    private static func spawn(
        _ path: String, _ arguments: [String], _ environment: [String], _ workingDirectory: String?,
        _ streams: (input: Int32, output: Int32, errors: Int32)
    ) throws(SystemFailure) -> Int32 {
        // C would cut the text there and start something else than was asked for.
        guard !(arguments + environment).contains(where: { $0.utf8.contains(0) }) else {
            throw SystemFailure(operation: "start \(path): an argument contains a zero byte", code: EINVAL)
        }
        let argumentTexts = arguments.map { strdup($0) } + [nil]
        let environmentTexts = environment.map { strdup($0) } + [nil]
        let programText = strdup(path)
        let directoryText = workingDirectory.map { strdup($0) } ?? nil
        defer { for text in argumentTexts + environmentTexts + [programText, directoryText] { free(text) } }
        let pid = argumentTexts.withUnsafeBufferPointer { arguments in
            environmentTexts.withUnsafeBufferPointer { environment in
                var child = perennial_child()
                child.program = UnsafePointer(programText)
                child.arguments = arguments.baseAddress
                child.environment = environment.baseAddress
                child.working_directory = UnsafePointer(directoryText)
                (child.input, child.output, child.errors) = (streams.input, streams.output, streams.errors)
                return perennial_start_child(&child)
            }
        }
        guard pid > 0 else { throw .last("start \(path)") }
        return pid
    }

    private static func text(of file: borrowing Descriptor) -> String {
        var status = stat()
        guard fstat(file.number, &status) == 0 else { return "" }
        let size = min(Int(status.st_size), outputLimitBytes)
        let start = Int(status.st_size) - size
        // Read by position: the descriptor's own is where the program writes next.
        return String(unsafeUninitializedCapacity: size) { buffer in
            max(0, pread(file.number, buffer.baseAddress, size, start))
        }
    }
}
