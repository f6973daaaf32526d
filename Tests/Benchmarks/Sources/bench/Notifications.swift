// The input of the measured workers: notifications about generated subscriptions, each of which has been renewed eleven times.

import Contract
import Entitlements
import Log

/// What happens to a subscription.
let period: Int64 = 30 * 86_400_000

/// The apps of the rows.
let benchApps = [
    App(
        bundleId: "com.example.subscriptions", appAppleId: 1_234_567_890,
        entitlements: [.init(name: "premium", productIds: ["pro.monthly.one", "pro.monthly.two"])], periods: [])
]
let benchRules = EntitlementRules(apps: benchApps, leeway: 3_600_000, environment: .production)

/// Records of `notifications` of about 2.2 KB, as ingest writes them. All have one length, and differ in what a consumer looks
/// at: subscription, kind and time.
struct Notifications {
    enum Subject: Sendable, Equatable {
        /// The thirteenth period begins, known on the last day of the twelfth, as with early billing.
        case renewal
        /// Another product is chosen for the next period, and the next notification chooses the old one again: this can repeat
        /// without end, and each one is a change.
        case change
        /// One of the periods begins; period 0 is the purchase. The caller says when.
        case period(Int)
    }

    /// Country and currency of a customer.
    private struct Market {
        let storefront: [UInt8]
        let currency: [UInt8]

        init(_ storefront: String, _ currency: String) {
            self.storefront = Array(storefront.utf8)
            self.currency = Array(currency.utf8)
        }
    }

    static let idDigits = 16
    static let periods = 12
    /// When the twelfth period ends, unless another end is given.
    static let usualEnd: Int64 = 1_771_000_000_000
    static let headers = EncodedHeaders([
        RecordHeader("id", "6a1d2a57-5c64-4b1f-9c1c-0e4a3b8d7f21"), RecordHeader("schema", "notification/1"),
        RecordHeader("app", "perennial/1.0.0"),
    ])
    static let key = Array("2000000000000000".utf8)
    /// The last digits are the subscription's number.
    static let token = "c0ffee00-5c64-4b1f-9c1c-0e4a00000000"
    private static let tokenDigits = 8
    private static let day: Int64 = 86_400_000
    private static let markets = [
        Market("USA", "USD"), Market("GBR", "GBP"), Market("DEU", "EUR"), Market("FRA", "EUR"), Market("JPN", "JPY"),
        Market("CAN", "CAD"), Market("AUS", "AUD"), Market("BRA", "BRL"), Market("KOR", "KRW"), Market("MEX", "MXN"),
        Market("ITA", "EUR"), Market("SWE", "SEK"),
    ]

    private(set) var key = Self.key
    private(set) var value: [UInt8]
    private(set) var timestamp: Int64 = 0
    private let subject: Subject
    private let firstDate: Int64
    private let ownerPlaces: [Int]
    private let tokenPlaces: [Int]
    private let marketPlaces: MarketPlaces
    private let signedPlaces: [Int]
    private let purchasePlaces: [Int]
    private let expiryPlaces: [Int]
    private let wantedPlaces: [Int]

    /// - Parameter end: end of the twelfth period.
    init(_ subject: Subject = .renewal, end: Int64 = Self.usualEnd) {
        self.subject = subject
        let text: Form
        switch subject {
        case .renewal:
            firstDate = end - Self.day
            text = Form(row: Self.periods, from: firstDate, to: end + period)
        case .change:
            firstDate = end - period / 2
            text = Form(row: Self.periods - 1, from: end - period)
        case .period(let row):
            firstDate = end
            text = Form(row: row, from: end, isPurchase: row == 0)
        }
        value = text.bytes
        purchasePlaces = text.purchasePlaces
        expiryPlaces = text.expiryPlaces
        ownerPlaces = Self.places(of: "2000000000000000", in: value)
        tokenPlaces = Self.places(of: Self.token, in: value)
        marketPlaces = MarketPlaces(value)
        signedPlaces = Self.places(of: "DDDDDDDDDDDDD", in: value)
        wantedPlaces = Self.places(of: "WWW", in: value)
        Self.write("one", at: wantedPlaces, in: &value)
    }

    /// The n-th record, about one of the subscriptions.
    mutating func make(_ n: Int, of subscription: Int) {
        write(subscription, told: firstDate + Int64(n))
        if subject == .change { Self.write(n.isMultiple(of: 2) ? "one" : "two", at: wantedPlaces, in: &value) }
    }

