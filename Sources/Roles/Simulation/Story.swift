// The lives of the subscribers of the simulated store.

/// What happens to one subscriber, from the first notification to the last.
public enum Story: String, Sendable, CaseIterable {
    // Upfront plans
    case steady, cancelled, cancelledAndSaved, resubscribed, resubscribedLate
    case trialToPaid, trialCancelled, payAsYouGo, payUpFront
    case promotionalOffer, offerCode, winBack, offerUpgrade, offerDowngrade
    case graceRecovered, graceRecoveredLate, graceLost, graceCancelled
    case retryRecovered, retryLost, retryCancelled
    case upgraded, downgraded, crossgraded, crossgradedLater, changeDropped
    case priceAccepted, priceIgnored, priceWithoutConsent, priceCancelled
    case productNotForSale, endedForAnotherReason
    case extended, massExtension, extensionFailed
    // Refunds
    case refunded, refundedProrated, refundReversed, refundDeclined, refundOfEarlierPeriod, refundedThenRenewed
    // Families
    case familyMemberLeft, familyPurchaserRefunded
    // Commitments
    case commitmentRenewed, commitmentCancelled, commitmentRecovered, commitmentLost
    case commitmentRefundOfEarlierPeriod, commitmentRefunded, commitmentDowngraded, commitmentUpgraded
    // One-time purchases
    case consumable, consumableRefunded, nonConsumable, nonConsumableRefunded, nonConsumableShared, nonRenewing
    // Other notifications of Apple
    case metadataUpdated, migrated, priceChanged
    case consentRescinded, externalPurchase, test, unknownType
    // Refund requests that Apple decides based on the developer's answer
    case subscriptionAsked, subscriptionAskedTwice, familyAsked, commitmentAsked, advancedCommerceAsked
    case consumableAsked, consumableAskedTwice, passAsked, lifetimeAsked

    var isCommitment: Bool { rawValue.hasPrefix("commitment") }

    /// The weight among about a thousand subscribers: steady customers are frequent, rare cases are few. Commitments
    /// are more frequent than in a real store, because each of their stories follows another rule.
    public var defaultWeight: Int {
        switch self {
        case .steady: 240
        case .trialToPaid, .cancelled: 80
        case .trialCancelled, .graceRecovered, .retryRecovered, .retryLost, .resubscribed: 30
        case .commitmentRenewed, .commitmentCancelled, .refunded, .upgraded, .downgraded, .consumable: 20
        case .test, .unknownType, .externalPurchase, .consentRescinded, .massExtension, .metadataUpdated, .migrated,
            .priceChanged:
            3
        // Chosen separately: see `Simulation.Configuration.refundsPerMille`.
        case _ where refundWeight > 0: 0
        default: 10
        }
    }

    /// The weight among the stories about refund requests; 0: it is not one of them.
    var refundWeight: Int {
        switch self {
        case .subscriptionAsked, .consumableAsked: 30
        case .subscriptionAskedTwice, .consumableAskedTwice, .familyAsked, .commitmentAsked, .passAsked: 10
        case .advancedCommerceAsked, .lifetimeAsked: 5
        default: 0
        }
    }
}
