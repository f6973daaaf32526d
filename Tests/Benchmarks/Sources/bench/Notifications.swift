// What the workers of the rows read: notifications about made-up subscriptions, each of which has been renewed eleven times.

import Contract
import Entitlements
import EntitlementsWorker
import JSON
import Log

private let period: Int64 = 30 * 86_400_000

/// The apps of the rows.
let benchApps = [
    App(
        bundleId: "com.example.subscriptions", appAppleId: 1_234_567_890,
        entitlements: [.init(name: "premium", productIds: ["pro.monthly.one", "pro.monthly.two"])], periods: [])
]
let benchRules = EntitlementRules(apps: benchApps, leeway: 3_600_000, environment: .production)

/// Records of `notifications` of about 2.2 KB, as ingest writes them. All are of one length, and differ in what a consumer
/// looks at: whose, what and when.
struct Notifications {
    enum Subject: Sendable {
        /// The thirteenth period begins, in the last moments of the twelfth.
        case renewal
        /// Another product is wanted from the next period on, and with the next notification the old one again: it can come
        /// again and again, and is news each time.
        case change
    }

    static let idDigits = 16
    /// When the twelfth period ends, where nothing else is said.
    static let usualEnd: Int64 = 1_771_000_000_000
    static let headers = EncodedHeaders([
        RecordHeader("id", "6a1d2a57-5c64-4b1f-9c1c-0e4a3b8d7f21"), RecordHeader("type", "notification"),
        RecordHeader("schema", "notification/1"), RecordHeader("app", "perennial/1.0.0"),
    ])
    static let key = Array("2000000000000000".utf8)
    /// The last digits are the subscription's number.
    static let token = "c0ffee00-5c64-4b1f-9c1c-0e4a00000000"
    private static let tokenDigits = 8

    private(set) var key = Self.key
    private(set) var value: [UInt8]
    private(set) var timestamp: Int64 = 0
    private let subject: Subject
    private let firstDate: Int64
    private let ownerPlaces: [Int]
    private let tokenPlaces: [Int]
    private let signedPlaces: [Int]
    private let wantedPlaces: [Int]

    /// - Parameter end: of the twelfth period.
    init(_ subject: Subject = .renewal, end: Int64 = Self.usualEnd) {
        self.subject = subject
        switch subject {
        case .renewal:
            firstDate = end
            value = Self.template(row: 12, start: end)
        case .change:
            firstDate = end - period / 2
            value = Self.template(row: 11, start: end - period)
        }
        ownerPlaces = Self.places(of: "2000000000000000", in: value)
        tokenPlaces = Self.places(of: Self.token, in: value)
        signedPlaces = Self.places(of: "DDDDDDDDDDDDD", in: value)
        wantedPlaces = Self.places(of: "WWW", in: value)
        Self.write("one", at: wantedPlaces, in: &value)
    }

    /// The n-th record, about one of the subscriptions.
    mutating func make(_ n: Int, of subscription: Int) {
        timestamp = firstDate + Int64(n)
        Self.write(2_000_000_000_000_000 + subscription, digits: Self.idDigits, at: 0, in: &key)
        for place in ownerPlaces {
            Self.write(2_000_000_000_000_000 + subscription, digits: Self.idDigits, at: place, in: &value)
        }
        for place in tokenPlaces { Self.writeToken(of: subscription, at: place, in: &value) }
        for place in signedPlaces { Self.write(Int(timestamp), digits: 13, at: place, in: &value) }
        if subject == .change { Self.write(n.isMultiple(of: 2) ? "one" : "two", at: wantedPlaces, in: &value) }
    }

    /// The partition of the record's key.
    func partition(of count: Int32) -> Int32 { Partitioner.partition(of: key.span, count: count) }

    /// What a worker keeps of a subscription whose twelfth period ends then.
    static func state(end: Int64) -> [UInt8] {
        var json = JSONDocument()
        var facts = Facts()
        for row in 0..<12 {
            let start = end + Int64(row - 12) * period
            var text = template(row: row, start: start)
            for place in places(of: "DDDDDDDDDDDDD", in: text) { write(Int(start), digits: 13, at: place, in: &text) }
            write("one", at: places(of: "WWW", in: text), in: &text)
            guard (try? json.read(text.span)) != nil else { preconditionFailure("the template is no JSON") }
            facts.merge(NotificationReading(json).facts)
        }
        return EntitlementsProcessor.state(of: facts, benchRules, sequence: 12, asOf: end - period)
    }

    /// The digits of the account's token that are the subscription's number.
    static func writeToken(of subscription: Int, at place: Int, in bytes: inout [UInt8]) {
        write(subscription, digits: tokenDigits, at: place + token.utf8.count - tokenDigits, in: &bytes)
    }

