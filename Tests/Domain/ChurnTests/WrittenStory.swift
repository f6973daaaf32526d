// Stories written by hand for tests: the notifications of one subscription, and what must be counted of it.

import Contract
import Foundation
import PlainChurn
import Testing
import Zone

@testable import Churn

/// Days of the year: 2026-01-01 is day 1 of 2026.
func instant(_ month: Int, _ day: Int, _ hour: Int = 0, year: Int = 2026) -> Int64 {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = .gmt
    let date = calendar.date(from: DateComponents(year: year, month: month, day: day, hour: hour))
    return Int64(date?.timeIntervalSince1970 ?? 0) * 1_000
}

/// One transaction, as Apple sends it: ten dollars a month unless stated otherwise.
func row(
    _ id: String, _ purchase: Int64, _ expires: Int64, price: Int64? = 10_000, product: String = "pro.monthly",
    _ others: [String: Any] = [:]
) -> [String: Any] {
    var transaction: [String: Any] = [
        "transactionId": id, "purchaseDate": purchase, "expiresDate": expires, "currency": "USD",
        "type": "Auto-Renewable Subscription", "inAppOwnershipType": "PURCHASED", "bundleId": "com.example.app",
        "productId": product, "storefront": "USA",
    ]
    transaction["price"] = price
    return transaction.merging(others) { $1 }
}

/// A month of a commitment.
func month(
    _ id: String, _ purchase: Int64, _ expires: Int64, period: Int, of periods: Int? = nil, price: Int64 = 5_000,
    _ others: [String: Any] = [:]
) -> [String: Any] {
    var commitment = ["billingPeriodNumber": period]
    commitment["totalBillingPeriods"] = periods
    return row(
        id, purchase, expires, price: price, product: "pro.yearly",
        ["billingPlanType": "MONTHLY", "commitmentInfo": commitment].merging(others) { $1 })
}

extension [String: Any] {
    /// The same transaction in another payload.
    func with(_ others: [String: Any]) -> [String: Any] { merging(others) { $1 } }
}

/// Notifications of subscription 1.
struct WrittenStory {
    private(set) var words: [Word] = []

    var records: [[UInt8]] { words.map(\.record) }

    /// - Parameter arriving: when it arrives; by default when it is signed.
    mutating func tell(
        _ type: String, _ subtype: String? = nil, at signed: Int64, _ transaction: [String: Any],
        info: [String: Any]? = nil, arriving: Int64? = nil
    ) {
        var record: [String: Any] = [
            "v": 1, "notificationUUID": "n\(words.count)", "notificationType": type, "signedDate": signed,
            "transaction": transaction.merging(["signedDate": signed]) { $1 },
        ]
        record["subtype"] = subtype
        record["renewalInfo"] = info?.merging(["signedDate": signed]) { $1 }
        guard let bytes = try? JSONSerialization.data(withJSONObject: record, options: .sortedKeys) else {
            preconditionFailure("no JSON: \(record)")
        }
        words.append(Word(at: arriving ?? signed, record: Array(bytes)))
    }

    /// In days of UTC.
    var churn: PlainChurn { PlainChurn(records: records, chain: "1", zone: "Etc/UTC", partition: 3) }
}

/// The usual notifications of a subscription.
extension WrittenStory {
    private static func purchaseDate(_ row: [String: Any]) -> Int64 {
        guard let date = row["purchaseDate"] as? Int64 else { preconditionFailure("\(row) has no date") }
        return date
    }

    mutating func begins(_ row: [String: Any]) {
        tell("SUBSCRIBED", "INITIAL_BUY", at: Self.purchaseDate(row), row)
    }

    mutating func renews(_ row: [String: Any], at signed: Int64? = nil) {
        tell("DID_RENEW", at: signed ?? Self.purchaseDate(row), row)
    }

    mutating func comesBack(_ row: [String: Any]) {
        tell("SUBSCRIBED", "RESUBSCRIBE", at: Self.purchaseDate(row), row)
    }

    /// The payment for the period after the row fails.
    mutating func fails(_ row: [String: Any], at signed: Int64, grace: Int64? = nil) {
        var info: [String: Any] = ["autoRenewStatus": 1, "isInBillingRetryPeriod": true]
        info["gracePeriodExpiresDate"] = grace
        tell("DID_FAIL_TO_RENEW", grace == nil ? nil : "GRACE_PERIOD", at: signed, row, info: info)
    }

