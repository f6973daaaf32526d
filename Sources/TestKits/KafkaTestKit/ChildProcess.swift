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
    /// The environment of this process, with these values added or replaced.
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

/// A running program. It has its own process group, default signals and none of this process's descriptors. It is
/// killed when this object or the test process ends, however that happens. Its output goes to files in memory and can
/// be read at any time.
public final class ChildProcess: Sendable {
    /// More output than any test reads; if there is more, only the end is returned.
    private static let outputLimitBytes = 64 << 20

    public let program: String
    public let processID: Int32
    private let outputFile: Descriptor
    private let errorFile: Descriptor
    private let knownEnding = Mutex<ProcessEnding?>(nil)

    /// Starts the program at once.
    /// - Parameters:
    ///   - program: a path, or a name to find in PATH.
    ///   - input: the standard input; if it is empty, the program reads end of file.
    ///   - mergesErrors: standard error goes into `standardOutput`, in the order of writing.
    ///   - host: where it runs.
    public init(
        _ program: String, _ arguments: [String] = [], environment: ProcessEnvironment = .inherited(),
        workingDirectory: String? = nil, input: String = "", mergesErrors: Bool = false, on host: TestHost = .own
    ) throws(SystemFailure) {
        // The entry of a host becomes the program, so it has the same process number.
        let words = host.entry + [host.entry.isEmpty ? program : try Self.locate(program)] + arguments
        let path = try Self.locate(words[0])
        let inputFile = try Self.memoryFile("input")
        writeAll(Array(input.utf8), to: inputFile.number)
        guard lseek(inputFile.number, 0, SEEK_SET) == 0 else { throw .last("prepare the input of \(program)") }
        let outputFile = try Self.memoryFile("output")
        let errorFile = try Self.memoryFile("errors")
        let streams = (inputFile.number, outputFile.number, mergesErrors ? outputFile.number : errorFile.number)
        processID = try Self.spawn(path, words, environment.entries, workingDirectory, streams)
        self.program = program
        self.outputFile = outputFile
        self.errorFile = errorFile
        ExitCleanup.add(child: processID)
    }

    deinit {
        guard ending == nil else { return }
        killNow()
        // The wait is short, but a deinit must not block: the pool may have only two threads.
        let pid = processID
        WorkerThread.start("reaper") {
            var code: Int32 = 0
            var isSignal = false
            perennial_reap_child(pid, true, &code, &isSignal)
            ExitCleanup.remove(child: pid)
        }
    }

    // MARK: Signals

    /// Sends a signal to the program and its process group; does nothing if it has ended.
    public func kill(_ signal: Int32) {
        knownEnding.withLock { ending in
            // Nothing reaps while the lock is held, so the number cannot belong to another process.
            if Self.reap(processID, &ending) == nil { _ = Glibc.kill(-processID, signal) }
        }
    }

    /// SIGKILL: no handler, no flush.
    public func killNow() { kill(SIGKILL) }

    /// SIGSTOP: the program stops, and its connections stay open.
    public func suspend() { kill(SIGSTOP) }

    /// SIGCONT: ends `suspend()`.
    public func resume() { kill(SIGCONT) }

    // MARK: Ending

    /// nil while it is running. Does not block.
    public var ending: ProcessEnding? { knownEnding.withLock { Self.reap(processID, &$0) } }

    public var isRunning: Bool { ending == nil }

    /// Waits for the end. If it does not come in time, the error shows the last lines of output.
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

    /// Waits until a text, such as a ready message, is in standard output or standard error. Throws at once if the
    /// program ends without it.
    public func waitUntilPrinted(_ text: String, within limit: Duration = patience) async throws {
        let deadline = Deadline(after: limit)
        while true {
            // The order matters: the last output comes before the end.
            let ending = ending
            if standardOutput.contains(text) || standardError.contains(text) { return }
            if let ending {
                throw KafkaTestFault("\(program) ended (\(ending)) without printing \"\(text)\":\n\(lastLines(30))")
            }
            guard !deadline.hasPassed else {
                throw NotInTime("\(program) prints \"\(text)\"", limit: limit, detail: lastLines(30))
            }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Sends SIGTERM, and SIGKILL if the program does not end within the limit.
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

    /// The peak resident memory (VmHWM) of a running program.
    public func peakMemoryBytes() throws -> Int {
        let status = String(decoding: try readFile("/proc/\(processID)/status", limitBytes: 1 << 16), as: UTF8.self)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        guard let kilobytes = line?.split(whereSeparator: { " \t".contains($0) }).dropFirst().first.flatMap({ Int($0) })
        else { throw SystemFailure(operation: "read the memory of process \(processID)", code: EINVAL) }
        return kilobytes * 1024
    }

    /// The current resident memory; nil if the program has ended.
    public func memoryBytes() -> Int? {
        guard let text = try? readFile("/proc/\(processID)/statm", limitBytes: 1 << 12) else { return nil }
        let fields = String(decoding: text, as: UTF8.self).split(separator: " ")
        return fields.count > 1 ? Int(fields[1]).map { $0 * Int(getpagesize()) } : nil
    }

    /// Processor time that its threads have used; nil if the program has ended.
    public func cpuSeconds() -> Double? {
        guard let text = try? readFile("/proc/\(processID)/stat", limitBytes: 1 << 12) else { return nil }
        // The program name, in parentheses, may contain any character.
        let fields = String(decoding: text, as: UTF8.self).split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else { return nil }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    // MARK: Output

    /// Everything that it has written so far.
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

    /// Reaps only this process: other children belong to other code.
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
        guard number >= 0 else { throw .last("create a file in memory") }
        return Descriptor(owning: number)
    }

    private static func spawn(
        _ path: String, _ arguments: [String], _ environment: [String], _ workingDirectory: String?,
        _ streams: (input: Int32, output: Int32, errors: Int32)
    ) throws(SystemFailure) -> Int32 {
        // C would cut the text at the zero byte and start something else.
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
        // Reads at explicit positions: the program writes at the descriptor's own position.
        return String(unsafeUninitializedCapacity: size) { buffer in
            max(0, pread(file.number, buffer.baseAddress, size, start))
        }
    }
}
