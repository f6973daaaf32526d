import Configuration
import Contract
import Crypto
import HTTPClient
import HTTPTestKit
import Ingest
import Kafka
import KafkaTestKit
import Platform
import RDKafkaTestKit
import Service
import Settings
import Simulation
import Synchronization
import Telemetry
import TestTraits
import Testing

/// All parts of ingest on the mock cluster, started in order and stopped in reverse. Stop it before the test ends.
final class IngestRig {
    let cluster: MockCluster
    let folder: ScratchDirectory
    let health = Health()
    let metrics = Metrics()
    let lines = Door.Lines()
    let service: IngestService
    private let isTLS: Bool

    init(
        _ arguments: [String] = ["--ingest.plaintext", "true"], folder: ScratchDirectory? = nil,
        judge: (any NotificationJudge)? = nil
    ) throws {
        cluster = try MockCluster()
        self.folder = try folder ?? ScratchDirectory("ingest-tests")
        for environment in Contract.Environment.allCases {
            let names = Names(prefix: TopicPrefix("appstore")!, environment: environment)
            for topic: TopicID in [.notifications, .signed, .rejected, .usage] {
                try cluster.createTopic(names.topic(topic), partitions: 4)
            }
        }
        let apps = try self.folder.write(
            #"[{"bundleId":"com.example.app","appAppleId":1234,"entitlements":{"premium":["pro"]}}]"#, to: "apps.json")
        let roots = try self.folder.write(String(decoding: Apple.authority.rootPEM, as: UTF8.self), to: "root.pem")
        let configuration = try Configuration.load(
            .ingest,
            arguments: ParsedArguments(
                [
                    "--kafka.bootstrap.servers", cluster.bootstrapServers, "--apps", apps, "--verify.roots", roots,
                    "--ingest.listen", "127.0.0.1:0", "--partitions", "4",
                ] + arguments, options: []), environment: [], judge: { _ in [] })
        isTLS = !configuration.ingest.isPlaintext
        let lines = lines
        service = IngestService(
            configuration, judge: try judge ?? VerifierPool(.init(configuration), revocation: nil),
            kafka: ClientProperties(bootstrapServers: cluster.bootstrapServers), app: "perennial/test", health: health,
            metrics: metrics, logger: Logger { lines.append($0) })
        for part in service.parts { try part.start { _ in } }
    }

    /// - Returns: whether every part ended cleanly.
    @discardableResult
    func stop() -> Bool {
        var isClean = true
        for part in service.parts.reversed() {
            do { try part.stop(by: Deadline(after: soon)) } catch { isClean = false }
        }
        cluster.close()
        return isClean
    }

    func waitUntilReady() async throws {
        try await waitUntil("ingest is ready", within: soon) { self.health.readiness.isHealthy }
    }

    func notification(_ uuid: String = "u-1") -> HTTPClient.Request {
        let port = service.address?.port ?? 0
        return .init(
            "POST", (isTLS ? "https://localhost" : "http://127.0.0.1") + ":\(port)/notifications",
            headers: [.init("Content-Type", "application/json")],
            body: Apple.body(uuid: uuid, signedDate: WallClock.milliseconds()))
    }

    func metric(_ line: String) -> Double? {
        String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n")
            .first { $0.hasPrefix(line + " ") }.flatMap { Double($0.dropFirst(line.count + 1)) }
    }
}

@Suite(.serialized, .ownThreads) struct `Ingest` {
    @Test func `verifies, publishes and answers 200`() async throws {
        let rig = try IngestRig()
        defer { rig.stop() }
        try await rig.waitUntilReady()
        let client = try HTTPClient()
        defer { client.close() }
        #expect(try client.answer(to: rig.notification()).status == 200)
        #expect(
            rig.metric(
                #"perennial_ingest_requests_total{outcome="accepted",environment="production",bundle="com.example.app"}"#
            ) == 1)
    }

    @Test func `answers 503 in its time when Kafka is slow, and 200 again afterwards`() async throws {
        let rig = try IngestRig(["--ingest.plaintext", "true", "--ingest.timeout.ms", "200"])
        defer { rig.stop() }
        try await rig.waitUntilReady()
        let client = try HTTPClient()
        defer { client.close() }
        rig.cluster.fail(.produce, with: Array(repeating: .transport, count: 1000))
        let answer = try client.answer(to: rig.notification())
        #expect(answer.status == 503 && answer.text == #"{"error":"timed_out"}"#)
        rig.cluster.heal(.produce)
        try await waitUntil("Kafka is fast again", within: soon) {
            try client.answer(to: rig.notification()).status == 200
        }
    }

