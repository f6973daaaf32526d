// The facts in the records of one chain, for the plain metrics.

import Crypto

/// The order of two payloads of one thing: "signedDate or else the notification's, hash".
struct PlainVersion: Hashable, Comparable {
    let signed: Int64
    let hash: UInt64

    init(_ payload: (object: PlainJSON, raw: [UInt8]), notificationSigned: Int64) {
        signed = payload.object.integer("signedDate") ?? notificationSigned
        let raw = payload.raw
        hash = SHA256.beginning(of: raw.span)
    }

    static func < (one: PlainVersion, other: PlainVersion) -> Bool {
        (one.signed, one.hash) < (other.signed, other.hash)
    }
}

struct PlainTransaction {
    let id: String
    let version: PlainVersion
    let purchase: Int64
    let originalPurchase: Int64?
    /// The chain that this one continues.
    let previous: String?
    let expires: Int64?
    let isRenewing: Bool
    let isPurchased: Bool
    let bundle: String?
    let product: String?
    let plan: String?
    let storefront: String?
    let currency: String?
    let price: Int64?
    let discount: String?
    let reason: String?
    let revocation: Int64?
    /// In thousandths of a percent.
    let share: Int64
    let isUpgraded: Bool
    let period: Int64?
    let periods: Int64?

    /// nil: "Auto-renewable without expiresDate, or any transaction without transactionId or purchaseDate: no row."
    init?(_ payload: (object: PlainJSON, raw: [UInt8]), notificationSigned: Int64) {
        let object = payload.object
        let type = object.text("type")
        guard let id = object.text("transactionId"), let purchase = object.integer("purchaseDate") else { return nil }
        let expires = object.integer("expiresDate")
        if type == "Auto-Renewable Subscription" && expires == nil { return nil }
        self.id = id
        self.purchase = purchase
        self.expires = expires
        version = PlainVersion(payload, notificationSigned: notificationSigned)
        originalPurchase = object.integer("originalPurchaseDate")
        previous = object.text("previousOriginalTransactionId")
        let oneTime = ["Non-Consumable", "Consumable", "Non-Renewing Subscription"]
        isRenewing = !oneTime.contains(type ?? "") && expires != nil
        isPurchased = (object.text("inAppOwnershipType") ?? "PURCHASED") == "PURCHASED"
        bundle = object.text("bundleId")
        product = object.text("productId")
        plan = object.text("billingPlanType")
        storefront = object.text("storefront")
        currency = object.text("currency")
        price = object.integer("price").flatMap { (0...10_000_000_000_000).contains($0) ? $0 : nil }
        discount = object.text("offerDiscountType")
        reason = object.text("transactionReason")
        revocation = object.integer("revocationDate")
        share = min(max(object.integer("revocationPercentage") ?? 100_000, 0), 100_000)
        isUpgraded = object.bool("isUpgraded") ?? false
        let commitment = object.object("commitmentInfo")?.object
        period = commitment?.integer("billingPeriodNumber")
        periods = commitment?.integer("totalBillingPeriods")
    }
}

struct PlainInfo {
    let version: PlainVersion
    let autoRenewStatus: Int64?
    let autoRenewProduct: String?
    let renewalPlan: String?
    let intent: Int64?
    let graceEnd: Int64?
    let priceIncreaseStatus: Int64?
    let commitmentStatus: Int64?
    let commitmentProduct: String?
    let commitmentPlan: String?

    init(_ payload: (object: PlainJSON, raw: [UInt8]), notificationSigned: Int64) {
        let object = payload.object
        version = PlainVersion(payload, notificationSigned: notificationSigned)
        autoRenewStatus = object.integer("autoRenewStatus")
        autoRenewProduct = object.text("autoRenewProductId")
        renewalPlan = object.text("renewalBillingPlanType")
        intent = object.integer("expirationIntent")
        graceEnd = object.integer("gracePeriodExpiresDate")
        priceIncreaseStatus = object.integer("priceIncreaseStatus")
        let commitment = object.object("commitmentInfo")?.object
        commitmentStatus = commitment?.integer("commitmentAutoRenewStatus")
        commitmentProduct = commitment?.text("commitmentAutoRenewProductId")
        commitmentPlan = commitment?.text("commitmentRenewalBillingPlanType")
    }
}

/// "Fact = a notification with `signedDate`."
public struct PlainFact: Sendable {
    let uuid: String?
    let type: String?
    let subtype: String?
    let signed: Int64
    let transaction: PlainTransaction?
    let info: PlainInfo?
    /// Its content, without the circumstances of its delivery.
    private let content: [[UInt8]]

    public init?(record: [UInt8]) {
        guard let json = PlainJSON(record), let signed = json.integer("signedDate") else { return nil }
        self.signed = signed
        uuid = json.text("notificationUUID")
        type = json.text("notificationType")
        subtype = json.text("subtype")
        let transaction = json.object("transaction")
        let info = json.object("renewalInfo")
        self.transaction = transaction.flatMap { PlainTransaction($0, notificationSigned: signed) }
        self.info = info.map { PlainInfo($0, notificationSigned: signed) }
        content = [type.bytes, subtype.bytes, transaction?.raw ?? [], info?.raw ?? []]
    }

    func says(_ type: String, _ subtype: String) -> Bool { self.type == type && self.subtype == subtype }

    /// "UPGRADE = subtype UPGRADE of DID_CHANGE_RENEWAL_PREF or OFFER_REDEEMED."
    var isUpgrade: Bool { says("DID_CHANGE_RENEWAL_PREF", "UPGRADE") || says("OFFER_REDEEMED", "UPGRADE") }

    /// By (signedDate, UUID bytes). Notifications without a UUID, which nothing depends on, are ordered by content.
    static func isEarlier(_ one: PlainFact, _ other: PlainFact) -> Bool {
        if one.signed != other.signed { return one.signed < other.signed }
        if one.uuid != other.uuid { return isLess(one.uuid.bytes, other.uuid.bytes) }
        for (mine, others) in zip(one.content, other.content) where mine != others { return isLess(mine, others) }
        return false
    }

    /// "Two with the same (signedDate, notificationUUID) are one. Without a notificationUUID every such distinct content is
    /// a fact of its own."
    private func isSame(as other: PlainFact) -> Bool {
        signed == other.signed && uuid == other.uuid && (uuid != nil || content == other.content)
    }

    /// "The set of its distinct notifications (the 4,096 newest by `signedDate`, `notificationUUID`)", in that order.
    static func distinct(_ known: [PlainFact]) -> [PlainFact] {
        var facts: [PlainFact] = []
        for fact in known.sorted(by: isEarlier)
        where facts.last.map({ !$0.isSame(as: fact) }) ?? true {
            facts.append(fact)
        }
        return Array(facts.suffix(4_096))
    }
}

func isLess(_ one: [UInt8], _ other: [UInt8]) -> Bool { one.lexicographicallyPrecedes(other) }

extension String? {
    var bytes: [UInt8] { Array((self ?? "").utf8) }
}
