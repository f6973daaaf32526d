import Contract
import Crypto
import Glibc
import HTTPClient
import HTTPTestKit
import Kafka
import KafkaTestKit
import Platform
import RDKafkaTestKit
import Simulation
import Testing

/// What a running ingest reads again when a file changes.
@Suite(.serialized) struct `The files of a running ingest` {
    private static func apps(_ bundle: String) -> String {
        #"[{"bundleId":"\#(bundle)","appAppleId":1234,"entitlements":{"premium":["pro"]}}]"#
    }

    @Test func `admit nobody to usage once usage.token is removed`() async throws {
        let scene = try await Scene(["usage.token": "sixteen-letters-1"])
        defer { scene.close() }
        let client = try HTTPClient()
        defer { client.close() }
        // With a body of another type, so that nothing is written: who is admitted gets 415.
        func status(_ token: String) async throws -> Int {
            let request = HTTPClient.Request(
                "POST", "http://127.0.0.1:\(scene.port)/usage",
                headers: [.init("Authorization", "Bearer \(token)"), .init("Content-Type", "text/plain")])
            return try await blocking { try client.answer(to: request) }.status
        }
        #expect(try await status("sixteen-letters-1") == 415)
        #expect(try await status("sixteen-letters-2") == 401)
        try scene.set([:])
        try await waitUntil("the token is no longer accepted") { try await status("sixteen-letters-1") == 401 }
        #expect(try await status("") == 401)
        try scene.set(["usage.token": "sixteen-letters-2"])
        try await waitUntil("another token is accepted") { try await status("sixteen-letters-2") == 415 }
        #expect(try await status("sixteen-letters-1") == 401)
        try await scene.end()
    }

    @Test func `count where the TLS certificate cannot be used, and the certificate where they cannot`() async throws {
        let scene = try await Scene([:], isTLS: true)
        defer { scene.close() }
        _ = try scene.folder.write("nonsense", to: "certificate.pem")
        _ = try scene.folder.write(Self.apps("com.example.other"), to: "apps.json")
        scene.child.kill(SIGHUP)
        try await waitUntil("one of the two is refused") { scene.log.contains("\"level\":\"error\"") }
        // The apps have been read all the same: notifications of the first one are set aside.
        try await waitUntil("the new app is known") {
            let client = try HTTPClient()
            defer { client.close() }
            return try await scene.metrics(client).contains("bundle=\"com.example.other\"")
        }
        _ = try scene.folder.write("nonsense", to: "apps.json")
        let expiry = WallClock.milliseconds() + 90 * 86_400_000
        try scene.writeCertificate(until: expiry)
        scene.child.kill(SIGHUP)
        try await waitUntil("the new certificate is in use") {
            let client = try HTTPClient()
            defer { client.close() }
            let metrics = try await scene.metrics(client)
            let gauge = "perennial_ingest_certificate_expiry_timestamp_seconds{environment=\"both\"}"
            return metrics.contains("\n\(gauge) \(expiry / 1000)\n")
        }
        try await scene.end()
    }

    /// An ingest with a settings file of its own.
    private struct Scene {
        let folder: ScratchDirectory
        let child: ChildProcess
        private let cluster: MockCluster
        private let fixed: [String: String]

        init(_ settings: [String: String], isTLS: Bool = false) async throws {
            cluster = try MockCluster()
            for environment in Contract.Environment.allCases {
                let names = Names(prefix: TopicPrefix("appstore")!, environment: environment)
                for topic: TopicID in [.notifications, .signed, .rejected, .usage] {
                    try cluster.createTopic(names.topic(topic), partitions: 12)
                }
            }
            folder = try ScratchDirectory("ingest-reload")
            var fixed = [
                "apps": try folder.write(apps("com.example.app"), to: "apps.json"),
                "kafka.bootstrap.servers": cluster.bootstrapServers, "admin.listen": "127.0.0.1:0",
                "ingest.listen": "127.0.0.1:0",
            ]
            if isTLS {
                fixed["ingest.tls.certificate"] = "\(folder.path)/certificate.pem"
                fixed["ingest.tls.key"] = "\(folder.path)/key.pem"
                try Self.writeCertificate(until: WallClock.milliseconds() + 86_400_000, in: folder)
            } else {
                fixed["ingest.plaintext"] = "true"
            }
            self.fixed = fixed
            let file = try Self.write(fixed.merging(settings) { $1 }, in: folder)
            child = try ChildProcess(
                try productPath("perennial"), ["ingest", "--config", file], environment: .only([:]),
                workingDirectory: "/", mergesErrors: true)
            try await child.waitUntilPrinted("ingest listens")
        }

        var log: String { child.standardOutput }

        var port: Substring { port(of: "ingest listens") }

        private func port(of words: String) -> Substring {
            let line = log.split(separator: "\n").first { $0.contains(words) }
            return line?.firstMatch(of: #/127\.0\.0\.1:(\d+)/#)?.1 ?? "0"
        }

        func set(_ settings: [String: String]) throws { _ = try Self.write(fixed.merging(settings) { $1 }, in: folder) }

        func writeCertificate(until expiry: Int64) throws { try Self.writeCertificate(until: expiry, in: folder) }

        func metrics(_ client: HTTPClient) async throws -> String {
            let url = "http://127.0.0.1:\(port(of: "admin server listens"))/metrics"
            return String(decoding: try await blocking { try client.answer(to: .init("GET", url)) }.body, as: UTF8.self)
        }

        func end() async throws {
            let ending = try await child.terminate()
            #expect(ending == .exited(code: 0), "\(child.lastLines(20))")
        }

        func close() { cluster.close() }

        private static func write(_ settings: [String: String], in folder: ScratchDirectory) throws -> String {
            let lines = settings.map { "\($0.key) = \($0.value)\n" }.sorted()
            return try folder.write(lines.joined(), to: "perennial.conf")
        }

        private static func writeCertificate(until expiry: Int64, in folder: ScratchDirectory) throws {
            let key = SigningKey(.p256)
            let request = CertificateRequest(
                commonName: "localhost", serial: [1], validity: WallClock.milliseconds() - 3_600_000...expiry,
                extensions: [.basicConstraints(isAuthority: false, pathLength: nil)])
            let der = try Certificate.make(request, key: key).der
            _ = try folder.write(String(decoding: key.pem, as: UTF8.self), to: "key.pem")
            _ = try folder.write(
                "-----BEGIN CERTIFICATE-----\n\(String(decoding: Base64.encodeStandard(der.span), as: UTF8.self))\n"
                    + "-----END CERTIFICATE-----\n", to: "certificate.pem")
        }
    }
}
