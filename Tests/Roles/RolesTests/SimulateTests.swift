import AppStore
import Configuration
import Contract
import Crypto
import Foundation
import HTTP
import JSON
import KafkaTestKit
import Platform
import Settings
import Simulation
import Synchronization
import Telemetry
import Testing

@testable import CommandLine
@testable import Roles
@testable import Simulator

/// Answers as the contract requires, using the verifier itself. It keeps nothing but its answers.
private final class JudgingEndpoint: HTTPHandler {
    private let verifier: Mutex<Verifier>
    private let said = Mutex<[String: [Int]]>([:])

    init(_ verifier: sending Verifier) { self.verifier = Mutex(verifier) }

    /// Statuses by the hexadecimal SHA-256 of the signed payload.
    var answers: [String: [Int]] { said.withLock { $0 } }

    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? { nil }

    func handle(_ request: HTTPRequest, _ responder: Responder) {
        var digest = ""
        var response = HTTPResponse.text(200, "")
        do throws(Rejection) {
            let payload = try NotificationBody.signedPayload(of: request.body)
            digest = hexadecimal(SHA256.digest(payload.span))
            try verifier.withLock { verifier throws(Rejection) in
                _ = try verifier.notification(payload, now: WallClock.milliseconds())
            }
        } catch {
            let status = [.wrongApp, .wrongEnvironment, .inconsistent, .inFuture].contains(error.reason) ? 200 : 400
            response = .json(
                error.reason == .tooLarge ? 413 : status, Array(#"{"error":"\#(error.reason.rawValue)"}"#.utf8))
        }
        said.withLock { $0[digest, default: []].append(response.status) }
        responder.respond(response)
    }
}

private func simulate(_ arguments: [String]) async throws -> (code: ExitCode, messages: [String]) {
    try await blocking {
        let recorder = Recorder()
        let code = Program.standard.run(["simulate"] + arguments, environment: [], output: recorder.output)
        return (code, recorder.messages)
    }
}

private func lines(_ path: String) throws -> [JSONValue] {
    try readFile(path, limitBytes: 64 << 20).split(separator: UInt8(ascii: "\n")).map { try JSONValue.read(Array($0)) }
}

/// Short enough to print if two files differ.
private func fingerprint(_ path: String) throws -> String {
    let bytes = try readFile(path)
    return hexadecimal(SHA256.digest(bytes.span))
}

/// Dates in the past, whenever the test runs.
private let story = ["--from=2025-01-01", "--days=500"]

@Suite struct `perennial simulate` {
    private let folder: ScratchDirectory
    private func path(_ name: String) -> String { "\(folder.path)/\(name)" }

    init() throws { folder = try ScratchDirectory("perennial-simulate") }

    @Test func `gives the same bytes for the same seed in another process, and others for another`() async throws {
        func made(_ name: String, seed: Int) async throws -> [String] {
            let out = path(name)
            let outcome = try await perennial(
                ["simulate", "--out=\(out)", "--truth=\(out).truth", "--root=\(out).pem", "--seed=\(seed)"]
                    + ["--subscribers=10", "--forgeries=20", "--duplicates=20", "--delays=20", "--reorder=20"] + story)
            try #require(outcome.code == 0, "\(outcome.words)")
            let names = try FileManager.default.contentsOfDirectory(atPath: out).sorted()
            #expect(names.count > 40)
            return try (names.map { "\(out)/\($0)" } + ["\(out).truth", "\(out).pem"]).map(fingerprint)
        }
        let (first, again, other) = try await (made("a", seed: 5), made("b", seed: 5), made("c", seed: 6))
        #expect(first == again)
        #expect(first.count != other.count || zip(first, other).allSatisfy { $0 != $1 })
    }

    @Test func `writes payloads that perennial verify judges as the index says`() async throws {
        let outcome = try await simulate(
            ["--out=\(path("out"))", "--root=\(path("root.pem"))", "--apps=\(path("apps.json"))"]
                + ["--environment=both", "--subscribers=12", "--forgeries=50"] + story)
        #expect(outcome.code == .done)
        let index = try lines(path("out/index.jsonl"))
        #expect(outcome.messages == ["\(index.count) payloads in \(path("out"))"])
        #expect(Set(index.compactMap { $0["expected"]?.string }).count > 5)
        for entry in index {
            let expected = entry["expected"]?.string ?? ""
            let recorder = Recorder()
            let code = Program.standard.run(
                ["verify", "--verify.roots=\(path("root.pem"))", "--apps=\(path("apps.json"))"]
                    + [path("out/\(entry["file"]?.string ?? "")")], environment: [], output: recorder.output)
            #expect(code == (expected == "accepted" ? .done : .no), "\(entry)")
            if expected == "accepted" {
                let uuid = try JSONValue.read(Array(recorder.data.utf8))["notificationUUID"]?.string
                #expect(uuid == entry["notificationUUID"]?.string)
            } else {
                #expect(recorder.data == expected, "\(entry)")
            }
        }
    }

    @Test func `posts over TLS, tries again, and knows whether every answer was right`() async throws {
        let name = ["--seed=3", "--subscribers=15"] + story
        _ = try await simulate(["--root=\(path("root.pem"))", "--truth=\(path("truth"))"] + name)
        let roots = try Certificate.read(readFile(path("root.pem")))
        let identity = try serverIdentity()

        try identity.certificate.write(to: URL(fileURLWithPath: path("ca.pem")))
        let endpoint = JudgingEndpoint(Verifier(VerificationPolicy(anchors: TrustAnchors(roots), apps: apps)))
        var configuration = HTTPServer.Configuration(name: "test", address: ListenAddress("127.0.0.1:0")!)
        configuration.identity = HTTPServer.Identity(certificate: Array(identity.certificate), key: Array(identity.key))
        configuration.maxBodyBytes = 512 << 10
        let server = try HTTPServer(configuration, handler: endpoint, metrics: Metrics(), logger: Logger { _ in })
        defer { server.stop(by: Deadline(after: .seconds(5))) }
        let url = "https://\(server.address)/notifications"

        let outcome = try await simulate(
            ["--url=\(url)", "--ca=\(path("ca.pem"))", "--acknowledged=\(path("acknowledged"))"]
                + ["--duplicates=20", "--forgeries=40"] + name)
        #expect(outcome.code == .done, "\(outcome.messages)")
        let acknowledged = try lines(path("acknowledged"))
        #expect(outcome.messages.first?.hasPrefix("\(acknowledged.count) posts, ") == true)
        // The file agrees with what the other side did.
        let said = Dictionary(grouping: acknowledged) { $0["sha256"]?.string ?? "" }.mapValues { entries in
            entries.compactMap { $0["status"]?.integer.map(Int.init) }.sorted()
        }
        #expect(
            said.filter { !$0.value.contains(413) }
                == endpoint.answers.mapValues { $0.sorted() }.filter { !$0.value.contains(413) })
        #expect(Set(acknowledged.compactMap { $0["verdict"]?.string }) == ["accepted", "refused"])

        // The same store in front of an endpoint that does not know its root.
        let strict = JudgingEndpoint(Verifier(VerificationPolicy(anchors: TrustAnchors([]), apps: nil)))
        let other = try HTTPServer(
            HTTPServer.Configuration(name: "other", address: ListenAddress("127.0.0.1:0")!), handler: strict,
            metrics: Metrics(), logger: Logger { _ in })
        defer { other.stop(by: Deadline(after: .seconds(5))) }
        let refused = try await simulate(
            ["--url=http://\(other.address)/", "--subscribers=1", "--seed=3", "--retry-scale=1000000000"] + story)
        #expect(refused.code == .no)
        #expect(refused.messages.contains { $0.hasPrefix("given up after the last retry: ") })
        #expect(strict.answers.values.allSatisfy { $0 == Array(repeating: 400, count: 6) })
    }

    /// The defaults of the command, as its users know them.
    private var apps: [App] {
        [("com.example.orbit", 6_400_000_001), ("com.example.tide", 6_400_000_002)].map {
            SimulatedApp(bundleId: $0, appAppleId: $1).contractApp
        }
    }

    private func serverIdentity() throws -> (certificate: Data, key: Data) {
        let key = SigningKey(.p256)
        let now = WallClock.milliseconds()
        let certificate = try Certificate.make(
            CertificateRequest(
                commonName: "localhost", serial: [1], validity: now - 3_600_000...now + 86_400_000,
                extensions: [
                    .basicConstraints(isAuthority: true, pathLength: nil),
                    .subjectAlternativeNames(dns: ["localhost"], addresses: ["127.0.0.1"]),
                ]), key: key)
        let base64 = Data(certificate.der).base64EncodedString(options: [.lineLength64Characters])
        let pem = "-----BEGIN CERTIFICATE-----\n\(base64)\n-----END CERTIFICATE-----\n"
        return (Data(pem.utf8), Data(key.pem))
    }

    @Test func `tells the truth in lines that name what was done, who had access, and how it ended`() async throws {
        _ = try await simulate(["--truth=\(path("truth"))", "--subscribers=30"] + story)
        let truth = try lines(path("truth"))
        #expect(Set(truth.compactMap { $0["kind"]?.string }) == ["did", "access", "final", "refund_request"])
        let told = Set(
            truth.filter { $0["kind"]?.string == "final" }.compactMap { $0["originalTransactionId"]?.string })
        let used = Set(
            truth.filter { $0["kind"]?.string == "access" }.compactMap { $0["originalTransactionId"]?.string })
        #expect(!used.isEmpty && used.isSubset(of: told))
    }

    @Test(arguments: [
        (["--seed=-1", "--out=x"], "--seed must be a whole number from 0 up, not \"-1\""),
        (["--subscribers=0", "--out=x"], "--subscribers must be a whole number from 1 to 1000000, not \"0\""),
        (["--days=4000", "--out=x"], "--days must be a whole number from 1 to 3650, not \"4000\""),
        (["--environment=prod", "--out=x"], "--environment must be production, sandbox or both, not \"prod\""),
        (["--from=2025-02-29", "--out=x"], "--from must be an existing day, such as 2026-01-31, not \"2025-02-29\""),
        (
            ["--from=2013-12-31", "--out=x"],
            "--from and --days must lie in the years 2014 to 2049, in which the store's certificates are valid"
        ),
        (
            ["--from=2049-12-31", "--days=2", "--out=x"],
            "--from and --days must lie in the years 2014 to 2049, in which the store's certificates are valid"
        ),
        (["--speed=0", "--out=x"], "--speed must be a number above 0, such as 60 or 0.5, not \"0\""),
        (["--rate=1e3", "--out=x"], "--rate must be a number above 0, such as 60 or 0.5, not \"1e3\""),
        (
            ["--forgeries=100.1", "--out=x"],
            "--forgeries must be a percentage from 0 to 100 with at most one decimal, such as 2.5, not \"100.1\""
        ),
        (
            ["--delays=0.55", "--out=x"],
            "--delays must be a percentage from 0 to 100 with at most one decimal, such as 2.5, not \"0.55\""
        ),
        (["--out=x", "--url=http://a/"], "--url posts, and --out writes files instead: give only one of them"),
        (["--out=x", "--ca=y"], "--ca needs --url: give --url as well"),
        ([], "nothing to do: give --url to post, --out to write files, or one of --root, --apps, --truth"),
        (["--url=ftp://a/"], "--url must begin with https:// or http://, not \"ftp://a/\""),
        (["--url=http://127.0.0.1:1/", "--ca=/nowhere"], "--ca: cannot read /nowhere: No such file or directory"),
    ])
    func `says what is wrong with an option`(_ arguments: [String], _ words: String) async throws {
        let outcome = try await simulate(arguments)
        #expect(outcome.code == .wrongUsage)
        #expect(outcome.messages.first == "perennial simulate: \(words)")
    }

    @Test(arguments: ["--from=2014-01-01", "--from=2049-12-31"])
    func `tells stories on every day on which its certificates are valid`(_ from: String) async throws {
        let options = [from, "--days=1", "--subscribers=3", "--out=\(path("out"))", "--root=\(path("root.pem"))"]
        #expect(try await simulate(options).code == .done)
    }

    @Test func `gives up when a file cannot be written`() async throws {
        let outcome = try await simulate(["--truth=/nowhere/truth", "--subscribers=1"] + story)
        #expect(outcome.code == .gaveUp)
        #expect(
            outcome.messages == ["perennial simulate: cannot write /nowhere/truth: No such file or directory"])
        let full = try await simulate(["--truth=/dev/full", "--subscribers=1"] + story)
        #expect(full.code == .gaveUp)
        #expect(full.messages == ["perennial simulate: cannot write /dev/full: No space left on device"])
    }

