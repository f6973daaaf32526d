import Contract
import Entitlements
import EntitlementsWorker
import JSON
import KafkaTestKit
import Log
import LogTestKit
import MakeBelieve
import MemoryLog
import Telemetry
import Testing
import WorkerTestKit

/// One process that is fed with raw bytes.
private final class Target {
    private static let names = Names(prefix: TopicPrefix("hostile")!, environment: .production)
    /// The largest record that is not a dead letter, key and value together.
    private static let limitBytes = 256 << 10
    static let now: Int64 = 1_780_000_000_000

    private let run: WorkerSimulation

    init() throws {
        let rules = EntitlementRules(apps: [], leeway: StoreLog.hour, environment: .production)
        run = try WorkerSimulation(
            EntitlementsProcessor(
                Self.names, rules: rules, partitions: 2, app: "perennial/test", metrics: EntitlementsMetrics(Metrics())),
            processes: 1, startingAt: Self.now)
        run.cacheBytes = 4 << 20
        run.start(run.processes[0])
    }

    func feed(_ value: [UInt8]?, key: [UInt8]? = Array("2000".utf8)) throws {
        try run.feed(
            partition: 0, key: key, value: value,
            headers: [RecordHeader("schema", "notification/1")],
            timestamp: Self.now)
    }

    func feed(_ members: [(String, String)], key: String = "2000") throws {
        try feed(Array(Absurdity.notification(members).utf8), key: Array(key.utf8))
    }

    func work() throws { try #require(try run.runToEnd(), "\(run.processes[0].troubles)") }

    func values(_ topic: TopicID) throws -> [JSONValue] {
        try run.read(Self.names.topic(topic)).compactMap { try $0.value.map { try JSONValue.read($0) } }
    }

    func letters() throws -> [String] {
        try run.read(Self.names.topic(.deadLetters(.entitlements))).compactMap { $0.header("reason") }
    }

    /// The largest record that is not a dead letter.
    func largest() throws -> Int {
        let topics = [TopicID.entitlements, .entitlementEvents, .accounts, .changelog(.entitlements)]
        return try topics.flatMap { try run.read(Self.names.topic($0)) }
            .map { ($0.key?.count ?? 0) + ($0.value?.count ?? 0) }.max() ?? 0
    }

    func expectNothingTooLarge() throws {
        let largest = try largest()
        #expect(largest <= Self.limitBytes, "a record has \(largest) bytes")
    }
}

@Suite struct `The worker and what nobody should send` {
    @Test func `tells something readable of every absurd value of every member, and of any two together`() throws {
        let target = try Target()
        var count = 0
        for member in Absurdity.members {
            for value in Absurdity.values {
                try target.feed([(member, value)], key: "one-\(count)")
                count += 1
            }
        }
        var dice = SplitMix64(seed: 11)
        for number in 0..<3_000 {
            let members = (0..<Int.random(in: 2...8, using: &dice)).map { _ in
                (Absurdity.members.randomElement(using: &dice)!, Absurdity.values.randomElement(using: &dice)!)
            }
            // There are few keys, so absurd facts pile up, and timers with absurd dates, too.
            try target.feed(members, key: "many-\(number % 40)")
        }
        try target.work()
        #expect(try target.letters() == [])
        try target.expectNothingTooLarge()
        let values = try target.values(.entitlements)
        #expect(values.count > count / 2)
        // Reading a value fails the test if it is not JSON.
        _ = try target.values(.entitlementEvents) + target.values(.accounts)
    }

    @Test func `follows a notification of a type and with members that are not known yet`() throws {
        let target = try Target()
        try target.feed([
            ("notificationType", "\"SUBSCRIPTION_TELEPORTED\""), ("subtype", "\"TWICE\""),
            ("future", "{\"a\":[1,{\"b\":null}]}"), ("transaction.future", "[1,2,3]"),
            ("transaction.inAppOwnershipType", "\"LEASED\""), ("renewalInfo.future", "{}"),
        ])
        try target.work()
        let value = try #require(try target.values(.entitlements).first)
        #expect(value["access"] == .bool(true) && value["ownership"] == .string("LEASED"))
        #expect(value["cause"]?["type"] == .string("SUBSCRIPTION_TELEPORTED"))
        #expect(try target.letters() == [])
    }

