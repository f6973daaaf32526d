// Notifications that Apple would never sign.

public enum Absurdity {
    /// With these members instead of the usual ones. A name with a point is a member of `transaction` or `renewalInfo`. Values
    /// are JSON.
    public static func notification(_ members: [(String, String)]) -> String {
        var outer = [
            ("v", "1"), ("notificationType", "\"DID_RENEW\""), ("signedDate", "1779000000000"), ("status", "1"),
        ]
        var transaction = [
            ("transactionId", "\"2000\""), ("purchaseDate", "1778000000000"), ("expiresDate", "1781000000000"),
            ("type", "\"Auto-Renewable Subscription\""), ("productId", "\"p\""), ("bundleId", "\"b\""),
            ("signedDate", "1779000000000"),
        ]
        var renewal = [("autoRenewStatus", "1"), ("renewalDate", "1781000000000"), ("signedDate", "1779000000000")]
        func put(_ name: Substring, _ value: String, _ list: inout [(String, String)]) {
            list.removeAll { $0.0 == name }
            list.append((String(name), value))
        }
        for (name, value) in members {
            let parts = name.split(separator: ".", maxSplits: 1)
            switch parts[0] {
            case "transaction" where parts.count == 2: put(parts[1], value, &transaction)
            case "renewalInfo" where parts.count == 2: put(parts[1], value, &renewal)
            default: put(parts[0], value, &outer)
            }
        }
        func object(_ list: [(String, String)]) -> String {
            "{" + list.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ",") + "}"
        }
        for (name, list) in [("transaction", transaction), ("renewalInfo", renewal)]
        where !outer.contains(where: { $0.0 == name }) {
            outer.append((name, object(list)))
        }
        return object(outer)
    }

    public static let members = [
        "v", "notificationUUID", "notificationType", "subtype", "signedDate", "status", "transaction", "renewalInfo",
        "transaction.transactionId", "transaction.purchaseDate", "transaction.expiresDate", "transaction.type",
        "transaction.bundleId", "transaction.productId", "transaction.subscriptionGroupIdentifier",
        "transaction.appAccountToken", "transaction.inAppOwnershipType", "transaction.revocationDate",
        "transaction.revocationType", "transaction.isUpgraded", "transaction.offerType", "transaction.offerIdentifier",
        "transaction.offerDiscountType", "transaction.price", "transaction.currency", "transaction.billingPlanType",
        "transaction.commitmentInfo", "transaction.signedDate", "renewalInfo.autoRenewStatus",
        "renewalInfo.autoRenewProductId", "renewalInfo.expirationIntent", "renewalInfo.isInBillingRetryPeriod",
        "renewalInfo.gracePeriodExpiresDate", "renewalInfo.priceIncreaseStatus", "renewalInfo.renewalDate",
        "renewalInfo.renewalPrice", "renewalInfo.appAccountToken", "renewalInfo.renewalBillingPlanType",
        "renewalInfo.commitmentInfo", "renewalInfo.signedDate",
    ]

    public static let values = [
        "null", "true", "false", "0", "-1", "1", "1779000000001", "9223372036854775807", "-9223372036854775808",
        "9223372036854775808", "1e300", "-0.0", "1.5", "\"\"", "\"x\"", "\"1779000000000\"", "\"a|b\"",
        "\"\\u0000\\u0001\\u001f\\u007f\\u2028\\ud83d\\ude00\"", "\"\\\"\\\\/\"", "\"MONTHLY\"", "\"FAMILY_SHARED\"",
        "\"Consumable\"", "\"Non-Renewing Subscription\"", "\"" + String(repeating: "y", count: 1024) + "\"",
        "\"" + String(repeating: "z", count: 100_000) + "\"", "[]", "[[[]]]", "{}", "{\"sealed\":\"s\"}",
        "{\"billingPeriodNumber\":9223372036854775807,\"totalBillingPeriods\":-9223372036854775808,"
            + "\"commitmentExpiresDate\":-1,\"commitmentAutoRenewStatus\":0,\"commitmentAutoRenewProductId\":\"q\"}",
    ]
}
