import Contract
import JSON
import Simulation
import Testing

/// Each member in Apple's tables: its type, and when it is present.
private struct Checker {
    private(set) var faults: [String] = []
    private let notification: SimulatedNotification
    private var place: String { "\(notification.kind) of \(notification.subscriber)" }

    init(_ notification: SimulatedNotification) { self.notification = notification }

    mutating func demand(_ holds: Bool, _ words: @autoclosure () -> String) {
        if !holds { faults.append("\(place): \(words())") }
    }

    /// Every member is known and has its type, and required members are present.
    mutating func members(_ object: JSONValue, always: [String: Kind], sometimes: [String: Kind]) {
        let present = object.object?.members ?? []
        for member in present {
            guard let kind = always[member.name] ?? sometimes[member.name] else {
                demand(false, "\(member.name) is not in the table")
                continue
            }
            demand(kind.fits(member.value), "\(member.name) is \(member.value.kindInWords)")
        }
        for name in always.keys.sorted() { demand(object[name] != nil, "\(name) is missing") }
    }
}

private enum Kind: Sendable {
    case text, id, uuid, time, integer, flag, object, list
    case one(of: [String])
    case number(ClosedRange<Int64>)

    func fits(_ value: JSONValue) -> Bool {
        switch self {
        case .text: value.string?.isEmpty == false
        case .id: value.string?.allSatisfy(\.isNumber) == true && value.string!.count >= 8
        case .uuid: value.string.map { $0.count == 36 && $0 == $0.lowercased() } ?? false
        case .time: value.integer.map { $0 > 1_600_000_000_000 && $0 < 2_500_000_000_000 } ?? false
        case .integer: value.integer != nil
        case .flag: value.bool != nil
        case .object: value.object != nil
        case .list: value.array?.isEmpty == false
        case .one(let values): value.string.map(values.contains) ?? false
        case .number(let range): value.integer.map(range.contains) ?? false
        }
    }
}

private let environments = Kind.one(of: ["Production", "Sandbox"])
private let plans = Kind.one(of: ["BILLED_UPFRONT", "MONTHLY"])
private let offerMembers: [String: Kind] = [
    "offerType": .number(1...4), "offerIdentifier": .text, "offerPeriod": .one(of: ["P1W", "P1M", "P3M"]),
    "offerDiscountType": .one(of: ["FREE_TRIAL", "PAY_AS_YOU_GO", "PAY_UP_FRONT", "ONE_TIME"]),
]

private let transactionAlways: [String: Kind] = [
    "transactionId": .id, "originalTransactionId": .id, "bundleId": .text, "productId": .text,
    "purchaseDate": .time, "originalPurchaseDate": .time, "quantity": .number(1...10),
    "type": .one(of: [
        "Auto-Renewable Subscription", "Non-Consumable", "Consumable", "Non-Renewing Subscription",
    ]),
    "inAppOwnershipType": .one(of: ["PURCHASED", "FAMILY_SHARED"]), "signedDate": .time,
    "environment": environments, "transactionReason": .one(of: ["PURCHASE", "RENEWAL"]),
    "storefront": .text, "storefrontId": .text, "price": .number(0...1_000_000_000), "currency": .text,
    "appTransactionId": .id,
]
private let transactionSometimes: [String: Kind] = [
    "webOrderLineItemId": .id, "subscriptionGroupIdentifier": .id, "expiresDate": .time,
    "appAccountToken": .uuid, "revocationDate": .time, "revocationReason": .number(0...1),
    "revocationType": .one(of: ["REFUND_FULL", "REFUND_PRORATED", "FAMILY_REVOKE"]),
    "revocationPercentage": .number(0...100_000), "isUpgraded": .flag, "billingPlanType": plans,
    "commitmentInfo": .object, "advancedCommerceInfo": .object, "previousOriginalTransactionId": .id,
].merging(offerMembers) { $1 }
private let renewalAlways: [String: Kind] = [
    "originalTransactionId": .id, "productId": .text, "autoRenewProductId": .text,
    "autoRenewStatus": .number(0...1), "signedDate": .time, "environment": environments,
    "recentSubscriptionStartDate": .time, "renewalDate": .time, "renewalPrice": .integer,
    "currency": .text, "appTransactionId": .id, "renewalBillingPlanType": plans,
]
private let renewalSometimes: [String: Kind] = [
    "expirationIntent": .number(1...5), "isInBillingRetryPeriod": .flag, "gracePeriodExpiresDate": .time,
    "priceIncreaseStatus": .number(0...1), "eligibleWinBackOfferIds": .list, "appAccountToken": .uuid,
    "commitmentInfo": .object, "advancedCommerceInfo": .object,
].merging(offerMembers) { $1 }

