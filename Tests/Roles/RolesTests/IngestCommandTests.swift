import Contract
import Crypto
import HTTPClient
import HTTPTestKit
import JSON
import Kafka
import KafkaTestKit
import Platform
import RDKafkaTestKit
import Simulation
import Testing

@testable import Tools

/// The program as its users run it, against librdkafka's mock cluster in this process.
@Suite(.serialized) struct `perennial ingest` {
    private static let apps = #"[{"bundleId":"com.example.app","appAppleId":1234,"entitlements":{"premium":["pro"]}}]"#

    @Test(
        arguments: [
            (["--ingest.plaintext", "true"], "apps is not set"), (["--apps", "APPS"], "ingest has no certificate"),
            (
                ["--apps", "APPS", "--ingest.tls.key", "APPS"],
                "ingest.tls.key is set and ingest.tls.certificate is not"
            ),
            (["--apps", "APPS", "--ingest.plaintext", "true"], "kafka.bootstrap.servers is not set"),
            (
                [
                    "--apps", "APPS", "--ingest.tls.key", "APPS", "--ingest.tls.certificate", "APPS",
                    "--ingest.plaintext", "true",
                ], "remove one of the two"
            ),
        ])
    func `ends with 2 and says why when settings do not go together`(_ arguments: [String], _ words: String)
        async throws
    {
        let folder = try ScratchDirectory("ingest-command")
        let apps = try folder.write(Self.apps, to: "apps.json")
        let result = try await perennial(["ingest"] + arguments.map { $0 == "APPS" ? apps : $0 })
        #expect(result.code == 2)
        #expect(result.standardError.contains(words), "\(result.standardError)")
    }

    /// `check` refuses it, too, before it reports anything good about the settings.
    @Test(arguments: ["ingest", "check"])
    func `ends with 2 when the files that settings name do not hold what they should`(_ command: String) async throws {
        let folder = try ScratchDirectory("ingest-command")
        let apps = try folder.write(Self.apps, to: "apps.json")
        let (key, other) = (SigningKey(.p256), SigningKey(.p256))
        let now = WallClock.milliseconds()
        let request = CertificateRequest(
            commonName: "localhost", serial: [1], validity: now - 3_600_000...now + 86_400_000,
            extensions: [.basicConstraints(isAuthority: false, pathLength: nil)])
        let der = try Certificate.make(request, key: key).der
        let certificate = try folder.write(
            "-----BEGIN CERTIFICATE-----\n\(String(decoding: Base64.encodeStandard(der.span), as: UTF8.self))\n"
                + "-----END CERTIFICATE-----\n", to: "certificate.pem")
        let ownKey = try folder.write(String(decoding: key.pem, as: UTF8.self), to: "own.key")
        let otherKey = try folder.write(String(decoding: other.pem, as: UTF8.self), to: "other.key")
        func outcome(_ certificate: String, _ key: String, _ more: [String] = []) async throws -> ProgramResult {
            let listen =
                command == "ingest" ? ["--ingest.listen", "127.0.0.1:0", "--admin.listen", "127.0.0.1:0"] : []
            return try await perennial(
                [command, "--apps", apps, "--ingest.tls.certificate", certificate, "--ingest.tls.key", key]
                    + ["--kafka.bootstrap.servers", "127.0.0.1:1"] + listen + more)
        }
        for (result, words) in [
            (try await outcome(apps, apps), "the certificate is not PEM"),
            (try await outcome(certificate, otherKey), "the key does not belong to the certificate"),
            (try await outcome(certificate, certificate), "the key is not unencrypted PEM"),
            (try await outcome(certificate, ownKey, ["--verify.roots", certificate]), "is not a CA certificate"),
        ] {
            #expect(result.code == 2, "\(result.words)")
            #expect(result.standardError.contains(words), "\(result.standardError)")
            #expect(result.standardOutput.isEmpty, "\(result.standardOutput)")
            // Every log line is JSON, also those of a service that does not start, because a collector parses each line.
            guard command == "ingest" else { continue }
            for line in result.standardError.split(separator: "\n") {
                #expect(try JSONValue.read(Array(line.utf8))["level"]?.string != nil, "\(line)")
            }
        }
        guard command == "check" else { return }
        // With the right ones it connects to Kafka, where nothing listens.
        let right = try await outcome(certificate, ownKey)
        let beginning = "ok       settings\nwarning  ingest.tls.certificate  the TLS certificate CN=localhost,"
        #expect(right.code == 1 && right.standardOutput.hasPrefix(beginning), "\(right.words)")
    }

