// The events that may be published for what was done, story by story.

import JSON

/// The events of one subscription whose notifications all arrive at once, by what was done to it.
///
/// Not judged: `offer_redeemed` of one-time purchases, because no deed shows whether an offer was used.
struct DeedEvents {
    struct Expected {
        let kind: String
        /// One instant if Apple has a date for it; otherwise from the deed until its notification has come.
        let at: ClosedRange<Int64>
    }

    /// A purchase: all that the truth grants for one transaction.
    private struct Purchase {
        let productId: String
        let from: Int64
        /// The end as paid or extended, without grace.
        var until: Int64?
    }

    private enum Failure { case grace, retry }

    /// Apple sends a notification within 40 seconds.
    static let wordTakes: Int64 = 60_000
    private static let trials: Set = ["trialToPaid", "trialCancelled", "payAsYouGo", "payUpFront", "offerCode"]
    /// These were not ended by the customer.
    private static let endedByOthers: Set = ["productNotForSale", "endedForAnotherReason", "priceIgnored"]

    private(set) var events: [Expected] = []
    private let story: String
    private let hasAccount: Bool
    private var purchasesToCome: ArraySlice<Purchase>
    private var purchase: Purchase?
    private var isOn = true
    private var failure: Failure?
    private var isRefunded = false
    private var hasPlanned = false
    private var hasOfferToCome = false
    /// The current month of a commitment.
    private var month = 0
    private let commitmentProduct: String?

    init(_ subscription: TruthCheck.Subscription) {
        let purchases = Self.purchases(subscription.intervals)
        purchasesToCome = purchases[...]
        story = subscription.deeds.first?.story ?? ""
        hasAccount = subscription.final["appAccountToken"]?.string != nil
        commitmentProduct = story.hasPrefix("commitment") ? purchases.first?.productId : nil
        // What continues under another id was not done to this one.
        if !["subscribed", "joined_family", "bought"].contains(subscription.deeds.first?.event) { begin("started") }
        for deed in subscription.deeds { add(deed) }
    }

    private static func purchases(_ intervals: [TruthCheck.Interval]) -> [Purchase] {
        var places: [String: Int] = [:]
        var purchases: [Purchase] = []
        for interval in intervals where interval.rule != "leeway" {
            if let place = places[interval.transactionId] {
                if interval.rule != "grace" { purchases[place].until = interval.until }
            } else {
                places[interval.transactionId] = purchases.count
                purchases.append(Purchase(productId: interval.productId, from: interval.from, until: interval.until))
            }
        }
        return purchases
    }

    // MARK: Deeds

    private mutating func add(_ deed: TruthCheck.Deed) {
        let told = deed.at...deed.at + Self.wordTakes
        switch deed.event {
        case "subscribed", "joined_family":
            begin("started")
            if Self.trials.contains(story) { tell("offer_redeemed", purchase?.from) }
        case "bought":
            begin("purchased")
            if story == "nonRenewing" { tell("expired", purchase?.until) }
        case "renewed": renew()
        case "recovered", "recovered_in_grace": begin("recovered")
        case "resubscribed":
            begin("resubscribed")
            if story == "winBack" { tell("offer_redeemed", purchase?.from) }
        case "upgraded":
            begin(nil)
            if story == "offerUpgrade" { tell("offer_redeemed", purchase?.from) }
        case "payment_failed": fail()
        case "grace_ended":
            tell(["entered_billing_retry", "access_ended"], at: deed.at...deed.at)
            failure = .retry
        case "retry_ended": tell(["expired"], at: told)
        case "turned_renewal_off":
            turn(on: false, told)
            if failure != nil { tell(["expired"], at: told) }
        case "turned_renewal_on": turn(on: true, told)
        case "expired": expire(told)
        case "refunded":
            tell(["refunded", "access_ended"], at: deed.at...deed.at)
            // No further month is billed.
            if isCommitment { turn(on: false, told) }
            isRefunded = true
        case "refund_reversed":
            tell(["refund_reversed"], at: told)
            isRefunded = false
        case "family_access_revoked": tell(["family_revoked", "access_ended"], at: deed.at...deed.at)
        case "extended": tell(["extended"], at: told)
        case "planned_change":
            tell(["plan_change_pending"], at: told)
            hasOfferToCome = story == "offerDowngrade"
        case "redeemed_offer": hasOfferToCome = true
        case "price_increase_announced", "price_increase_accepted": tell(["price_consent_changed"], at: told)
        // The pass is kept, and ends like any other pass.
        case "refund_declined": if story == "passAsked" { tell("expired", purchase?.until) }
        // These change nothing. `Simulation` has no other deeds; if it gets some, the judge must learn them.
        case "dropped_change", "refunded_earlier_period", "requested_refund", "extension_failed",
            "changed_by_developer", "something_new", "migrated", "mass_extension_finished":
            break
        default: tell(["(the judge does not know the deed \(deed.event))"], at: told)
        }
    }

    /// - Parameter kind: nil: another plan replaces the one before, which is not a renewal.
    private mutating func begin(_ kind: String?) {
        // If there is none, the simulation ended before its notification was sent.
        guard let next = purchasesToCome.popFirst() else { return }
        let before = purchase
        purchase = next
        if let kind { tell(kind, next.from) }
        if before == nil, hasAccount { tell("account_bound", next.from) }
        if let before, before.productId != next.productId { tell("plan_changed", next.from) }
        if isCommitment {
            month = month % 12 + 1
            if month == 1 { tell("commitment_started", next.from) }
        }
        // A cancelled commitment is billed all the same.
        if !isCommitment { isOn = true }
        (failure, isRefunded) = (nil, false)
    }

    private mutating func renew() {
        let ended = purchase?.until
        guard !purchasesToCome.isEmpty else { return }
        if isCommitment, month == 12 { tell("commitment_completed", ended) }
        // Between a refund and the next period there was no access.
        begin(isRefunded ? "resubscribed" : "renewed")
        if hasOfferToCome { tell("offer_redeemed", purchase?.from) }
        hasOfferToCome = false
    }

    private mutating func fail() {
        failure = story.hasPrefix("grace") ? .grace : .retry
        if failure == .grace { return tell("entered_grace", purchase?.until) }
        tell("entered_billing_retry", purchase?.until)
        tell("access_ended", purchase?.until)
    }

    private mutating func expire(_ told: ClosedRange<Int64>) {
        tell("expired", purchase?.until)
        if isCommitment, month == 12 { tell("commitment_completed", purchase?.until) }
        if isOn, !Self.endedByOthers.contains(story) { turn(on: false, told) }
    }

    private mutating func turn(on: Bool, _ told: ClosedRange<Int64>) {
        if on != isOn { tell([on ? "renewal_turned_on" : "renewal_turned_off"], at: told) }
        isOn = on
    }

    private var isCommitment: Bool { commitmentProduct != nil && purchase?.productId == commitmentProduct }

    private mutating func tell(_ kind: String, _ instant: Int64?) {
        if let instant { tell([kind], at: instant...instant) }
    }

    private mutating func tell(_ kinds: [String], at range: ClosedRange<Int64>) {
        events += kinds.map { Expected(kind: $0, at: range) }
    }
}