extension Checker {
    mutating func transaction(_ row: JSONValue, signedBy outer: SimulatedNotification) {
        members(row, always: transactionAlways, sometimes: transactionSometimes)
        let renews = row["type"]?.string == "Auto-Renewable Subscription"
        for name in ["webOrderLineItemId", "subscriptionGroupIdentifier", "expiresDate", "billingPlanType"] {
            demand((row[name] != nil) == renews, "\(name) belongs to auto-renewables, all of them")
        }
        demand(row["isUpgraded"]?.bool != false, "isUpgraded is never false")
        demand((row["revocationDate"] != nil) == (row["revocationReason"] != nil), "revocation without reason")
        demand((row["revocationDate"] != nil) == (row["revocationType"] != nil), "revocation without type")
        let isFamily = row["inAppOwnershipType"]?.string == "FAMILY_SHARED"
        demand(!isFamily || row["appAccountToken"] == nil, "a shared purchase has no token")
        demand(
            row["quantity"]?.integer == 1 || row["type"]?.string == "Consumable",
            "several units of a product that is not a consumable")
        demand((row["billingPlanType"]?.string == "MONTHLY") == (row["commitmentInfo"] != nil), "plan and commitment")
        demand(row["signedDate"]?.integer == outer.innerSignedDate, "signedDate")
        offer(row)
        if row["offerDiscountType"]?.string == "FREE_TRIAL" {
            demand(row["price"]?.integer == 0, "a trial has a price")
        }
        if let end = row["expiresDate"]?.integer { demand(end > row["purchaseDate"]?.integer ?? .max, "period") }
        if let commitment = row["commitmentInfo"] {
            members(
                commitment,
                always: [
                    "billingPeriodNumber": .number(1...12), "totalBillingPeriods": .number(12...12),
                    "commitmentExpiresDate": .time, "commitmentPrice": .integer,
                ], sometimes: [:])
            demand(commitment["commitmentPrice"]?.integer == row["price"]?.integer.map { $0 * 12 }, "commitmentPrice")
            demand(
                commitment["commitmentExpiresDate"]?.integer ?? 0 >= row["expiresDate"]?.integer ?? .max,
                "a commitment ends with its last period")
        }
    }

    mutating func renewal(_ info: JSONValue, of row: JSONValue, in outer: SimulatedNotification) {
        members(info, always: renewalAlways, sometimes: renewalSometimes)
        for name in ["originalTransactionId", "environment", "currency", "appTransactionId", "appAccountToken"] {
            demand(info[name] == row[name], "\(name) differs from the transaction's")
        }
        demand(
            (info["expirationIntent"] != nil) == (info["isInBillingRetryPeriod"] != nil),
            "intent and retry flag are told together")
        if info["isInBillingRetryPeriod"]?.bool == true {
            demand(info["expirationIntent"]?.integer == 2 && info["autoRenewStatus"]?.integer == 1, "a retry bills")
        }
        offer(info)
        if let commitment = info["commitmentInfo"] {
            members(
                commitment,
                always: [
                    "commitmentAutoRenewProductId": .text, "commitmentAutoRenewStatus": .number(0...1),
                    "commitmentRenewalBillingPlanType": plans, "commitmentRenewalDate": .time,
                    "commitmentRenewalPrice": .integer,
                ], sometimes: [:])
        }
        let expected: [Int: (Int64) -> Bool] = [
            1: { $0 > outer.at - 60_000 }, 2: { $0 <= outer.at }, 3: { _ in true }, 4: { _ in true }, 5: { _ in true },
        ]
        demand(
            outer.status.map { expected[$0]?(info["renewalDate"]?.integer ?? 0) ?? false } ?? false, "status and date")
        demand((outer.status == 3 || outer.status == 4) == (info["isInBillingRetryPeriod"]?.bool == true), "status")
    }

