// What really happened, and what the customers may therefore use: tests compare workers with it.

public import Contract
internal import JSON

/// A time in which a customer may use a product, and why.
public struct AccessInterval: Sendable, Equatable {
    public enum Rule: String, Sendable {
        /// Paid, at any price; a family member's purchase is `family`.
        case paid
        /// A free trial from any kind of offer.
        case trial
        /// The renewal failed; the developer grants grace.
        case grace
        /// Given by the developer, who moved the end of a period.
        case `extension`
        /// Shared by the purchaser.
        case family
        /// Apple renewed seconds late. Nothing failed, so the customer keeps access. The `runs` of a record show the
        /// gap, because it was not paid for.
        case leeway
        /// After a reversed refund. The refund lasted since the end of the previous interval; the `runs` of a record no
        /// longer show that gap.
        case reinstated
        /// Bought once, permanently.
        case owned
        /// Bought once, for the time that the app grants.
        case pass
    }

    public var from: Int64
    /// The first instant without access; nil: access does not end.
    public var until: Int64?
    public let productId: String
    public let transactionId: String
    public let rule: Rule
    /// When the purchase was refunded. An interval that was over by then keeps its end, because it was used.
    public var revokedAt: Int64?
}

/// One event in the life of a subscriber.
public struct Deed: Sendable, Equatable {
    public let at: Int64
    public let subscriber: Int
    public let story: Story
    /// nil if it was not about a purchase.
    public let originalTransactionId: String?
    public let event: String
}

/// One subscription or purchase at the end of the simulation, according to the notifications until then.
public struct SubscriptionTruth: Sendable {
    public let originalTransactionId: String
    public let environment: Contract.Environment
    public let bundleId: String
    public let isFamilyShared: Bool
    /// nil if the app never set one.
    public let appAccountToken: String?
    /// Sorted by beginning, which is also the order in which they were given. The last one may begin after the end of
    /// the simulation: renewed early.
    public let intervals: [AccessInterval]
    /// A state from the public records; nil where the story does not know it, as for a migrated subscription.
    public let state: String?
    public let reason: String?
    public let productId: String
    /// The last reported value; nil for a purchase that does not renew.
    public let autoRenew: Bool?
    public let billingPlan: String?
    public let commitmentPeriod: Int?
    /// The entitlements of the product.
    public let entitlements: [String]
    /// The offer of the current period.
    let offer: Offer?
    let price: Int64
    /// The last reported value; nil while renewal is off.
    let renewsAt: Int64?
    let renewalPrice: Int64?
    /// While a payment fails: the end of its grace, and the retry from the failure until Apple stops.
    let graceUntil: Int64?
    let retry: ClosedRange<Int64>?

    public func hasAccess(at time: Int64) -> Bool {
        intervals.contains { $0.from <= time && time < ($0.until ?? .max) }
    }
}

/// The truth about one subscriber, who may have several purchases (family members, migrated subscriptions).
///
/// As JSON lines, each an object with `kind`:
/// - `did`: `at`, `subscriber`, `story`, `originalTransactionId` or null, `event`. In the order of time.
/// - `access`: one for each interval: `originalTransactionId`, `productId`, `transactionId`, `from`, `until` or null,
///   `rule` (see `AccessInterval.Rule`), and `revokedAt` if the purchase was refunded.
/// - `final`: one for each subscription: `originalTransactionId`, `environment`, `bundleId`, `ownership`,
///   `appAccountToken`, `productId`, `entitlements`, `state`, `reason`, `access`, `autoRenew`, `billingPlan`,
///   `commitmentPeriod`, `offer`, `price`, `renewsAt`, `renewalPrice`, `graceUntil`, `retry`, and `asOf`, the end of
///   the simulation.
///
/// Only what was reported before the end counts: a failed payment without a notification is only in a `did` line. While
/// renewal is on and no failure was reported, a worker grants its leeway after the last `until`; the truth does not
/// include it.
public struct SubscriberTruth: Sendable {
    public let deeds: [Deed]
    public let subscriptions: [SubscriptionTruth]
    let end: Int64

    public var lines: [[UInt8]] {
        deeds.map(\.line)
            + subscriptions.flatMap { subscription in
                subscription.intervals.map { subscription.line(of: $0) } + [subscription.finalLine(at: end)]
            }
    }
}

extension Deed {
    fileprivate var line: [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.member("kind", "did")
            json.member("at", at)
            json.member("subscriber", subscriber)
            json.member("story", story.rawValue)
            json.member("originalTransactionId", originalTransactionId)
            json.member("event", event)
        }
        return json.bytes
    }
}

extension SubscriptionTruth {
    fileprivate func line(of interval: AccessInterval) -> [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.member("kind", "access")
            json.member("originalTransactionId", originalTransactionId)
            json.member("productId", interval.productId)
            json.member("transactionId", interval.transactionId)
            json.member("from", interval.from)
            json.name("until")
            if let until = interval.until { json.integer(until) } else { json.null() }
            json.member("rule", interval.rule.rawValue)
            if let revokedAt = interval.revokedAt { json.member("revokedAt", revokedAt) }
        }
        return json.bytes
    }

    fileprivate func finalLine(at end: Int64) -> [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.member("kind", "final")
            json.member("originalTransactionId", originalTransactionId)
            json.member("environment", environment.rawValue)
            json.member("bundleId", bundleId)
            json.member("ownership", isFamilyShared ? "FAMILY_SHARED" : "PURCHASED")
            json.member("appAccountToken", appAccountToken)
            json.member("productId", productId)
            json.member("state", state)
            json.member("reason", reason)
            json.member("access", hasAccess(at: end))
            json.name("autoRenew")
            if let autoRenew { json.bool(autoRenew) } else { json.null() }
            json.member("billingPlan", billingPlan)
            json.name("commitmentPeriod")
            if let commitmentPeriod { json.integer(commitmentPeriod) } else { json.null() }
            json.name("entitlements")
            json.array { json in for name in entitlements { json.string(name) } }
            json.name("offer")
            if let offer { offer.writeTruth(to: &json) } else { json.null() }
            json.member("price", price)
            for (name, value) in [("renewsAt", renewsAt), ("renewalPrice", renewalPrice), ("graceUntil", graceUntil)] {
                json.name(text: name)
                if let value { json.integer(value) } else { json.null() }
            }
            json.name("retry")
            if let retry { Self.write(retry, to: &json) } else { json.null() }
            json.member("asOf", end)
        }
        return json.bytes
    }

    private static func write(_ retry: ClosedRange<Int64>, to json: inout JSONWriter) {
        json.object { json in
            json.member("since", retry.lowerBound)
            json.member("until", retry.upperBound)
        }
    }
}

extension Offer {
    /// In the values of the public records.
    fileprivate func writeTruth(to json: inout JSONWriter) {
        let type =
            switch kind {
            case .introductory: "introductory"
            case .promotional: "promotional"
            case .code: "code"
            case .winBack: "win_back"
            }
        json.object { json in
            json.member("type", type)
            json.member("identifier", identifier)
            json.member("discount", discount.rawValue)
        }
    }
}
