// Random lives.

import struct MakeBelieve.Chance

/// Notifications that Apple might send, and others: with few ids and dates, so that they often collide.
func notifications(_ count: Int, _ chance: inout Chance) -> [String] {
    (0..<count).map { _ in
        let number = 1 + chance.below(5)
        let signed = d(30 * (number - 1) + chance.below(40)) + chance.below(3)
        var more: [String] = []
        if chance.yes(15) { more.append("'revocationDate':\(d(30 * (number - 1) + chance.below(40)))") }
        if chance.yes(10) { more.append("'revocationType':'\(chance.of("FAMILY_REVOKE", "REFUND_FULL"))'") }
        if chance.yes(10) { more.append("'isUpgraded':true") }
        if chance.yes(10) { more.append("'inAppOwnershipType':'FAMILY_SHARED'") }
        if chance.yes(15) { more.append("'offerType':\(1 + chance.below(5))") }
        if chance.yes(30) {
            more.append("'productId':'\(chance.of("plus", "lite"))','appAccountToken':'T\(chance.below(3))'")
        }
        if chance.yes(30) { more.append("'price':\(chance.below(9000)),'currency':'EUR'") }
        let extra = more.joined(separator: ",")
        let row: Part
        switch chance.below(10) {
        case 0...5: row = period(number, signed: signed, extra)
        case 6, 7: row = month(number, signed: signed, extra)
        case 8:
            row = bought(
                "\(number)", d(30 * (number - 1)) + chance.below(3), d(30 * number) + chance.below(3), signed: signed,
                extra)
        default:
            row = once(
                "\(number)", d(30 * number),
                type: chance.of("Non-Consumable", "Non-Renewing Subscription", "A New Type"),
                product: chance.of("pro", "season"), extra.contains("productId") ? "" : extra)
        }
        var info: [String] = []
        if chance.yes(30) { info.append("'isInBillingRetryPeriod':\(chance.of("true", "false"))") }
        if chance.yes(20) { info.append("'gracePeriodExpiresDate':\(d(30 * number + chance.below(20)))") }
        if chance.yes(20) { info.append("'expirationIntent':\(1 + chance.below(5))") }
        if chance.yes(20) {
            let product = chance.yes(50) ? ",'commitmentAutoRenewProductId':'lite'" : ""
            let plan = chance.yes(50) ? ",'commitmentRenewalBillingPlanType':'BILLED_UPFRONT'" : ""
            info.append("'commitmentInfo':{'commitmentAutoRenewStatus':\(chance.below(2))\(product)\(plan)}")
        }
        if chance.yes(20) { info.append("'renewalPrice':\(chance.below(9000)),'appAccountToken':'U'") }
        if chance.yes(20) {
            info.append("'autoRenewProductId':'\(chance.of("pro", "lite"))','renewalBillingPlanType':'MONTHLY'")
        }
        let renews = renewal(
            Int(chance.below(4) == 0 ? 0 : 1), at: chance.yes(90) ? d(30 * number) : nil, signed: signed,
            info.joined(separator: ","))
        return told(
            chance.of("DID_RENEW", "EXPIRED", "A"), chance.of(nil, "VOLUNTARY", "BILLING_RETRY"), at: signed,
            chance.yes(85) ? row : nil, chance.yes(70) ? renews : nil,
            status: chance.of(nil, 1, 2, 3, 4, 5))
    }
}