    private static func write(_ text: String, at places: [Int], in bytes: inout [UInt8]) {
        for place in places { bytes.replaceSubrange(place..<place + text.utf8.count, with: text.utf8) }
    }

    /// One notification of subscription 0: of the row with this number.
    private static func template(row: Int, start: Int64) -> [UInt8] {
        Array(
            template.replacing("RR", with: "\(10 + row)").replacing("PPPPPPPPPPPPP", with: "\(start)")
                .replacing("EEEEEEEEEEEEE", with: "\(start + period)").utf8)
    }

    static func write(_ number: Int, digits: Int, at place: Int, in bytes: inout [UInt8]) {
        var rest = number
        for index in stride(from: place + digits - 1, through: place, by: -1) {
            bytes[index] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
        }
    }

    static func places(of mark: String, in text: [UInt8]) -> [Int] {
        let mark = Array(mark.utf8)
        return text.indices.filter { text[$0...].starts(with: mark) && ($0 == 0 || text[$0 - 1] != mark[0]) }
    }

    private static let template =
        #"{"v":1,"notificationUUID":"6a1d2a57-5c64-4b1f-9c1c-0e4a3b8d7f21","notificationType":"DID_RENEW","subtype":null,"#
        + #""signedDate":DDDDDDDDDDDDD,"receivedDate":DDDDDDDDDDDDD,"source":"push","environment":"Production","#
        + #""bundleId":"com.example.subscriptions","appAppleId":1234567890,"bundleVersion":"7.4.1","status":1,"#
        + #""consumptionRequestReason":null,"transaction":{"transactionId":"30000000000000RR","#
        + #""originalTransactionId":"2000000000000000","webOrderLineItemId":"2000000000000000","#
        + #""bundleId":"com.example.subscriptions","productId":"pro.monthly.one","#
        + #""subscriptionGroupIdentifier":"21430000","purchaseDate":PPPPPPPPPPPPP,"#
        + #""originalPurchaseDate":1739896000000,"expiresDate":EEEEEEEEEEEEE,"quantity":1,"#
        + #""type":"Auto-Renewable Subscription","appAccountToken":"\#(token)","#
        + #""inAppOwnershipType":"PURCHASED","signedDate":DDDDDDDDDDDDD,"environment":"Production","#
        + #""transactionReason":"RENEWAL","storefront":"USA","storefrontId":"143441","price":9990,"currency":"USD","#
        + #""appTransactionId":"2000000000000000","#
        + #""advancedCommerceInfo":{"requestReferenceId":"ab12ab12-5c64-4b1f-9c1c-0e4a3b8d7f21","taxCode":"C003-00-2","#
        + #""period":"P1M","estimatedTax":790,"taxRate":"0.0825","taxExclusivePrice":9200,"#
        + #""descriptors":{"displayName":"Everything, every month","description":"All of the content, in all of the apps"},"#
        + #""items":[{"SKU":"pro.monthly.base","displayName":"Base","description":"The base plan","price":7990},"#
        + #"{"SKU":"pro.monthly.more","displayName":"More","description":"More of the plan","price":2000}]}},"#
        + #""renewalInfo":{"originalTransactionId":"2000000000000000","autoRenewProductId":"pro.monthly.WWW","#
        + #""productId":"pro.monthly.one","autoRenewStatus":1,"renewalPrice":9990,"currency":"USD","#
        + #""signedDate":DDDDDDDDDDDDD,"environment":"Production","recentSubscriptionStartDate":1739896000000,"#
        + #""renewalDate":EEEEEEEEEEEEE,"appAccountToken":"\#(token)","#
        + #""appTransactionId":"2000000000000000","eligibleWinBackOfferIds":["winback.one","winback.two"]},"#
        + #""evidence":{"sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","#
        + #""leaf":"5f3a8c0de1b24a77"}}"#
}

/// Records of the worker's changelog: what one that knows each subscription has written.
struct Changelog {
    private(set) var key: [UInt8]
    private(set) var value: [UInt8]
    private let tokenPlaces: [Int]

    init(end: Int64 = Notifications.usualEnd) {
        // An entry: the key's space, then the key.
        key = [1] + Notifications.key
        // The format of the state, one timer (its kind, when it is due), the state. The answer changes when leeway has ended.
        let due = withUnsafeBytes(of: (end + 3_600_000).littleEndian) { Array($0) }
        value = [1, 1, 0] + due + Notifications.state(end: end)
        tokenPlaces = Notifications.places(of: Notifications.token, in: value)
    }

    mutating func make(_ subscription: Int) {
        Notifications.write(2_000_000_000_000_000 + subscription, digits: Notifications.idDigits, at: 1, in: &key)
        for place in tokenPlaces { Notifications.writeToken(of: subscription, at: place, in: &value) }
    }

    func partition(of count: Int32) -> Int32 {
        Partitioner.partition(of: key.span.extracting(droppingFirst: 1), count: count)
    }
}