    @Test func `answers what it holds when it stops`() async throws {
        let rig = try IngestRig(["--ingest.plaintext", "true", "--ingest.timeout.ms", "20000"])
        try await rig.waitUntilReady()
        let client = try HTTPClient()
        defer { client.close() }
        rig.cluster.fail(.produce, with: Array(repeating: .transport, count: 1000))
        let status = Atomic(0)
        client.send(rig.notification()) { result in
            status.store((try? result.get().status) ?? -1, ordering: .releasing)
        }
        try await waitUntil("the request is held", within: soon) {
            rig.metric("perennial_ingest_publications_waiting") == 1
        }
        let front = try #require(rig.service.parts.last)
        let stopping = WorkerThread.start("stops") { try front.stop(by: Deadline(after: soon)) }
        // Only after no new requests are accepted.
        let late = try HTTPClient()
        defer { late.close() }
        // A request that is refused at once: a notification that still got in would be held like the first.
        let knock = HTTPClient.Request("GET", rig.notification().url)
        try await waitUntil("the door is closed", within: soon) { (try? late.answer(to: knock)) == nil }
        rig.cluster.heal(.produce)
        try await stopping.join()
        try await waitUntil("the answer has come", within: soon) { status.load(ordering: .acquiring) != 0 }
        #expect(status.load(ordering: .acquiring) == 200)
        for part in rig.service.parts.dropLast().reversed() { try part.stop(by: Deadline(after: soon)) }
        rig.cluster.close()
    }
}

@Suite(.serialized, .ownThreads) struct `The certificate of ingest` {
    private static let first = try! make(1)
    private static let second = try! make(2)

    private static let expired = try! make(3, validUntil: -60_000)

    /// A self-signed certificate for localhost.
    ///
    /// - Parameter end: milliseconds from now.
    private static func make(
        _ seed: UInt8, validUntil end: Int64 = 86_400_000
    ) throws -> (certificate: String, key: String) {
        let key = SigningKey(.p256, seed: Array(repeating: seed, count: 32))
        let now = WallClock.milliseconds()
        var request = CertificateRequest(
            commonName: "localhost", serial: [seed], validity: now - 3_600_000...now + end,
            extensions: [
                .basicConstraints(isAuthority: true, pathLength: nil),
                .subjectAlternativeNames(dns: ["localhost"], addresses: ["127.0.0.1"]),
            ])
        request.organization = "Test"
        let certificate = try Certificate.make(request, key: key)
        return (pem(certificate.der), String(decoding: key.pem, as: UTF8.self))
    }

    private static func pem(_ der: [UInt8]) -> String {
        "-----BEGIN CERTIFICATE-----\n\(String(decoding: Base64.encodeStandard(der.span), as: UTF8.self))\n"
            + "-----END CERTIFICATE-----\n"
    }

    private func withTLS(
        _ shown: (certificate: String, key: String) = first,
        _ body: (_ rig: IngestRig, _ write: (_ certificate: String, _ key: String) throws -> Void) async throws -> Void
    ) async throws {
        let folder = try ScratchDirectory("ingest-tls")
        let write: (String, String) throws -> Void = { certificate, key in
            _ = try folder.write(certificate, to: "tls.pem")
            _ = try folder.write(key, to: "tls.key")
        }
        try write(shown.certificate, shown.key)
        let rig = try IngestRig(
            ["--ingest.tls.certificate", folder.path + "/tls.pem", "--ingest.tls.key", folder.path + "/tls.key"],
            folder: folder)
        defer { rig.stop() }
        if shown.key == Self.first.key { try await rig.waitUntilReady() }
        try await body(rig, write)
    }

    /// Trusts only this certificate.
    private func client(_ certificate: String) throws -> HTTPClient {
        var options = HTTPClient.Configuration()
        options.extraAuthorities = Array(certificate.utf8)
        return try HTTPClient(options)
    }

    /// Which of the two certificates a new connection gets; nil: it gets neither.
    private func shown(_ request: HTTPClient.Request) throws -> Int? {
        try [Self.first, Self.second].firstIndex { pair in
            let client = try client(pair.certificate)
            defer { client.close() }
            return (try? client.answer(to: request).status) == 200
        }
    }

