// What really happened, and what the customers may therefore use: what tests hold workers to.

public import Contract
internal import JSON

/// A time in which a customer may use a product, and why.
public struct AccessInterval: Sendable, Equatable {
    public enum Rule: String, Sendable {
        /// Paid for, at whatever price; a family member's is `family`.
        case paid
        /// Under a free trial of whatever kind of offer.
        case trial
        /// Failed to renew, within the grace that the developer grants.
        case grace
        /// Given by the developer: the end of a period was moved.
        case `extension`
        /// Shared by the purchaser.
        case family
        /// Apple renewed seconds late: nothing failed, and no customer is locked out for that. A record's `runs` show the
        /// gap, because nobody paid for it.
        case leeway
        /// After a refund was taken back. The refund stood from the end of the interval before; a record's `runs` know
        /// nothing of that gap any more.
        case reinstated
        /// Bought once, for ever.
        case owned
        /// Bought once, for the time that the app gives it.
        case pass
    }

    public var from: Int64
    /// The first instant without; nil: no end.
    public var until: Int64?
    public let productId: String
    public let transactionId: String
    public let rule: Rule
    /// When the purchase behind it was refunded. An interval that was over by then keeps its end, for it was used.
    public var revokedAt: Int64?
}

/// What was done to a subscriber.
public struct Deed: Sendable, Equatable {
    public let at: Int64
    public let subscriber: Int
    public let story: Story
    /// nil when it was about no purchase.
    public let originalTransactionId: String?
    public let event: String
}

/// One subscription, or purchase, at the end of the simulation, as it stands by what was told until then.
public struct SubscriptionTruth: Sendable {
    public let originalTransactionId: String
    public let environment: Contract.Environment
    public let bundleId: String
    public let isFamilyShared: Bool
    /// nil when the app never set one.
    public let appAccountToken: String?
    /// In the order in which they were given, which is that of their beginnings. The last may begin after the end of the
    /// simulation: renewed early.
    public let intervals: [AccessInterval]
    /// Words of the public records; nil where the story does not know, as of a subscription that was moved elsewhere.
    public let state: String?
    public let reason: String?
    public let productId: String
    /// As last told; nil for what does not renew.
    public let autoRenew: Bool?
    public let billingPlan: String?
    public let commitmentPeriod: Int?
    /// What the product is for.
    public let entitlements: [String]
    /// Of the current period.
    let offer: Offer?
    let price: Int64
    /// As last told; nil while renewal is off.
    let renewsAt: Int64?
    let renewalPrice: Int64?
    /// While a payment fails: the end of its grace, and from its failure until Apple stops trying.
    let graceUntil: Int64?
    let retry: ClosedRange<Int64>?

    public func hasAccess(at time: Int64) -> Bool {
        intervals.contains { $0.from <= time && time < ($0.until ?? .max) }
    }
}

/// The truth of one subscriber, who may have several purchases (family members, migrated subscriptions).
///
/// As JSON lines, each an object with `kind`:
/// - `did`: `at`, `subscriber`, `story`, `originalTransactionId` or null, `event`. In order of time.
/// - `access`: one for each interval: `originalTransactionId`, `productId`, `transactionId`, `from`, `until` or null, `rule`
///   (see `AccessInterval.Rule`), and `revokedAt` when the purchase was refunded.
/// - `final`: one for each subscription: `originalTransactionId`, `environment`, `bundleId`, `ownership`, `appAccountToken`,
///   `productId`, `entitlements`, `state`, `reason`, `access`, `autoRenew`, `billingPlan`, `commitmentPeriod`, `offer`,
///   `price`, `renewsAt`, `renewalPrice`, `graceUntil`, `retry`, and `asOf`, the end of the simulation.
///
/// Only what was told until the end counts: a failed payment of which no notification was sent is in no line but `did`. While
/// renewal is on and no failure was told, a worker grants its leeway beyond the last `until`; the truth does not.
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
    /// In the words of the public records.
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
