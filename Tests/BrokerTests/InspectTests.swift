import Foundation
import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    /// The worker and the command as users run them.
    @Suite(.serialized) struct `Inspect` {
        private static let id = "2000000000000042"
        private static let token = "7e5d0c1a-0001-4000-8000-000000000042"
        private static let apps =
            #"[{"bundleId":"com.example.app","appAppleId":1,"entitlements":{"premium":["pro.monthly"]}}]"#
        private static let partitions: Int32 = 3
        private static let tickCount =
            getenv("PERENNIAL_TEST_TICKS").flatMap { Int64(String(cString: $0)) } ?? Int64(10_000)

        private let installation: Installation
        private let scratch: ScratchDirectory
        private let settings: [String]

        init() async throws {
            installation = try await Installation.make(
                "inspect", try await Broker.shared(), partitions: Int(Self.partitions))
            scratch = try ScratchDirectory("inspect")
            settings = installation.settings + ["--apps", try scratch.write(Self.apps, to: "apps.json")]
        }

        /// `make whole` names a release build, whose time is promised.
        private static let program = getenv("PERENNIAL_TEST_PROGRAM").map { String(cString: $0) }

        private func inspect(_ arguments: [String]) async throws -> ProgramResult {
            try await run(
                Self.program ?? productPath("perennial"), ["inspect"] + arguments + settings, environment: .only([:]),
                workingDirectory: "/")
        }

        private func json(_ arguments: [String]) async throws -> [String: Any] {
            let shown = try await inspect(arguments + ["--format", "json"])
            #expect(shown.code == 0, "\(shown.words)")
            return try #require(
                try JSONSerialization.jsonObject(with: Data(shown.standardOutput.utf8)) as? [String: Any])
        }

        /// Half of the ticks in the partition of this customer: a million of them cover almost two years.
        private func writeTicks(until last: Int64, every interval: Int64) async throws {
            let count = Self.tickCount / 2
            let (topic, properties) = (installation.topic("notifications"), installation.broker.properties)
            let partition = Partitioner.partition(of: Array(Self.id.utf8), count: Self.partitions)
            try await blocking {
                let producer = try Producer(.init(clientID: "test", properties: properties)) { _ in }
                let output = try producer.topic(topic)
                for left in (0..<count).reversed() {
                    let time = last - left * interval
                    let headers = [
                        RecordHeader("id", "tick-\(partition)-\(time)"), RecordHeader("schema", "tick/1"),
                        RecordHeader("app", "perennial/0.1.0"),
                    ]
                    let value = Array("{\"v\":1,\"tick\":\(time)}".utf8)
                    try producer.send(
                        to: output, partition: partition, key: nil, value: value.span, headers: headers, timestamp: time
                    )
                    // Bounds the number of records that wait in the producer.
                    if left % 10_000 == 0 { try producer.flush(by: Deadline(after: patience)) }
                }
                producer.close(by: Deadline(after: patience))
            }
        }

        /// A paid month that renews, of this customer and of a hundred others.
        private func publish(from start: Int64, to end: Int64) async throws {
            let topic = installation.topic("notifications")
            let properties = installation.broker.properties
            try await blocking {
                let producer = try Producer(.init(clientID: "test", properties: properties)) { _ in }
                let output = try producer.topic(topic)
                for id in (0..<100).map({ "3\($0)" }) + [Self.id] {
                    let value = """
                        {"v":1,"notificationUUID":"n-\(id)","notificationType":"SUBSCRIBED","subtype":"INITIAL_BUY",\
                        "signedDate":\(start),"receivedDate":\(start),"source":"push","environment":"Production",\
                        "transaction":{"transactionId":"t-\(id)","purchaseDate":\(start),"expiresDate":\(end),\
                        "bundleId":"com.example.app","productId":"pro.monthly","type":"Auto-Renewable Subscription",\
                        "inAppOwnershipType":"PURCHASED","appAccountToken":"\(Self.token)\(id == Self.id ? "" : id)",\
                        "price":9990,"currency":"USD","signedDate":\(start)},\
                        "renewalInfo":{"autoRenewStatus":1,"renewalDate":\(end),"signedDate":\(start)}}
                        """
                    let key = Array(id.utf8)
                    try producer.send(
                        to: output, partition: Partitioner.partition(of: key, count: Self.partitions), key: key.span,
                        value: Array(value.utf8).span,
                        headers: [RecordHeader("schema", "notification/1")],
                        timestamp: start)
                }
                try producer.flush(by: Deadline(after: patience))
                producer.close(by: Deadline(after: patience))
            }
        }

        @Test func `shows what the worker has published, and what it has not yet`() async throws {
            let now = WallClock.milliseconds()
            let (start, end) = (now - 86_400_000, now + 29 * 86_400_000)
            let none = try await inspect(["subscription", Self.id])
            #expect(none.code == 1)
            #expect(none.standardError.contains("there is no subscription \(Self.id): searched partition"))
            try await writeTicks(until: start - 2 * 86_400_000, every: 60_000)
            try await publish(from: start, to: end)
            try await writeTicks(until: now, every: 2 * 86_400_000 / Self.tickCount)
            let early = try await json(["subscription", Self.id])
            #expect((early["published"] as? [String: Any])?["agreement"] as? String == "absent")

            let worker = try ServiceProcess(
                ["entitlements", "--state.directory", "\(scratch.path)/state", "--worker.slot", "0"] + settings)
            try await worker.waitUntilReady()
            try await waitUntil("published", within: patience) {
                let shown = try await json(["subscription", Self.id])
                return (shown["published"] as? [String: Any])?["agreement"] as? String == "same"
            }
            let card = try await inspect(["subscription", Self.id])
            #expect(card.code == 0, "\(card.words)")
            #expect(card.standardOutput.contains("subscription  \(Self.id), production\n"))
            #expect(card.standardOutput.contains("state         ACTIVE: may use it until "))
            #expect(card.standardOutput.contains("is for        premium\n"))
            #expect(card.standardOutput.contains("published     the same in entitlements (sequence 1, of "))

            // Also with a million ticks, half of them after the purchase. The machine may be busy with something else once.
            var fastest: Duration = .seconds(60)
            for _ in 0..<3 {
                let begun = ContinuousClock.now
                _ = try await json(["subscription", Self.id])
                fastest = min(fastest, begun.duration(to: .now))
            }
            print("inspect: a subscription is shown within \(fastest.inSeconds)")
            #expect(fastest < .seconds(1))

            let account = try await json(["account", Self.token.uppercased()])
            let owned = try #require(account["subscriptions"] as? [[String: Any]])
            #expect(owned.map { $0["originalTransactionId"] as? String } == [Self.id])
            let premium = (account["entitlements"] as? [String: Any])?["premium"] as? [String: Any]
            #expect(premium?["access"] as? Bool == true)
            #expect(premium?["accessUntil"] as? Int64 == end + 3_600_000)
            let nobody = try await inspect(["account", "7e5d0c1a-0001-4000-8000-000000000099"])
            #expect(nobody.code == 1)
            #expect(nobody.standardError.contains("the account 7e5d0c1a-0001-4000-8000-000000000099 owns nothing"))
            let sandbox = try await inspect(["subscription", Self.id, "--environment", "sandbox"])
            #expect(sandbox.code == 1)
            #expect(sandbox.standardError.contains("If it belongs to production, add --environment production"))
            try await worker.stop()
        }

        @Test func `without its topics says what is missing`() async throws {
            let shown = try await inspect(["subscription", Self.id, "--topic.prefix", "another"])
            #expect(shown.code == 2)
        }
    }
}