    @Test func `puts aside what is no notification, and works on`() throws {
        let target = try Target()
        let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
        let unreadable: [[UInt8]] = [
            [], Array("{".utf8), Array("[]x".utf8), [0xff, 0xfe],
            Array("{\"a\":\"".utf8) + [0xc3, 0x28] + Array("\"}".utf8),
            Array("{\"future\":\(deep)}".utf8), Array(Absurdity.notification([]).utf8.dropLast()), Array("[]".utf8),
            Array("1".utf8), Array("\"x\"".utf8), Array("null".utf8),
        ]
        for bytes in unreadable { try target.feed(bytes) }
        try target.feed(nil as [UInt8]?)
        try target.feed(Array(Absurdity.notification([]).utf8), key: nil)
        try target.feed(Array(Absurdity.notification([]).utf8), key: [0xff, 0x00, 0xfe])
        // These are about no subscription, as many of Apple's notifications are.
        for text in ["{}", "{\"transaction\":7}"] { try target.feed(Array(text.utf8)) }
        try target.feed([(String, String)]())
        try target.work()
        let letters = try target.letters()
        #expect(letters.count { $0 == "json" } == unreadable.count)
        #expect(letters.count { $0 == "no_notification" } == 2)
        #expect(letters.count { $0 == "key" } == 1)
        #expect(letters.count == unreadable.count + 3, "\(letters)")
        #expect(try target.values(.entitlements).count == 1)
    }

    /// Apple signs no such texts. But if it did, they must not stop the other records.
    @Test func `keeps of a subscription what fits, whatever texts it is told with, and works on`() throws {
        let target = try Target()
        for number in 0..<150 {
            let texts =
                ["transaction.transactionId", "transaction.productId", "transaction.offerIdentifier"]
                + ["transaction.subscriptionGroupIdentifier", "transaction.currency", "renewalInfo.autoRenewProductId"]
                + ["renewalInfo.appAccountToken", "transaction.billingPlanType"]
            let start = 1_000_000_000_000 + Int64(number) * StoreLog.day
            let dates = [
                ("transaction.purchaseDate", "\(start)"), ("transaction.expiresDate", "\(start + StoreLog.day)"),
                ("transaction.signedDate", "\(start)"), ("renewalInfo.signedDate", "\(start)"),
                ("renewalInfo.autoRenewStatus", "0"), ("transaction.offerType", "2"),
            ]
            try target.feed(
                dates + texts.map { ($0, "\"\($0)-\(number)-" + String(repeating: "t", count: 980) + "\"") })
        }
        try target.feed([(String, String)](), key: "3000")
        try target.work()
        let letters = try target.letters()
        #expect(letters.isEmpty, "\(letters)")
        try target.expectNothingTooLarge()
        #expect(try target.values(.entitlements).last?["originalTransactionId"] == .string("3000"))
    }

    /// Each record takes time in proportion to the stored state, so the state must have a limit.
    @Test func `takes transactions of one subscription without end in bounded time and space`() throws {
        let target = try Target()
        var slices: [Duration] = []
        // As many as reach the limit, and enough after that to show the cost at the limit.
        for slice in 0..<12 {
            for number in slice * 100..<(slice + 1) * 100 {
                let start = 1_000_000_000_000 + Int64(number) * StoreLog.day
                var members = [
                    ("signedDate", "\(start)"), ("transaction.signedDate", "\(start)"),
                    ("transaction.transactionId", "\"20000000\(number)\""), ("transaction.purchaseDate", "\(start)"),
                    ("transaction.expiresDate", "\(start + StoreLog.hour)"), ("renewalInfo.signedDate", "\(start)"),
                    ("renewalInfo.renewalDate", "\(start + StoreLog.hour)"), ("renewalInfo.autoRenewStatus", "0"),
                    ("transaction.appAccountToken", "\"11111111-1111-4111-8111-111111111111\""),
                ]
                // Only the newest 256 of these are kept, so sending more would only take time.
                if slice < 7 { members.append(("renewalInfo", "null")) }
                try target.feed(members)
            }
            slices.append(try threadTime { try target.work() })
        }
        #expect(try target.letters() == [])
        try target.expectNothingTooLarge()
        #expect(slices[11] < slices[9] * 3, "\(slices)")
        let last = try #require(try target.values(.entitlements).last)
        #expect(last["runsTruncated"] == .bool(true) && last["runs"]?.array?.count == 100)
        print(
            "1,200 transactions of one subscription, by hundreds: \(slices); largest record \(try target.largest()) bytes"
        )
    }
}