    private mutating func offer(_ object: JSONValue) {
        let type = object["offerType"]?.integer
        demand((type != nil) == (object["offerDiscountType"] != nil), "offer without discount")
        demand((type ?? 1) == 1 || object["offerIdentifier"] != nil, "an offer without a name")
        demand(type != 1 || object["offerIdentifier"] == nil, "introductory offers have no name")
    }

    mutating func payload(_ payload: JSONValue, of notification: SimulatedNotification) {
        let contents = ["data", "summary", "externalPurchaseToken", "appData"].filter { payload[$0] != nil }
        demand(contents.count == 1, "exactly one content")
        members(
            payload,
            always: [
                "notificationType": .text, "notificationUUID": .uuid, "version": .one(of: ["2.0"]), "signedDate": .time,
            ], sometimes: ["subtype": .text].merging(contents.map { ($0, .object) }) { $1 })
        guard let content = payload[contents[0]] else { return }
        if notification.environment == .production { demand(content["appAppleId"] != nil, "appAppleId in production") }
        demand(content["bundleId"]?.string == notification.bundleId, "bundleId")
        guard contents == ["data"] else { return }
        members(
            content, always: ["bundleId": .text, "environment": environments],
            sometimes: [
                "appAppleId": .integer, "bundleVersion": .text, "signedTransactionInfo": .text,
                "signedRenewalInfo": .text, "status": .number(1...5), "consumptionRequestReason": .text,
            ])
        demand(
            (content["consumptionRequestReason"] != nil) == (notification.notificationType == "CONSUMPTION_REQUEST"),
            "a reason only for requests")
        demand((content["signedRenewalInfo"] != nil) == (content["status"] != nil), "status only with renewal info")
    }
}

@Suite struct `The payloads` {
    @Test func `of a thousand subscribers have the members of Apple's tables`() throws {
        var configuration = configuration(seed: 21, subscribers: 1000)
        configuration.sandboxPerMille = 300
        // All stories are equally likely here, because rare ones have the rare members.
        configuration.weights = Dictionary(uniqueKeysWithValues: Story.allCases.map { ($0, 1) })
        let simulation = try Simulation(configuration)
        var seen = Set<String>()
        for subscriber in 0..<1000 {
            for notification in simulation.life(of: subscriber).notifications {
                var checker = Checker(notification)
                if let row = notification.transactionJSON {
                    checker.transaction(row, signedBy: notification)
                    let renews = row["type"]?.string == "Auto-Renewable Subscription"
                    checker.demand((notification.renewalInfo != nil) == renews, "renewal info")
                    if let info = notification.renewalJSON { checker.renewal(info, of: row, in: notification) }
                    seen.formUnion(row.object?.members.map(\.name) ?? [])
                    seen.formUnion(notification.renewalJSON?.object?.members.map(\.name) ?? [])
                }
                #expect(checker.faults.isEmpty, "\(checker.faults)")
            }
        }
        let rare = [
            "isUpgraded", "revocationPercentage", "priceIncreaseStatus", "eligibleWinBackOfferIds", "offerIdentifier",
            "previousOriginalTransactionId", "advancedCommerceInfo", "commitmentInfo", "gracePeriodExpiresDate",
        ]
        for name in rare { #expect(seen.contains(name), "\(name) never occurs") }
    }

    @Test func `have exactly one content, and what belongs to it`() throws {
        let authority = try SimulatedAuthority(seed: 2)
        for story in Story.allCases {
            for sandbox in [false, true] {
                let notifications = try simulation(of: story, sandbox: sandbox).life(of: 0).notifications
                for notification in notifications.prefix(3) {
                    var checker = Checker(notification)
                    checker.payload(try JSONValue.read(notification.payload(signedBy: authority)), of: notification)
                    #expect(checker.faults.isEmpty, "\(checker.faults)")
                }
            }
        }
    }
}
