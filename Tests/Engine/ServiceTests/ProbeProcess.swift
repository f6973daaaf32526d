import KafkaTestKit
import Testing

/// The program service-probe, running.
final class ProbeProcess: Sendable {
    private let process: ChildProcess

    /// `errors` is the path of a named pipe to create for standard error.
    init(_ behaviour: String, stopDeadlineMilliseconds: Int = 10_000, errors: String? = nil) throws {
        let command = [try productPath("service-probe"), behaviour, String(stopDeadlineMilliseconds)]
        process =
            if let errors {
                try ChildProcess("/bin/sh", ["-c", #"mkfifo "$0" && exec "$@" 2<>"$0""#, errors] + command)
            } else {
                try ChildProcess(command[0], Array(command.dropFirst()))
            }
    }

    var log: String { process.standardError }
    var output: String { process.standardOutput }

    func signal(_ number: Int32) { process.kill(number) }

    func waitUntilPrinted(_ text: String) async throws { try await process.waitUntilPrinted(text) }

    /// Throws if it has not ended within the limit; nil if a signal has killed it.
    func exitCode(within limit: Duration) async throws -> Int32? {
        if case .exited(let code) = try await process.wait(within: limit) { code } else { nil }
    }

    func waitUntilListening() async throws -> UInt16 {
        let announcement = "listens "
        try await process.waitUntilPrinted(announcement)
        try await waitUntil("the line is whole") { output.contains("\n") }
        let line = try #require(output.split(separator: "\n").first { $0.hasPrefix(announcement) })
        return try #require(UInt16(line.dropFirst(announcement.count)))
    }

    func waitUntilReady() async throws -> UInt16 {
        let port = try await waitUntilListening()
        try await waitUntil("the probe is ready") { try await get(port, "/readyz").status == 200 }
        return port
    }
}

/// One GET on a connection of its own, with curl, an independent HTTP client.
func get(_ port: UInt16, _ path: String) async throws -> (status: Int, body: String) {
    let curl = try await run(
        "curl",
        [
            "--silent", "--show-error", "--max-time", "5", "--write-out", "\n%{http_code}",
            "http://127.0.0.1:\(port)\(path)",
        ])
    let lines = curl.standardOutput.split(separator: "\n", omittingEmptySubsequences: false)
    let status = try #require(lines.last.flatMap { Int($0) }, "\(curl.words)")
    return (status, lines.dropLast().joined(separator: "\n"))
}