    /// The record of a period.
    mutating func make(of subscription: Int, periodFrom start: Int64, told: Int64) {
        for place in purchasePlaces { Self.write(Int(start), digits: 13, at: place, in: &value) }
        for place in expiryPlaces { Self.write(Int(start + period), digits: 13, at: place, in: &value) }
        write(subscription, told: told)
    }

    private mutating func write(_ subscription: Int, told: Int64) {
        timestamp = told
        Self.write(2_000_000_000_000_000 + subscription, digits: Self.idDigits, at: 0, in: &key)
        for place in ownerPlaces {
            Self.write(2_000_000_000_000_000 + subscription, digits: Self.idDigits, at: place, in: &value)
        }
        for place in tokenPlaces { Self.writeToken(of: subscription, at: place, in: &value) }
        Self.writeMarket(of: subscription, at: marketPlaces, in: &value)
        for place in signedPlaces { Self.write(Int(timestamp), digits: 13, at: place, in: &value) }
    }

    static func key(of subscription: Int) -> [UInt8] {
        var key = key
        write(2_000_000_000_000_000 + subscription, digits: idDigits, at: 0, in: &key)
        return key
    }

    /// The partition of the record's key.
    func partition(of count: Int32) -> Int32 { Partitioner.partition(of: key.span, count: count) }

    /// The records of a subscription whose last period ends then.
    static func history(end: Int64, periods: Int = Self.periods) -> [[UInt8]] {
        (0..<periods).map { row in
            let start = end + Int64(row - periods) * period
            return record(row: row - periods + Self.periods, from: start, to: start + period, told: start)
        }
    }

    /// What Apple says then of a period of subscription 0.
    /// - Parameters:
    ///   - row: number of the period; 0 is the first one of `history`.
    ///   - wanted: `one` or `two`: the product that follows.
    static func record(row: Int, from start: Int64, to end: Int64, told: Int64, wanted: String = "one") -> [UInt8] {
        var text = Form(row: row, from: start, to: end).bytes
        for place in places(of: "DDDDDDDDDDDDD", in: text) { write(Int(told), digits: 13, at: place, in: &text) }
        write(wanted, at: places(of: "WWW", in: text), in: &text)
        return text
    }

    /// The time of the last of these records.
    static func lastNews(end: Int64) -> Int64 { end - period }

    /// Positions of storefront and currency in texts of subscription 0.
    struct MarketPlaces {
        fileprivate let storefront: [Int]
        fileprivate let currency: [Int]

        init(_ bytes: [UInt8]) {
            storefront = places(of: "USA", in: bytes)
            currency = places(of: "USD", in: bytes)
        }
    }

    static func writeMarket(of subscription: Int, at places: MarketPlaces, in bytes: inout [UInt8]) {
        let market = markets[subscription % markets.count]
        for place in places.storefront { write(market.storefront, at: place, in: &bytes) }
        for place in places.currency { write(market.currency, at: place, in: &bytes) }
    }

    private static func write(_ text: [UInt8], at place: Int, in bytes: inout [UInt8]) {
        for (index, byte) in text.enumerated() { bytes[place + index] = byte }
    }

    /// Writes the digits of the account's token that are the subscription's number.
    static func writeToken(of subscription: Int, at place: Int, in bytes: inout [UInt8]) {
        write(subscription, digits: tokenDigits, at: place + token.utf8.count - tokenDigits, in: &bytes)
    }

    private static func write(_ text: String, at places: [Int], in bytes: inout [UInt8]) {
        for place in places { bytes.replaceSubrange(place..<place + text.utf8.count, with: text.utf8) }
    }

    /// One notification of subscription 0.
    private struct Form {
        let bytes: [UInt8]
        let purchasePlaces: [Int]
        let expiryPlaces: [Int]

        /// - Parameter end: nil: the period has the usual length.
        init(row: Int, from start: Int64, to end: Int64? = nil, isPurchase: Bool = false) {
            var text = template.replacing("0RR", with: "\(400 + row)")
            if isPurchase {
                text = text.replacing(#""DID_RENEW","subtype":null"#, with: #""SUBSCRIBED","subtype":"INITIAL_BUY""#)
                    .replacing(#""transactionReason":"RENEWAL""#, with: #""transactionReason":"PURCHASE""#)
            }
            purchasePlaces = places(of: "PPPPPPPPPPPPP", in: Array(text.utf8))
            expiryPlaces = places(of: "EEEEEEEEEEEEE", in: Array(text.utf8))
            text = text.replacing("PPPPPPPPPPPPP", with: "\(start)")
                .replacing("EEEEEEEEEEEEE", with: "\(end ?? start + period)")
            bytes = Array(text.utf8)
        }
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