    mutating func recovers(_ row: [String: Any], at signed: Int64? = nil, grace: Int64? = nil) {
        var info: [String: Any] = ["autoRenewStatus": 1]
        info["gracePeriodExpiresDate"] = grace
        tell("DID_RENEW", "BILLING_RECOVERY", at: signed ?? Self.purchaseDate(row), row, info: info)
    }

    mutating func turnsOff(_ row: [String: Any], at signed: Int64) {
        tell("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: signed, row, info: ["autoRenewStatus": 0])
    }

    mutating func turnsOn(_ row: [String: Any], at signed: Int64) {
        tell("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_ENABLED", at: signed, row, info: ["autoRenewStatus": 1])
    }

    mutating func expires(_ row: [String: Any], _ subtype: String?, at signed: Int64) {
        tell("EXPIRED", subtype, at: signed, row)
    }

    mutating func refunds(_ row: [String: Any], at date: Int64, share: Int? = nil, told: Int64? = nil) {
        var revocation: [String: Any] = ["revocationDate": date]
        revocation["revocationPercentage"] = share
        tell("REFUND", at: told ?? date, row.with(revocation))
    }
}

// MARK: Expected cells

typealias Numbers = [ChurnCounter: Int64]

/// "2026-01-31" is a cell of the usual product, plan and currency; "2026-01-31 pro.yearly MONTHLY EUR" names others. "-" is an
/// empty part.
struct Cell: Hashable, ExpressibleByStringLiteral {
    let key: String

    init(_ text: String, storefront: String = "USA") {
        let parts = text.split(separator: " ").map(String.init)
        func part(_ place: Int, _ usual: String) -> String {
            place < parts.count ? (parts[place] == "-" ? "" : parts[place]) : usual
        }
        key = [
            "3", parts[0], "com.example.app", part(1, "pro.monthly"), part(2, "BILLED_UPFRONT"), storefront,
            part(3, "USD"),
        ].joined(separator: "|")
    }

    init(stringLiteral text: String) { self.init(text) }
}

func cellKey(_ day: String, product: String = "pro.monthly", plan: String = "BILLED_UPFRONT") -> String {
    Cell("\(day) \(product) \(plan.isEmpty ? "-" : plan)").key
}

func + (left: Numbers, right: Numbers) -> Numbers { left.merging(right, uniquingKeysWith: +).filter { $0.value != 0 } }

extension PlainCell {
    init(_ numbers: Numbers) {
        self.init()
        for (counter, value) in numbers {
            if counter.isMoney { money[counter.name] = value } else { counts[counter.name] = value }
        }
    }
}

extension WrittenStory {
    /// Expects these cells and no others, whether the notifications come in time, all at the end, or in any order.
    func expect(
        at clock: Int64, _ cells: [Cell: Numbers], zone: Zone = .utc, _ location: SourceLocation = #_sourceLocation
    ) throws {
        let expected = Dictionary(uniqueKeysWithValues: cells.map { ($0.key.key, PlainCell($0.value)) })
        let heard = words.filter { $0.at <= clock }.sorted { $0.at < $1.at }
        var inTime = Chain("1")
        inTime.zone = zone
        var atTheEnd = inTime
        var backwards = inTime
        for word in heard { try inTime.hear(word.record, at: word.at) }
        for word in heard { try atTheEnd.hear(word.record, at: clock) }
        for word in heard.reversed() { try backwards.hear(word.record, at: clock) }
        try inTime.advance(to: clock)
        let name = zone.name == Zone.utc.name ? "Etc/UTC" : zone.name
        let plain = PlainChurn(records: heard.map(\.record), chain: "1", zone: name, partition: 3)
        for (who, found) in [
            ("in time", inTime.plain), ("at the end", atTheEnd.plain), ("backwards", backwards.plain),
            ("plain", plain.cells(at: clock)),
        ] {
            #expect(difference(found, expected) == nil, "\(who), \(zone.fingerprint)", sourceLocation: location)
        }
    }
}

// MARK: The usual beginning of stories

/// The first month.
var january: [String: Any] { row("1", instant(1, 1), instant(2, 1)) }
/// The one after it.
var february: [String: Any] { row("2", instant(2, 1), instant(3, 1)) }

/// The counters of the first of January when it begins with `january`: ten dollars for one month.
let bought: Numbers = [.started: 1, .charged: 1, .activeDelta: 1, .revenue: 10_000, .mrrNew: 10_000]