    @Test func `is replaced while connections are opened, and no request fails`() async throws {
        try await withTLS { rig, write in
            let sent = Atomic(0)
            let failed = Atomic(0)
            let isOver = Atomic(false)
            let request = rig.notification()
            var trustsBoth = HTTPClient.Configuration()
            trustsBoth.extraAuthorities = Array((Self.first.certificate + Self.second.certificate).utf8)
            let options = trustsBoth
            let load = (0..<4).map { index in
                WorkerThread.start("load-\(index)") {
                    while !isOver.load(ordering: .relaxed) {
                        // A client of its own, so that each request needs a handshake.
                        let client = try HTTPClient(options)
                        if (try? client.answer(to: request).status) != 200 { failed.add(1, ordering: .relaxed) }
                        client.close()
                        sent.add(1, ordering: .relaxed)
                    }
                }
            }
            #expect(try shown(request) == 0)
            for turn in 1...10 {
                let before = sent.load(ordering: .relaxed)
                try await waitUntil("there is load", within: soon) { sent.load(ordering: .relaxed) > before + 8 }
                let next = turn % 2 == 1 ? Self.second : Self.first
                try write(next.certificate, next.key)
                try rig.service.reload()
                #expect(try shown(request) == turn % 2)
            }
            isOver.store(true, ordering: .relaxed)
            for thread in load { try await thread.join() }
            #expect(failed.load(ordering: .relaxed) == 0)
        }
    }

    @Test func `is read again when its files change`() async throws {
        try await withTLS { rig, write in
            let second = Self.second
            try write(second.certificate, second.key)
            let client = try client(second.certificate)
            defer { client.close() }
            try await waitUntil("the new certificate is shown", within: soon) {
                (try? client.answer(to: rig.notification()).status) == 200
            }
            try await waitUntil("the log tells", within: soon) {
                rig.lines.all.contains("new connections see the new certificate")
            }
        }
    }

    @Test func `stays when the new files cannot be used, and health with it`() async throws {
        try await withTLS { rig, write in
            let (first, second) = (Self.first, Self.second)
            try write(second.certificate, first.key)
            #expect(throws: (any Error).self) { try rig.service.reload() }
            #expect(rig.metric("perennial_ingest_certificate_current") == 0)
            #expect(rig.health.readiness.isHealthy)
            let client = try client(first.certificate)
            defer { client.close() }
            #expect(try client.answer(to: rig.notification()).status == 200)
            try write(second.certificate, second.key)
            try await waitUntil("the files are right", within: soon) {
                rig.metric("perennial_ingest_certificate_current") == 1
            }
        }
    }

    private static func expiry(_ rig: IngestRig) -> Double? {
        rig.metric("perennial_ingest_certificate_expiry_timestamp_seconds")
    }

    @Test func `that has expired is shown, and told loudly until another one is there`() async throws {
        try await withTLS(Self.expired) { rig, write in
            let words = "the TLS certificate CN=localhost,O=Test expired at "
            try await waitUntil("health tells", within: soon) {
                rig.health.readiness.reasons.map(\.condition) == ["certificate"]
            }
            #expect(rig.health.readiness.reasons.first?.reason.hasPrefix(words) == true)
            try await waitUntil("the log tells", within: soon) {
                rig.lines.all.contains(words) && rig.lines.all.contains(#""level":"error""#)
            }
            let now = Double(WallClock.milliseconds() / 1000)
            let ended = try #require(Self.expiry(rig))
            #expect(now - 600 < ended && ended < now)
            try write(Self.second.certificate, Self.second.key)
            try await waitUntil("the new one is shown", within: soon) { rig.health.readiness.isHealthy }
            #expect(try #require(Self.expiry(rig)) > now)
        }
    }

    @Test func `stays when the new one has expired`() async throws {
        try await withTLS { rig, write in
            let first = Self.first
            let before = Self.expiry(rig)
            try write(Self.expired.certificate, Self.expired.key)
            #expect(throws: (any Error).self) { try rig.service.reload() }
            #expect(rig.metric("perennial_ingest_certificate_current") == 0 && Self.expiry(rig) == before)
            #expect(rig.health.readiness.isHealthy)
            let client = try client(first.certificate)
            defer { client.close() }
            #expect(try client.answer(to: rig.notification()).status == 200)
        }
    }
}
