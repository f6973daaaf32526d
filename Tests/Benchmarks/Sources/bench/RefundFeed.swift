// The input of the worker of refund requests: requests, and usage from the app's backend for the purchases.

import Contract
import Log
import Platform

/// One request per subscription, and a row of usage with which it can be decided at once.
struct RefundFeed: Sendable {
    /// The app of every request.
    let bundleId: String
    /// Assigned to requests in turn.
    let transactionIds: [String]
    /// So recent that no deadline passes while a row is measured.
    let asked: Int64

    init(bundleId: String, transactionIds: [String], asked: Int64 = WallClock.milliseconds()) {
        self.bundleId = bundleId
        self.transactionIds = transactionIds
        self.asked = asked
    }

    var apps: [App] { [App(bundleId: bundleId, appAppleId: 1_234_567_890, entitlements: [], periods: [])] }

    /// In the order of the log: a worker that reads the first soon reads the other, too.
    enum Topic: Int, CaseIterable {
        case usage, notifications
    }

    private static let headers: [Topic: EncodedHeaders] = [
        .usage: EncodedHeaders([
            RecordHeader("id", "6a1d2a57-5c64-4b1f-9c1c-0e4a3b8d7f21"), RecordHeader("schema", "usage/1"),
            RecordHeader("app", "perennial/1.0.0"),
        ]),
        .notifications: EncodedHeaders([
            RecordHeader("id", "6a1d2a57-5c64-4b1f-9c1c-0e4a3b8d7f21"), RecordHeader("schema", "notification/1"),
            RecordHeader("app", "perennial/1.0.0"),
        ]),
    ]

    func add(_ n: Int, _ topic: Topic, to outputs: OutputBatch) {
        let id = "\(2_000_000_000_000_000 + n)"
        let key = Array(id.utf8)
        outputs.begin(
            topic: topic.rawValue, partition: Partitioner.partition(of: key, count: workerPartitions), timestamp: asked)
        outputs.headers(Self.headers[topic]!)
        let value = topic == .usage ? usage(id) : request(n, id)
        outputs.end(key: key.span, value: Array(value.utf8).span)
    }

    private func usage(_ id: String) -> String {
        #"{"v":1,"originalTransactionId":"\#(id)","consented":true,"consentedAt":\#(asked - 1000),"#
            + #""deliveryStatus":"DELIVERED","sampleContentProvided":false,"userStatus":1,"platform":1}"#
    }

    private func request(_ n: Int, _ id: String) -> String {
        let token = Notifications.token
        return #"{"v":1,"notificationUUID":"6a1d2a57-5c64-4b1f-9c1c-\#(100_000_000_000 + n)","#
            + #""notificationType":"CONSUMPTION_REQUEST","subtype":null,"signedDate":\#(asked),"receivedDate":\#(asked),"#
            + #""source":"push","environment":"Production","bundleId":"\#(bundleId)","appAppleId":1234567890,"#
            + #""bundleVersion":"7.4.1","status":1,"consumptionRequestReason":"UNINTENDED_PURCHASE","#
            + #""transaction":{"transactionId":"\#(transactionIds[n % transactionIds.count])","#
            + #""originalTransactionId":"\#(id)","webOrderLineItemId":"\#(id)","bundleId":"\#(bundleId)","#
            + #""productId":"pro.monthly.one","subscriptionGroupIdentifier":"21430000","#
            + #""purchaseDate":\#(asked - 172_800_000),"originalPurchaseDate":1739896000000,"#
            + #""expiresDate":\#(asked + 2_419_200_000),"quantity":1,"type":"Auto-Renewable Subscription","#
            + #""appAccountToken":"\#(token)","inAppOwnershipType":"PURCHASED","signedDate":\#(asked),"#
            + #""environment":"Production","transactionReason":"RENEWAL","storefront":"USA","storefrontId":"143441","#
            + #""price":9990,"currency":"USD","appTransactionId":"\#(id)"},"#
            + #""renewalInfo":{"originalTransactionId":"\#(id)","autoRenewProductId":"pro.monthly.one","#
            + #""productId":"pro.monthly.one","autoRenewStatus":1,"renewalPrice":9990,"currency":"USD","#
            + #""signedDate":\#(asked),"environment":"Production","recentSubscriptionStartDate":1739896000000,"#
            + #""renewalDate":\#(asked + 2_419_200_000),"appAccountToken":"\#(token)","appTransactionId":"\#(id)"},"#
            + #""evidence":{"sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","#
            + #""leaf":"5f3a8c0de1b24a77"}}"#
    }

    /// Writes into the worker's topics of any log.
    func fill(_ log: any RecordLog, _ names: Names, requests: Int) throws {
        let topics: [String] = [names.topic(.usage), names.topic(.notifications)]
        let writer = try log.openWriter(WriterOptions(name: "bench", topics: topics))
        defer { writer.close(by: Deadline(after: .seconds(5))) }
        let outputs = OutputBatch()
        for topic in Topic.allCases {
            for n in 0..<requests {
                add(n, topic, to: outputs)
                guard outputs.count == 10_000 || n == requests - 1 else { continue }
                _ = try writer.append(outputs, by: Deadline(after: .seconds(60)))
                outputs.removeAll()
            }
        }
    }
}
