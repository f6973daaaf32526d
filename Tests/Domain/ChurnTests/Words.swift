// Random lives, and lives from the simulator.

import Contract
import JSON
import Simulation

import struct MakeBelieve.Chance

/// The records that came, and when.
struct Word {
    var at: Int64
    var record: [UInt8]
}

extension Word {
    /// Notifications that Apple might send, and others: with few ids and dates, so that they often collide.
    static func nonsense(_ count: Int, _ chance: inout Chance) -> [Word] {
        (0..<count).map { number in nonsense(number, &chance) }.sorted { $0.at < $1.at }
    }

    private static let origin: Int64 = 1_767_225_600_000

    private static func nonsense(_ number: Int, _ chance: inout Chance) -> Word {
        let row = 1 + chance.below(5)
        let signed = date(row, within: 60, &chance)
        var json = JSONWriter()
        json.object { json in
            json.member("v", 1)
            if chance.yes(95) { json.member("notificationUUID", "n\(number)") }
            let (type, subtype) = kind(&chance)
            json.member("notificationType", type)
            json.member("subtype", subtype)
            json.member("signedDate", signed)
            if chance.yes(92) {
                json.name("transaction")
                transaction(&json, row, signed, &chance)
            }
            if chance.yes(70) {
                json.name("renewalInfo")
                info(&json, row, signed, &chance)
            }
        }
        // Most late ones are late by days, a few by months; some are dated in the future.
        let late = chance.of(0, 0, 0, hour, 3 * day, 100 * day, -2 * day)
        return Word(at: signed + late, record: json.bytes)
    }

    private static func date(_ row: Int64, within spread: Int64, _ chance: inout Chance) -> Int64 {
        origin + (28 * row + chance.below(spread) - spread / 3) * day + chance.of(0, 0, 1, hour, -1)
    }

    private static func kind(_ chance: inout Chance) -> (String, String?) {
        chance.of(
            ("SUBSCRIBED", chance.of("INITIAL_BUY", "RESUBSCRIBE")), ("DID_RENEW", nil), ("DID_RENEW", nil),
            ("DID_RENEW", "BILLING_RECOVERY"), ("DID_FAIL_TO_RENEW", chance.of("GRACE_PERIOD", nil)),
            ("GRACE_PERIOD_EXPIRED", nil),
            ("EXPIRED", chance.of("VOLUNTARY", "BILLING_RETRY", "PRICE_INCREASE", "PRODUCT_NOT_FOR_SALE", nil)),
            ("DID_CHANGE_RENEWAL_STATUS", chance.of("AUTO_RENEW_ENABLED", "AUTO_RENEW_DISABLED", nil)),
            ("DID_CHANGE_RENEWAL_PREF", chance.of("UPGRADE", "DOWNGRADE", nil)),
            ("OFFER_REDEEMED", chance.of("UPGRADE", "DOWNGRADE", nil)), ("REFUND", nil), ("REFUND_REVERSED", nil),
            ("REFUND_DECLINED", nil), ("CONSUMPTION_REQUEST", nil), ("PRICE_INCREASE", "PENDING"))
    }

    private static func transaction(
        _ json: inout JSONWriter, _ row: Int64, _ signed: Int64, _ chance: inout Chance
    ) {
        json.object { json in
            json.member("transactionId", "\(row)")
            let start = origin + 28 * row * day + chance.of(0, 0, 0, 0, hour, -day, 5 * day)
            json.member("purchaseDate", start)
            if chance.yes(50) { json.member("originalPurchaseDate", origin + 28 * day) }
            if chance.yes(10) { json.member("previousOriginalTransactionId", "5") }
            let isOneTime = chance.yes(6)
            json.member("type", isOneTime ? "Consumable" : "Auto-Renewable Subscription")
            if !isOneTime { json.member("expiresDate", start + chance.of(28, 28, 28, 28, 30, 365, 7, 0) * day) }
            json.member("bundleId", "com.example.app")
            json.member("productId", chance.of("pro", "pro", "pro", "lite"))
            if chance.yes(30) { json.member("billingPlanType", chance.of("MONTHLY", "MONTHLY", "BILLED_UPFRONT")) }
            if chance.yes(40) {
                json.name("commitmentInfo")
                json.object { json in
                    json.member("billingPeriodNumber", chance.of(1, 1, 2, 3, row))
                    if chance.yes(60) { json.member("totalBillingPeriods", chance.of(3, 12)) }
                }
            }
            json.member("storefront", chance.yes(95) ? "DEU" : "USA")
            json.member("currency", chance.yes(95) ? "EUR" : "USD")
            if chance.yes(92) { json.member("price", chance.of(0, 4_990, 9_990, 9_990, 7)) }
            if chance.yes(10) { json.member("offerDiscountType", chance.of("FREE_TRIAL", "PAY_AS_YOU_GO")) }
            if chance.yes(12) { json.member("revocationDate", date(row, within: 50, &chance)) }
            if chance.yes(6) { json.member("revocationPercentage", chance.of(0, 33_333, 100_000)) }
            if chance.yes(6) { json.member("isUpgraded", true) }
            if chance.yes(40) { json.member("transactionReason", chance.of("PURCHASE", "RENEWAL")) }
            if chance.yes(4) { json.member("inAppOwnershipType", "FAMILY_SHARED") }
            if chance.yes(80) { json.member("signedDate", signed + chance.of(0, 0, 0, day, -day)) }
        }
    }

    private static func info(
        _ json: inout JSONWriter, _ row: Int64, _ signed: Int64, _ chance: inout Chance
    ) {
        json.object { json in
            if chance.yes(80) { json.member("autoRenewStatus", chance.of(0, 1)) }
            if chance.yes(50) { json.member("autoRenewProductId", chance.of("pro", "lite")) }
            if chance.yes(20) { json.member("expirationIntent", 1 + chance.below(6)) }
            if chance.yes(35) { json.member("gracePeriodExpiresDate", date(row, within: 60, &chance)) }
            if chance.yes(20) { json.member("priceIncreaseStatus", chance.of(0, 1)) }
            if chance.yes(20) { json.member("renewalBillingPlanType", chance.of("MONTHLY", "BILLED_UPFRONT")) }
            if chance.yes(30) {
                json.name("commitmentInfo")
                json.object { json in
                    json.member("commitmentAutoRenewStatus", chance.of(0, 1))
                    if chance.yes(50) { json.member("commitmentAutoRenewProductId", chance.of("pro", "lite")) }
                }
            }
            json.member("signedDate", signed + chance.of(0, 0, day))
        }
    }
}

extension Word {
    /// The notifications of each subscription or purchase of a simulated subscriber, by its id.
    static func lives(of subscriber: Int, in simulation: Simulation) -> [(id: String, words: [Word])] {
        let (notifications, truth) = simulation.life(of: subscriber)
        return truth.subscriptions.compactMap { subscription in
            let id = subscription.originalTransactionId
            let told = notifications.filter { $0.originalTransactionId == id }
            return told.isEmpty ? nil : (id, told.map { Word(at: $0.at, record: record($0)) })
        }
    }

    static func record(_ notification: SimulatedNotification) -> [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.member("v", 1)
            json.member("notificationUUID", notification.notificationUUID)
            json.member("notificationType", notification.notificationType)
            json.member("subtype", notification.subtype)
            json.member("signedDate", notification.at)
            json.member("transaction", json: notification.transaction)
            json.member("renewalInfo", json: notification.renewalInfo)
        }
        return json.bytes
    }
}
