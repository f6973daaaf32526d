// What the workers of the rows read: renewals of made-up subscriptions.

import Log

/// Records of `notifications` of about 2.2 KB, as ingest writes them. All are of one length, and differ in what a consumer
/// looks at: whose, what and when.
struct Notifications {
    static let idDigits = 16
    /// Of the first record.
    static let firstDate: Int64 = 1_771_000_000_000
    static let headers = EncodedHeaders([
        RecordHeader("id", "6a1d2a57-5c64-4b1f-9c1c-0e4a3b8d7f21"), RecordHeader("type", "notification"),
        RecordHeader("schema", "notification/1"), RecordHeader("app", "perennial/1.0.0"),
    ])

    private(set) var key: [UInt8]
    private(set) var value: [UInt8]
    private(set) var timestamp: Int64 = 0
    private let idPlaces: [Int]
    private let datePlaces: [Int]
    private let productPlaces: [Int]

    init() {
        let text = Array(Self.template.utf8)
        key = Array("0000000000000000".utf8)
        value = text
        idPlaces = Self.places(of: "IIIIIIIIIIIIIIII", in: text)
        datePlaces = Self.places(of: "DDDDDDDDDDDDD", in: text)
        productPlaces = Self.places(of: "PPPP", in: text)
    }

    /// The n-th record, about one of `subscriptions`. Later ones are later renewals, one second apart.
    mutating func make(_ n: Int, of subscription: Int) {
        timestamp = Self.firstDate + Int64(n)
        Self.write(2_000_000_000_000_000 + subscription, digits: Self.idDigits, at: 0, in: &key)
        for place in idPlaces {
            Self.write(2_000_000_000_000_000 + subscription, digits: Self.idDigits, at: place, in: &value)
        }
        for place in datePlaces { Self.write(Int(Self.firstDate) + n * 1000, digits: 13, at: place, in: &value) }
        for place in productPlaces { Self.write(1000 + n % 4, digits: 4, at: place, in: &value) }
    }

    /// The partition of the record's key.
    func partition(of count: Int32) -> Int32 { Partitioner.partition(of: key.span, count: count) }

    static func write(_ number: Int, digits: Int, at place: Int, in bytes: inout [UInt8]) {
        var rest = number
        for index in stride(from: place + digits - 1, through: place, by: -1) {
            bytes[index] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
        }
    }

    private static func places(of mark: String, in text: [UInt8]) -> [Int] {
        let mark = Array(mark.utf8)
        return text.indices.filter { text[$0...].starts(with: mark) && ($0 == 0 || text[$0 - 1] != mark[0]) }
    }

    private static let template =
        #"{"v":1,"notificationUUID":"6a1d2a57-5c64-4b1f-9c1c-0e4a3b8d7f21","notificationType":"DID_RENEW","subtype":null,"#
        + #""signedDate":DDDDDDDDDDDDD,"receivedDate":DDDDDDDDDDDDD,"source":"push","environment":"Production","#
        + #""bundleId":"com.example.subscriptions","appAppleId":1234567890,"bundleVersion":"7.4.1","status":1,"#
        + #""consumptionRequestReason":null,"transaction":{"transactionId":"IIIIIIIIIIIIIIII","#
        + #""originalTransactionId":"IIIIIIIIIIIIIIII","webOrderLineItemId":"IIIIIIIIIIIIIIII","#
        + #""bundleId":"com.example.subscriptions","productId":"pro.yearly.PPPP","#
        + #""subscriptionGroupIdentifier":"21430000","purchaseDate":DDDDDDDDDDDDD,"#
        + #""originalPurchaseDate":DDDDDDDDDDDDD,"expiresDate":DDDDDDDDDDDDD,"quantity":1,"#
        + #""type":"Auto-Renewable Subscription","appAccountToken":"c0ffee00-5c64-4b1f-9c1c-0e4a3b8d7f21","#
        + #""inAppOwnershipType":"PURCHASED","signedDate":DDDDDDDDDDDDD,"environment":"Production","#
        + #""transactionReason":"RENEWAL","storefront":"USA","storefrontId":"143441","price":9990,"currency":"USD","#
        + #""appTransactionId":"IIIIIIIIIIIIIIII","offerType":1,"offerDiscountType":"PAY_AS_YOU_GO","offerPeriod":"P1M","#
        + #""advancedCommerceInfo":{"requestReferenceId":"ab12ab12-5c64-4b1f-9c1c-0e4a3b8d7f21","taxCode":"C003-00-2","#
        + #""period":"P1M","estimatedTax":790,"taxRate":"0.0825","taxExclusivePrice":9200,"#
        + #""descriptors":{"displayName":"Everything, every month","description":"All of the content, in all of the apps"},"#
        + #""items":[{"SKU":"pro.monthly.base","displayName":"Base","description":"The base plan","price":7990},"#
        + #"{"SKU":"pro.monthly.more","displayName":"More","description":"More of the plan","price":2000}]}},"#
        + #""renewalInfo":{"originalTransactionId":"IIIIIIIIIIIIIIII","autoRenewProductId":"pro.yearly.PPPP","#
        + #""productId":"pro.yearly.PPPP","autoRenewStatus":1,"renewalPrice":9990,"currency":"USD","#
        + #""signedDate":DDDDDDDDDDDDD,"environment":"Production","recentSubscriptionStartDate":DDDDDDDDDDDDD,"#
        + #""renewalDate":DDDDDDDDDDDDD,"appAccountToken":"c0ffee00-5c64-4b1f-9c1c-0e4a3b8d7f21","#
        + #""appTransactionId":"IIIIIIIIIIIIIIII","eligibleWinBackOfferIds":["winback.one","winback.two"]},"#
        + #""evidence":{"sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","#
        + #""leaf":"5f3a8c0de1b24a77"}}"#
}

/// Records of the example's changelog: what a worker that has seen each subscription once has written.
struct Changelog {
    private(set) var key: [UInt8]
    private(set) var value: [UInt8]
    private static let dateDigits = 13

    /// - Parameter valueBytes: at least what the example writes; more is filled up, for rows about bytes.
    init(valueBytes: Int = 0) {
        // An entry: the key's space, then the key.
        key = [1] + Array("0000000000000000".utf8)
        // The format of the state, one timer (its kind, when it is due), the state.
        let entry: [UInt8] = [1, 1, 0] + [UInt8](repeating: 0, count: 8)
        // Leading zeros: the example reads the number all the same.
        let zeros = max(Self.dateDigits, valueBytes - entry.count)
        value = entry + [UInt8](repeating: UInt8(ascii: "0"), count: zeros)
    }

    mutating func make(_ subscription: Int) {
        Notifications.write(2_000_000_000_000_000 + subscription, digits: Notifications.idDigits, at: 1, in: &key)
        // As many moments as subscriptions, all long after the last renewal.
        var due = UInt64(Notifications.firstDate + 400 * 86_400_000 + Int64(subscription * 7919 % 1_000_000_007))
        for place in 3..<11 {
            value[place] = UInt8(truncatingIfNeeded: due)
            due >>= 8
        }
        // Before every renewal that is to come.
        Notifications.write(
            Int(Notifications.firstDate) - 1, digits: Self.dateDigits, at: value.count - Self.dateDigits,
            in: &value)
    }

    func partition(of count: Int32) -> Int32 {
        Partitioner.partition(of: key.span.extracting(droppingFirst: 1), count: count)
    }
}
