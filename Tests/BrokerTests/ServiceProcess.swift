// A running service of the program, as its operator sees it.

import Glibc
import KafkaTestKit
import Platform
import Testing

/// `perennial COMMAND` with an admin server on a free port, and without settings from outside.
final class ServiceProcess: Sendable {
    let process: ChildProcess
    private let host: TestHost

    /// - Parameter program: the path of another build.
    init(
        _ arguments: [String], environment: [String: String] = [:], program: String? = nil, on host: TestHost = .own
    ) throws {
        self.host = host
        process = try ChildProcess(
            program ?? productPath("perennial"), arguments + ["--admin.listen", "\(host.address):0"],
            environment: .only(environment), workingDirectory: "/", on: host)
    }

    var log: String { process.standardError }

    /// The address of a server, from the line that it logs.
    func port(_ message: String) async throws -> UInt16 {
        var port: UInt16?
        try await waitUntil("\(message): \(process.lastLines(5))", within: patience) {
            for line in log.split(separator: "\n") where line.contains("\"\(message)\"") {
                guard let address = line.firstMatch(of: #/"address":"[^"]*:([0-9]+)"/#) else { continue }
                port = UInt16(address.1)
            }
            return port != nil
        }
        return try #require(port)
    }

    func waitUntilReady() async throws {
        let port = try await port("admin server listens")
        do {
            try await waitUntil("ready", within: patience) { try await answer(port, "/readyz").status == 200 }
        } catch {
            Issue.record("\(try await answer(port, "/readyz").body)\n\(process.lastLines(20))")
            throw error
        }
    }

    /// 503 and the reasons, as text.
    func reasons() async throws -> String {
        let answer = try await answer(try await port("admin server listens"), "/readyz")
        return answer.status == 503 ? answer.body : ""
    }

    /// The text that Prometheus reads.
    func metrics() async throws -> String {
        try await answer(try await port("admin server listens"), "/metrics").body
    }

    /// nil: there is no such series. If the series names no environment, the first one.
    func metric(_ series: String) async throws -> Double? {
        let text = try await metrics()
        let lines = text.split(separator: "\n").lazy.map {
            series.contains("environment=") ? $0 : Self.withoutEnvironment($0)
        }
        return lines.first { $0.hasPrefix(series + " ") }.flatMap { Double($0.dropFirst(series.utf8.count + 1)) }
    }

    private static func withoutEnvironment(_ line: Substring) -> Substring {
        line.replacing(#/\{environment="[a-z]+"\}/#, with: "")
            .replacing(#/environment="[a-z]+",/#, with: "").replacing(#/,environment="[a-z]+"/#, with: "")
    }

    /// Sum of all series with this name.
    func sum(_ name: String) async throws -> Double {
        let text = try await metrics()
        return text.split(separator: "\n").filter { $0.hasPrefix(name + "{") || $0.hasPrefix(name + " ") }
            .compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }.reduce(0, +)
    }

    /// Sends SIGTERM; a clean end has exit code 0.
    func stop() async throws {
        #expect(try await process.terminate(within: .seconds(30)) == .exited(code: 0), "\(process.lastLines(20))")
    }

    /// Asks with curl, an independent HTTP client.
    private func answer(_ port: UInt16, _ path: String) async throws -> (status: Int, body: String) {
        // A refused connection gives an exit code and status 0; this throws only if curl cannot be run.
        let curl = try await run(
            "curl",
            ["--silent", "--max-time", "5", "--write-out", "\n%{http_code}", "http://\(host.address):\(port)\(path)"])
        let lines = curl.standardOutput.split(separator: "\n", omittingEmptySubsequences: false)
        return (lines.last.flatMap { Int($0) } ?? 0, lines.dropLast().joined(separator: "\n"))
    }
}

/// The topics of an installation for one test, created by the program.
struct Installation: Sendable {
    let broker: Broker
    let prefix: String
    let partitions: Int

    static func make(_ label: String, _ broker: Broker, partitions: Int, replicas: Int = 1) async throws -> Installation
    {
        let installation = Installation(
            broker: broker, prefix: "\(label)-\(UInt32.random(in: 0 ... .max))", partitions: partitions)
        try await installation.makeTopics(replicas: replicas)
        return installation
    }

    var settings: [String] {
        ["--kafka.bootstrap.servers", broker.bootstrap, "--topic.prefix", prefix, "--partitions", "\(partitions)"]
    }

    func makeTopics(replicas: Int = 1) async throws {
        let made = try await run(
            productPath("perennial"),
            ["topics", "apply", "--topics.replication.factor", "\(replicas)"]
                + ["--topics.min.insync.replicas", "\(min(replicas, 2))"] + settings,
            environment: .only([:]), workingDirectory: "/")
        try #require(made.code == 0, "\(made.words)")
    }

    func topic(_ name: String, _ environment: String = "production") -> String { "\(prefix).\(environment).\(name)" }
}

/// A host with a wrong wall clock, for processes that are started with this environment.
struct ShiftedHost: Sendable {
    private let scratch: ScratchDirectory
    private let file: String

    init(seconds: Int64) throws {
        scratch = try ScratchDirectory("clock-shift")
        file = try scratch.write("", to: "seconds")
        shift(by: seconds)
    }

    var environment: [String: String] {
        get throws { ["LD_PRELOAD": try productPath("libClockShift.so"), "CLOCK_SHIFT_FILE": file] }
    }

    /// Also affects running processes.
    func shift(by seconds: Int64) {
        let descriptor = open(file, O_WRONLY)
        defer { close(descriptor) }
        let count = withUnsafeBytes(of: seconds) { write(descriptor, $0.baseAddress, $0.count) }
        precondition(count == 8, "the shift is written whole")
    }
}
