import Contract
import HTTPClient
import Kafka
import KafkaTestKit
import Platform
import Simulation
import Testing

/// The program as its users run it, against librdkafka's mock cluster in this process.
@Suite(.serialized) struct `perennial ingest` {
    private static let apps = #"[{"bundleId":"com.example.app","appAppleId":1234,"entitlements":{"premium":["pro"]}}]"#
    private static let soon: Duration = .seconds(30)

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
                ], "take one of the two out"
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

    @Test func `ends with 3 when its certificate is none`() async throws {
        let folder = try ScratchDirectory("ingest-command")
        let apps = try folder.write(Self.apps, to: "apps.json")
        let result = try await perennial([
            "ingest", "--apps", apps, "--ingest.tls.key", apps, "--ingest.tls.certificate", apps,
            "--kafka.bootstrap.servers", "127.0.0.1:1", "--admin.listen", "127.0.0.1:0", "--ingest.listen",
            "127.0.0.1:0",
        ])
        #expect(result.code == 3)
        #expect(result.standardError.contains("the certificate is not PEM"), "\(result.standardError)")
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
        try await child.waitUntilPrinted("ingest listens", within: Self.soon)
        let port = try #require(Self.port(in: child.standardOutput))
        let client = try HTTPClient()
        defer { client.close() }
        try await waitUntil("the notification is acknowledged", within: Self.soon) {
            try await blocking { try client.answer(to: Self.notification(authority, port)).status == 200 }
        }
        child.kill(1)
        try await child.waitUntilPrinted("reloaded", within: Self.soon)
        let ending = try await child.terminate(within: Self.soon)
        #expect(ending == .exited(code: 0), "\(child.lastLines(20))")
        // Neither ids nor payloads are anybody's business.
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