    @Test func `ends with 3 when it is interrupted`() async throws {
        // The endpoint refuses everything, so the simulator waits for its next retry.
        let strict = JudgingEndpoint(Verifier(VerificationPolicy(anchors: TrustAnchors([]), apps: nil)))
        let server = try HTTPServer(
            HTTPServer.Configuration(name: "strict", address: ListenAddress("127.0.0.1:0")!), handler: strict,
            metrics: Metrics(), logger: Logger { _ in })
        defer { server.stop(by: Deadline(after: .seconds(5))) }
        let child = try ChildProcess(
            try productPath("perennial"),
            ["simulate", "--url=http://\(server.address)/", "--retry-scale=0.001", "--subscribers=3"] + story
                + ["--acknowledged=\(path("acknowledged"))"],
            environment: .only([:]), workingDirectory: "/")
        try await waitUntil("it has posted") { !strict.answers.isEmpty }
        child.kill(SIGINT)
        #expect(try await child.wait() == .exited(code: 3))
    }

    @Test func `says at once that nobody takes what it posts`() async throws {
        let outcome = try await simulate(["--url=http://127.0.0.1:1/notifications", "--subscribers=3"] + story)
        #expect(outcome.code == .gaveUp)
        #expect(
            outcome.messages.last?.hasPrefix(
                "perennial simulate: nobody listens at http://127.0.0.1:1/notifications: ") == true)
    }

    @Test func `names every option in its help`() {
        let recorder = Recorder()
        #expect(Program.standard.run(["simulate", "--help"], environment: [], output: recorder.output) == .done)
        for option in SimulateOptions.options { #expect(recorder.data.contains("\n  --\(option.name) ")) }
    }
}

@Suite struct `A day` {
    @Test(arguments: [
        ("1970-01-01", 0), ("1970-12-31", 364), ("1972-02-29", 789), ("1999-12-31", 10956), ("2000-02-29", 11016),
        ("2000-03-01", 11017), ("2026-11-21", 20778), ("2100-03-01", 47541),
    ])
    func `is counted from 1970`(_ text: String, _ days: Int64) {
        #expect(utcDay(text) == days * 86_400_000)
    }

    @Test(arguments: [
        "", "2025-02-29", "2100-02-29", "1969-12-31", "2025-13-01", "2025-00-10", "2025-04-31", "25-01-01", "2025-1-1",
        "+025-01-01",
    ])
    func `that does not exist is none`(_ text: String) {
        #expect(utcDay(text) == nil)
    }
}
