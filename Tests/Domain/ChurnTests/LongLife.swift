// A subscription of many periods: most are quiet, and in the others something happens.

import JSON

import struct MakeBelieve.Chance

/// Notifications of one subscription, with its own id "1". Some arrive late, and some are signed ahead of time.
struct LongLife {
    /// What was bought for one period.
    private struct Bought {
        var id: String
        var start: Int64
        var end: Int64
        var product: String
        var price: Int64?
        var storefront: String
        var currency: String
        /// The number of the month within a commitment.
        var month: Int64?
        var reason: String?
        var isOneTime = false
        var isFamilyShared = false
    }

    /// What a notification says beside its kind and what was bought.
    private struct Told {
        var renews: Int64? = 1
        var next: String?
        var grace: Int64?
        var intent: Int64?
        var revoked: Int64?
        var share: Int64?
        var isUpgraded = false
    }

    /// In the order in which they arrive.
    private(set) var words: [Word] = []
    private var bought: [Bought] = []
    private var told = 0
    private let length: Int64
    private let unrest: UInt64
    private var chance: Chance

    /// - Parameter unrest: in how many of a hundred periods something happens.
    init(periods: Int, unrest: UInt64, _ chance: Chance) {
        self.chance = chance
        self.unrest = unrest
        length = (self.chance.yes(70) ? 7 : 28) * day
        let start: Int64 = 1_420_070_400_000
        bought = [
            Bought(
                id: self.chance.yes(50) ? "1" : "700", start: start, end: start + length, product: "pro", price: 4_990,
                storefront: "DEU", currency: "EUR")
        ]
        tell("SUBSCRIBED", "INITIAL_BUY", at: start, bought[0])
        while bought.count < periods {
            if self.chance.yes(unrest) { happen() } else { renew() }
            if self.chance.yes(unrest / 2) { tellOfBefore() }
        }
        words = words.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }.map(\.element)
    }

    private var last: Bought { bought[bought.count - 1] }

    // MARK: What happens

    /// - Parameter pause: how long there was no subscription.
    private mutating func next(after pause: Int64 = 0) -> Bought {
        var next = last
        // Usually ids grow.
        next.id = chance.yes(97) ? "\(1_000 + told)" : "\(500_000 - told)"
        next.start = last.end + pause
        next.end = next.start + length
        next.month = nil
        next.reason = chance.of(nil, nil, "RENEWAL")
        next.isFamilyShared = false
        return next
    }

    private mutating func renew(
        _ change: (inout Bought) -> Void = { _ in }, subtype: String? = nil, told: Told = Told()
    ) {
        var next = next()
        change(&next)
        bought.append(next)
        let early = chance.of(0, 0, hour, 20 * hour)
        tell("DID_RENEW", subtype, at: next.start - early, next, told)
    }

    private mutating func happen() {
        switch chance.below(16) {
        case 0, 1: failAndRecover()
        case 2: failForGood()
        case 3: leaveAndComeBack()
        case 4: upgrade()
        case 5:
            tell("DID_CHANGE_RENEWAL_PREF", "DOWNGRADE", at: last.start + day, last, Told(next: "lite"))
            renew { $0.product = "lite" }
        case 6: renew { $0.price = 5_990 }
        case 7:
            renew {
                $0.storefront = "USA"
                $0.currency = "USD"
            }
        case 8: renew { $0.price = 0 }
        case 9: for month in 1...3 { renew { $0.month = Int64(month) } }
        case 10:
            // A period of which nobody heard.
            bought.append(next())
            renew()
        case 11:
            tell("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: last.start + day, last, Told(renews: 0))
            tell("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_ENABLED", at: last.end - day, last)
            renew()
        case 12: renew { $0.isFamilyShared = true }
        case 13: renew { $0.price = nil }
        case 14:
            var once = last
            once.id = "\(900_000 + told)"
            once.isOneTime = true
            tell("ONE_TIME_CHARGE", at: last.start + hour, once)
            if chance.yes(60) { tell("REFUND", at: last.start + day, once, Told(revoked: last.start + day)) }
        default:
            renew { $0.product = $0.product == "pro" ? "plus" : "pro" }
        }
    }

    private mutating func failAndRecover() {
        let failed = last
        let grace = chance.yes(50) ? failed.end + 3 * day : nil
        if chance.yes(90) {
            tell(
                "DID_FAIL_TO_RENEW", grace == nil ? nil : "GRACE_PERIOD", at: failed.end - hour, failed,
                Told(grace: grace))
        }
        let pause = chance.of(day, 2 * day, 5 * day, 40 * day)
        if let grace, pause > 3 * day { tell("GRACE_PERIOD_EXPIRED", at: grace, failed) }
        var next = next(after: pause)
        // The cycle is kept.
        if chance.yes(40) { next.start = failed.end }
        bought.append(next)
        tell("DID_RENEW", chance.yes(80) ? "BILLING_RECOVERY" : nil, at: failed.end + pause, next)
    }

    private mutating func failForGood() {
        let failed = last
        tell("DID_FAIL_TO_RENEW", at: failed.end, failed)
        tell("EXPIRED", "BILLING_RETRY", at: failed.end + 60 * day, failed, Told(renews: 0, intent: 2))
        comeBack(after: 70 * day)
    }

    private mutating func leaveAndComeBack() {
        tell("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: last.start + day, last, Told(renews: 0))
        tell("EXPIRED", "VOLUNTARY", at: last.end, last, Told(renews: 0, intent: 1))
        comeBack(after: chance.of(hour, 20 * day, 400 * day))
    }

    private mutating func comeBack(after pause: Int64) {
        bought.append(next(after: pause))
        tell("SUBSCRIBED", "RESUBSCRIBE", at: last.start, last)
    }

    private mutating func upgrade() {
        let before = last
        var next = next()
        next.start = before.start + 3 * day
        next.end = next.start + length
        next.product = "plus"
        next.price = 9_990
        bought.append(next)
        tell("DID_CHANGE_RENEWAL_PREF", "UPGRADE", at: next.start, next)
        if chance.yes(50) {
            tell("REFUND", at: next.start + hour, before, Told(revoked: next.start, share: 57_000, isUpgraded: true))
        }
    }

    /// About one of the last periods, or of any.
    private mutating func tellOfBefore() {
        let back = chance.yes(80) ? chance.below(6) : chance.below(Int64(bought.count))
        let old = bought[max(bought.count - 1 - Int(back), 0)]
        let now = last.start + chance.of(hour, day, 2 * day)
        switch chance.below(6) {
        case 0, 1:
            let revoked = chance.of(now, now - day, now + 2 * day, old.start)
            let share = chance.of(nil, nil, Int64(33_333))
            tell("REFUND", at: now, old, Told(revoked: revoked, share: share))
            if chance.yes(40) { tell("REFUND_REVERSED", at: now + chance.of(hour, 3 * day), old) }
        case 2: tell("CONSUMPTION_REQUEST", at: now, old)
        case 3: tell("REFUND_DECLINED", at: now, old)
        case 4: tell("DID_CHANGE_RENEWAL_STATUS", at: now, old, Told(renews: chance.of(0, 1, nil)))
        default: tell("PRICE_INCREASE", "PENDING", at: now, old, saysTransaction: false)
        }
    }

    // MARK: Words

    private mutating func tell(
        _ type: String, _ subtype: String? = nil, at signed: Int64, _ bought: Bought, _ told: Told = Told(),
        saysTransaction: Bool = true
    ) {
        self.told += 1
        let number = self.told
        var json = JSONWriter()
        json.object { json in
            json.member("v", 1)
            json.member("notificationUUID", "n\(number)")
            json.member("notificationType", type)
            json.member("subtype", subtype)
            json.member("signedDate", signed)
            if saysTransaction {
                json.name("transaction")
                Self.write(bought, told, signed, to: &json)
            }
            json.name("renewalInfo")
            json.object { json in
                if let renews = told.renews { json.member("autoRenewStatus", renews) }
                json.member("autoRenewProductId", told.next ?? bought.product)
                if let grace = told.grace { json.member("gracePeriodExpiresDate", grace) }
                if let intent = told.intent { json.member("expirationIntent", intent) }
                if bought.month != nil, let renews = told.renews {
                    json.name("commitmentInfo")
                    json.object { $0.member("commitmentAutoRenewStatus", renews) }
                }
                json.member("signedDate", signed)
            }
        }
        let isLate = chance.yes(unrest / 2)
        let late = isLate ? chance.of(hour, day, 6 * day, 30 * day, 400 * day, -2 * day) : 0
        words.append(Word(at: signed + late, record: json.bytes))
    }

    private static func write(_ bought: Bought, _ told: Told, _ signed: Int64, to json: inout JSONWriter) {
        json.object { json in
            json.member("transactionId", bought.id)
            json.member("purchaseDate", bought.start)
            json.member("originalPurchaseDate", Int64(1_420_070_400_000))
            json.member("type", bought.isOneTime ? "Consumable" : "Auto-Renewable Subscription")
            if !bought.isOneTime { json.member("expiresDate", bought.end) }
            json.member("bundleId", "com.example.app")
            json.member("productId", bought.product)
            if let month = bought.month {
                json.member("billingPlanType", "MONTHLY")
                json.name("commitmentInfo")
                json.object { json in
                    json.member("billingPeriodNumber", month)
                    json.member("totalBillingPeriods", Int64(3))
                }
            }
            json.member("storefront", bought.storefront)
            json.member("currency", bought.currency)
            if let price = bought.price { json.member("price", price) }
            if let revoked = told.revoked { json.member("revocationDate", revoked) }
            if let share = told.share { json.member("revocationPercentage", share) }
            if told.isUpgraded { json.member("isUpgraded", true) }
            if let reason = bought.reason { json.member("transactionReason", reason) }
            if bought.isFamilyShared { json.member("inAppOwnershipType", "FAMILY_SHARED") }
            json.member("signedDate", signed)
        }
    }
}
