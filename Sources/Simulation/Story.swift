// The lives that subscribers of the make-believe store lead.

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
    // All the rest that Apple tells
    case metadataUpdated, migrated, priceChanged
    case consentRescinded, externalPurchase, test, unknownType
    // Refund requests that Apple decides by what the developer answers
    case subscriptionAsked, subscriptionAskedTwice, familyAsked, commitmentAsked, advancedCommerceAsked
    case consumableAsked, consumableAskedTwice, passAsked, lifetimeAsked

    var isCommitment: Bool { rawValue.hasPrefix("commitment") }

    /// Of one subscriber in a thousand or so: steady customers are many, oddities few. Commitments are more than in a real
    /// store, because each of their stories is another rule.
    public var defaultWeight: Int {
        switch self {
        case .steady: 240
        case .trialToPaid, .cancelled: 80
        case .trialCancelled, .graceRecovered, .retryRecovered, .retryLost, .resubscribed: 30
        case .commitmentRenewed, .commitmentCancelled, .refunded, .upgraded, .downgraded, .consumable: 20
        case .test, .unknownType, .externalPurchase, .consentRescinded, .massExtension, .metadataUpdated, .migrated,
            .priceChanged:
            3
        // Chosen apart: see `Simulation.Configuration.refundsPerMille`.
        case _ where refundWeight > 0: 0
        default: 10
        }
    }

    /// How often the story is chosen among those about refund requests; 0: it is none of them.
    var refundWeight: Int {
        switch self {
        case .subscriptionAsked, .consumableAsked: 30
        case .subscriptionAskedTwice, .consumableAskedTwice, .familyAsked, .commitmentAsked, .passAsked: 10
        case .advancedCommerceAsked, .lifetimeAsked: 5
        default: 0
        }
    }
}
