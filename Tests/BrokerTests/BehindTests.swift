import JSON
import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    /// One api for production and for sandbox, with a worker for each.
    @Suite(.serialized) struct `The read API and its workers` {
        private static let apps =
            #"[{"bundleId":"com.example.app","appAppleId":1,"entitlements":{"premium":["pro.monthly"]}}]"#
        private static let partitions: Int32 = 3
        private static let limit = 8_000

        private let installation: Installation
        private let scratch: ScratchDirectory
        private let apps: [String]

        init() async throws {
            installation = try await Installation.make(
                "behind", try await Broker.shared(), partitions: Int(Self.partitions))
            scratch = try ScratchDirectory("behind")
            apps = ["--apps", try scratch.write(Self.apps, to: "apps.json")]
        }

        private func worker(_ environment: String) async throws -> ServiceProcess {
            let worker = try ServiceProcess(
                [
                    "entitlements", "--environment", environment, "--state.directory", "\(scratch.path)/state",
                    "--worker.slot", "0",
                ] + apps + installation.settings)
            try await worker.waitUntilReady()
            return worker
        }

        /// Writes as ingest does. Kafka has the record when this returns.
        /// - Returns: its timestamp.
        private func take(_ id: String, _ environment: String = "production") async throws -> Int64 {
            let now = WallClock.milliseconds()
            let end = now + 29 * 86_400_000
            let topic = installation.topic("notifications", environment)
            let properties = installation.broker.properties
            let name = environment == "production" ? "Production" : "Sandbox"
            let value = """
                {"v":1,"notificationUUID":"n-\(id)","notificationType":"SUBSCRIBED","subtype":"INITIAL_BUY",\
                "signedDate":\(now),"receivedDate":\(now),"source":"push","environment":"\(name)",\
                "transaction":{"transactionId":"t-\(id)","purchaseDate":\(now),"expiresDate":\(end),\
                "bundleId":"com.example.app","productId":"pro.monthly","type":"Auto-Renewable Subscription",\
                "inAppOwnershipType":"PURCHASED","price":9990,"currency":"USD","signedDate":\(now)},\
                "renewalInfo":{"autoRenewStatus":1,"renewalDate":\(end),"signedDate":\(now)}}
                """
            try await blocking {
                let producer = try Producer(.init(clientID: "test", properties: properties)) { _ in }
                let output = try producer.topic(topic)
                let key = Array(id.utf8)
                try producer.send(
                    to: output, partition: Partitioner.partition(of: key, count: Self.partitions), key: key.span,
                    value: Array(value.utf8).span,
                    headers: [RecordHeader("schema", "notification/1")],
                    timestamp: now)
                try producer.flush(by: Deadline(after: patience))
                producer.close(by: Deadline(after: patience))
            }
            return now
        }

        private func partition(of id: String) -> Int32 {
            Partitioner.partition(of: Array(id.utf8), count: Self.partitions)
        }

        /// Until the answers about all of these ids, which no worker processes, are 503. An answer before that says
        /// that there is no subscription, and that nothing is known yet of the time at which it was bought.
        private func takeUntilRefused(_ ids: [String], by api: APIProcess) async throws {
            var taken: [(id: String, at: Int64)] = []
            for id in ids { taken.append((id, try await take(id))) }
            try await waitUntil("beyond the limit", within: patience) {
                var refused = 0
                for (id, at) in taken {
                    let asked = WallClock.milliseconds()
                    let (status, body) = try await api.answer(to: "/v1/subscriptions/\(id)")
                    let place = body["position"]?.array?.first
                    let behind = try #require(place?["behind"]?.integer, "\(status) of \(id)")
                    #expect(status == 404 || status == 503 && body["error"]?.string == "behind")
                    #expect(asked - behind <= at, "\(status) of \(id) claims to know of it")
                    if status == 503 { refused += 1 }
                }
                return refused == taken.count
            }
        }

        @Test func `tells a worker that has stopped from a customer who has bought nothing`() async throws {
            var production = try await worker("production")
            let sandbox = try await worker("sandbox")
            let api = try APIProcess(
                installation, try ScratchDirectory("behind-api"), ["--api.max.behind.ms", "\(Self.limit)"])
            try await api.service.waitUntilReady()
            _ = try await take("1")
            _ = try await take("2", "sandbox")
            for (id, environment) in [("1", "Production"), ("2", "Sandbox")] {
                try await waitUntil("\(id) is answered", within: patience) {
                    let (status, body) = try await api.answer(to: "/v1/subscriptions/\(id)")
                    return status == 200 && body["subscription"]?["environment"]?.string == environment
                        && body["access"]?.bool == true
                }
            }
            #expect(try await api.answer(to: "/v1/subscriptions/2?environment=production").status == 404)

            try await production.stop()
            let ids = (0..<20).map { "new-\($0)" }
            // Requests about one partition are refused, and the process stays ready for those about the others.
            let first = ids.filter { partition(of: $0) == partition(of: ids[0]) }
            let rest = ids.filter { !first.contains($0) }
            try await takeUntilRefused(first, by: api)
            for id in rest { #expect(try await api.answer(to: "/v1/subscriptions/\(id)").status == 404) }
            try await api.service.waitUntilReady()
            #expect(Set(rest.map(partition(of:))).count == Int(Self.partitions) - 1)
            try await takeUntilRefused(rest, by: api)
            let reasons = try await api.service.reasons()
            #expect(reasons.contains("behind the notifications of production: is it running?"), "\(reasons)")
            let series = #"perennial_api_source_behind_seconds{environment="production",worker="entitlements"}"#
            #expect((try await api.service.metric(series) ?? 0) * 1000 > Double(Self.limit))
            // The other environment has its own worker.
            #expect(try await api.answer(to: "/v1/subscriptions/2?environment=sandbox").status == 200)

            production = try await worker("production")
            try await waitUntil("every request is answered", within: patience) {
                for id in ids where try await api.answer(to: "/v1/subscriptions/\(id)").status != 200 { return false }
                return true
            }
            try await api.service.waitUntilReady()
            for (service, client) in [
                (production, "\(installation.prefix).production.entitlements.0-0"), (api.service, "perennial-api"),
            ] {
                try await waitUntil("\(client) reports its brokers", within: patience) {
                    try await service.metric(#"perennial_kafka_brokers_connected{client="\#(client)"}"#) ?? 0 >= 1
                }
                #expect(try await service.metric("process_resident_memory_bytes") ?? 0 > 1_000_000)
            }
            for service in [production, sandbox, api.service] { try await service.stop() }
        }
    }
}
