// A real ingest: the built program with a Kafka, and with TLS unless it is started without.

import Crypto
import Glibc
import HTTPClient
import HTTPTestKit
public import KafkaTestKit
import Platform

/// `perennial ingest` on a free loopback port, ready, with its topics created. It ends with this object.
public final class IngestProcess: Sendable {
    public let url: String
    /// The base URL of its admin server.
    public let adminURL: String
    /// For clients: the root of the server's certificate; nil: ingest speaks plain HTTP.
    public let authorityFile: String?
    public let process: ChildProcess
    private let scratch: ScratchDirectory

    /// Enough for a cold start, topics and the first connections to a busy broker.
    private static let startLimit: Duration = patience * 2

    /// - Parameters:
    ///   - program: the path of `perennial`.
    ///   - roots: PEM of the root that signs the notifications.
    ///   - prefix: the prefix of the topics, which are created with one replica if they are missing.
    ///   - wrapper: a program that runs `perennial`, such as `["taskset", "-c", "0"]`.
    ///   - settings: for example `["--archive.signed.payloads", "false"]`
    public static func start(
        _ program: String, bootstrap: String, prefix: String, roots: [UInt8], apps: String, isPlaintext: Bool = false,
        wrapper: [String] = [], settings: [String] = []
    ) async throws -> IngestProcess {
        let scratch = try ScratchDirectory("perennial-ingest")
        let common = ["--topic.prefix", prefix, "--kafka.bootstrap.servers", bootstrap]
        let replicas = ["--topics.replication.factor", "1", "--topics.min.insync.replicas", "1"]
        // A busy broker may not have created all topics in time; running the command again is safe.
        let arguments = ["topics", "apply"] + common + replicas
        try await waitUntil("perennial topics apply makes every topic of \(prefix)", within: startLimit) {
            try await run(program, arguments, environment: .only([:]), workingDirectory: scratch.path).code == 0
        }
        let files =
            [
                "--apps", try scratch.write(apps, to: "apps.json"),
                "--verify.roots", try scratch.write(String(decoding: roots, as: UTF8.self), to: "roots.pem"),
            ] + (isPlaintext ? ["--ingest.plaintext", "true"] : try identityFiles(in: scratch))
        let listen = ["--ingest.listen", "127.0.0.1:0", "--admin.listen", "127.0.0.1:0", "--log.format", "text"]
        let command = wrapper + [program, "ingest"]
        let process = try ChildProcess(
            command[0], command.dropFirst() + common + files + listen + settings,
            environment: .only([:]),
            workingDirectory: scratch.path, mergesErrors: true)
        let admin = try await address(after: "admin server listens", of: process)
        let address = try await address(after: "ingest listens", of: process)
        try await waitUntil("ingest is ready\n\(process.lastLines(20))", within: startLimit) {
            guard process.isRunning else { throw IngestTestFault("ingest ended: \(process.lastLines(20))") }
            return try await onOwnThread("probe") { isReady(admin) }
        }
        return IngestProcess(
            url: "\(isPlaintext ? "http" : "https")://\(address)/notifications", adminURL: "http://\(admin)",
            authorityFile: isPlaintext ? nil : "\(scratch.path)/server.pem", process: process, scratch: scratch)
    }

    private static func identityFiles(in scratch: ScratchDirectory) throws -> [String] {
        let identity = try ServerIdentity()
        return [
            "--ingest.tls.certificate", try scratch.write(identity.certificate, to: "server.pem"),
            "--ingest.tls.key", try scratch.write(identity.key, to: "server.key"),
        ]
    }

    private init(
        url: String, adminURL: String, authorityFile: String?, process: ChildProcess, scratch: ScratchDirectory
    ) {
        self.url = url
        self.adminURL = adminURL
        self.authorityFile = authorityFile
        self.process = process
        self.scratch = scratch
    }

    /// The program prints where it listens, because the system chooses the port.
    private static func address(after words: String, of process: ChildProcess) async throws -> String {
        try await process.waitUntilPrinted(words, within: startLimit)
        var found: String?
        // The line may be incomplete.
        try await waitUntil("the address after \"\(words)\"") {
            let line = process.standardOutput.split(separator: "\n").first { $0.contains(words) }
            found = line?.split(separator: "address=").dropFirst().first.map {
                String($0.prefix { !" \n".contains($0) })
            }
            return found?.contains(":") == true
        }
        return found ?? ""
    }

    private static func isReady(_ admin: String) -> Bool {
        guard let client = try? HTTPClient() else { return false }
        defer { client.close() }
        return (try? client.answer(to: HTTPClient.Request("GET", "http://\(admin)/readyz")))?.status == 200
    }

    /// Posts until all are answered with 200. A broker that has just started answers, but it may not give the producer
    /// its id within the time that a request waits.
    public func warmUp(_ bodies: Bodies, count: Int = 256, from source: String? = nil) async throws {
        var load = Load(url, authorityFile: authorityFile, bodies: bodies, .requests(count))
        load.source = source
        try await waitUntil("every post is answered with 200", within: Self.startLimit) {
            try await onOwnThread("load") { [load] in try load.run() }.isAllAccepted
        }
    }

    // MARK: What it costs

    /// User and system time of all its threads so far.
    public func cpuSeconds() throws -> Double {
        guard let seconds = process.cpuSeconds() else {
            throw IngestTestFault("/proc/\(process.processID)/stat is not as expected")
        }
        return seconds
    }

    public func peakMemoryBytes() throws -> Int { try process.peakMemoryBytes() }

    /// The current resident memory.
    public func memoryBytes() throws -> Int {
        guard let bytes = process.memoryBytes() else {
            throw IngestTestFault("/proc/\(process.processID)/statm is not as expected")
        }
        return bytes
    }
}

/// A self-signed server certificate for loopback, with ECDSA P-256, which most servers use today.
struct ServerIdentity {
    let certificate: String
    let key: String

    init() throws {
        let signingKey = SigningKey(.p256)
        let now = WallClock.milliseconds()
        let day: Int64 = 86_400_000
        let request = CertificateRequest(
            commonName: "localhost", serial: [1], validity: (now - day)...(now + 30 * day),
            extensions: [
                .basicConstraints(isAuthority: true, pathLength: nil),
                .subjectAlternativeNames(dns: ["localhost"], addresses: ["127.0.0.1"]),
            ])
        certificate = String(decoding: try Certificate.make(request, key: signingKey).pem, as: UTF8.self)
        key = String(decoding: signingKey.pem, as: UTF8.self)
    }
}