    @Test func `takes a notification, survives SIGHUP, and ends with 0 at SIGTERM`() async throws {
        let cluster = try MockCluster()
        defer { cluster.close() }
        for environment in Contract.Environment.allCases {
            let names = Names(prefix: TopicPrefix("appstore")!, environment: environment)
            for topic: TopicID in [.notifications, .signed, .rejected] {
                try cluster.createTopic(names.topic(topic), partitions: 12)
            }
        }
        let folder = try ScratchDirectory("ingest-command")
        let authority = try SimulatedAuthority(seed: 7)
        let child = try ChildProcess(
            try productPath("perennial"),
            [
                "ingest", "--apps", try folder.write(Self.apps, to: "apps.json"), "--ingest.plaintext", "true",
                "--verify.roots", try folder.write(String(decoding: authority.rootPEM, as: UTF8.self), to: "root.pem"),
                "--kafka.bootstrap.servers", cluster.bootstrapServers, "--admin.listen", "127.0.0.1:0",
                "--ingest.listen", "127.0.0.1:0",
            ], environment: .only([:]), workingDirectory: "/", mergesErrors: true)
        try await child.waitUntilPrinted("ingest listens")
        let status = try readFile("/proc/\(child.processID)/status")
        #expect(String(decoding: status, as: UTF8.self).contains("\nUmask:\t0077\n"))
        let limits = String(decoding: try readFile("/proc/\(child.processID)/limits"), as: UTF8.self)
        let core = limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") }
        #expect(core?.split(separator: " ").dropFirst(4).first == "0", "\(core ?? "no such line")")
        let port = try #require(Self.port(in: child.standardOutput))
        let client = try HTTPClient()
        defer { client.close() }
        try await waitUntil("the notification is acknowledged") {
            try await blocking { try client.answer(to: Self.notification(authority, port)).status == 200 }
        }
        // Another file of apps, without any signal: notifications that were accepted before are quarantined now.
        _ = try folder.write(Self.apps.replacing("com.example.app", with: "com.example.other"), to: "apps.json")
        try await waitUntil("the new apps count") {
            try await blocking {
                try client.answer(to: Self.notification(authority, port)).body
                    == Array(#"{"rejected":"wrong_app"}"#.utf8)
            }
        }
        try await child.waitUntilPrinted("usage.token were read again")
        let isOld = LibraryVersion.libmicrohttpd.warningBehindProxy != nil
        #expect(child.standardOutput.contains("the proxy in front of it") == isOld, "\(child.standardOutput)")
        // An unusable file is reported, and changes nothing.
        _ = try folder.write("nonsense", to: "apps.json")
        try await child.waitUntilPrinted("changed files of settings cannot be used")
        #expect(
            try await blocking {
                try client.answer(to: Self.notification(authority, port)).body
                    == Array(#"{"rejected":"wrong_app"}"#.utf8)
            })
        _ = try folder.write(Self.apps, to: "apps.json")
        child.kill(1)
        try await child.waitUntilPrinted("reloaded")
        let ending = try await child.terminate()
        #expect(ending == .exited(code: 0), "\(child.lastLines(20))")
        // Neither ids nor payloads may be in the log.
        #expect(!child.standardOutput.contains("notification-uuid"))
    }

    private static func port(in log: String) -> Int? {
        let line = log.split(separator: "\n").first { $0.contains("ingest listens") }
        return line?.firstMatch(of: #/127\.0\.0\.1:(\d+)/#).flatMap { Int($0.1) }
    }

    private static func notification(_ authority: SimulatedAuthority, _ port: Int) -> HTTPClient.Request {
        let payload = """
            {"notificationType":"TEST","notificationUUID":"notification-uuid","version":"2.0",\
            "signedDate":\(WallClock.milliseconds()),\
            "data":{"appAppleId":1234,"bundleId":"com.example.app","environment":"Sandbox"}}
            """
        return .init(
            "POST", "http://127.0.0.1:\(port)/notifications", headers: [.init("Content-Type", "application/json")],
            body: Array(#"{"signedPayload":""#.utf8) + authority.sign(Array(payload.utf8)) + Array(#""}"#.utf8))
    }
}
