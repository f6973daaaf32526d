import Foundation
import Synchronization
import Testing

/// The program service-probe, running.
final class ProbeProcess {
    private let process = Process()
    private let stdout = Collector()
    private let stderr = Collector()

    init(_ behaviour: String, stopDeadlineMilliseconds: Int = 10_000) throws {
        // The programs of the package lie beside the bundle of its tests.
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let folder = URL(fileURLWithPath: tests).deletingLastPathComponent()
        process.executableURL = folder.appendingPathComponent("service-probe")
        process.arguments = [behaviour, String(stopDeadlineMilliseconds)]
        process.standardOutput = stdout.pipe
        process.standardError = stderr.pipe
        process.standardInput = FileHandle.nullDevice
        try process.run()
        stdout.start()
        stderr.start()
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }

    var log: String { stderr.text }
    var output: String { stdout.text }

    func signal(_ number: Int32) { kill(process.processIdentifier, number) }

    /// The exit code; nil when the process has not ended within `seconds`.
    func exitCode(within seconds: Double) -> Int32? {
        guard eventually(within: seconds, { !process.isRunning }) else { return nil }
        // What it wrote last may still be on its way.
        _ = eventually { stdout.hasEnded && stderr.hasEnded }
        return process.terminationReason == .exit ? process.terminationStatus : nil
    }

    func waitUntilListening() throws -> UInt16 {
        try #require(eventually { output.contains("listens ") && output.contains("\n") }, "\(log)")
        let line = try #require(output.split(separator: "\n").first { $0.hasPrefix("listens ") })
        return try #require(UInt16(line.dropFirst("listens ".count)))
    }

    func waitUntilReady() throws -> UInt16 {
        let port = try waitUntilListening()
        try #require(eventually { (try? get(port, "/readyz"))?.status == 200 }, "\(log)")
        return port
    }
}

/// Reads a pipe to its end on a thread of its own.
private final class Collector: Sendable {
    let pipe = Pipe()
    private let state = Mutex<(bytes: Data, hasEnded: Bool)>((Data(), false))

    /// Call when the child has the other end.
    func start() {
        let handle = pipe.fileHandleForReading
        Thread.detachNewThread {
            while true {
                let some = handle.availableData
                self.state.withLock { state in
                    state.bytes += some
                    state.hasEnded = some.isEmpty
                }
                if some.isEmpty { return }
            }
        }
    }

    var text: String { state.withLock { String(decoding: $0.bytes, as: UTF8.self) } }
    var hasEnded: Bool { state.withLock { $0.hasEnded } }
}

/// Waits until `condition` holds; false when it does not in time.
func eventually(within seconds: Double = 10, _ condition: () -> Bool) -> Bool {
    let end = ContinuousClock.now.advanced(by: .seconds(seconds))
    while !condition() {
        if ContinuousClock.now > end { return false }
        usleep(5000)
    }
    return true
}

/// One GET on a connection of its own, by curl: somebody else's idea of HTTP.
func get(_ port: UInt16, _ path: String) throws -> (status: Int, body: String) {
    let curl = try run(
        "/usr/bin/curl",
        [
            "--silent", "--show-error", "--max-time", "5", "--write-out", "\n%{http_code}",
            "http://127.0.0.1:\(port)\(path)",
        ])
    let lines = curl.output.split(separator: "\n", omittingEmptySubsequences: false)
    let status = try #require(lines.last.flatMap { Int($0) }, "\(curl.output)")
    return (status, lines.dropLast().joined(separator: "\n"))
}

/// Runs a program to its end; what it wrote to both streams.
func run(_ path: String, _ arguments: [String], input: String = "") throws -> (status: Int32, output: String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    let (stdin, stdout) = (Pipe(), Pipe())
    process.standardInput = stdin
    process.standardOutput = stdout
    process.standardError = stdout
    try process.run()
    stdin.fileHandleForWriting.write(Data(input.utf8))
    try stdin.fileHandleForWriting.close()
    let output = String(decoding: stdout.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, output)
}
