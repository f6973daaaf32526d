// Everything that is known about a request when it is decided.

internal import JSON
internal import Notices
internal import Records

/// The basis of a decision, before any value is assumed. Another policy can be evaluated on it later.
struct KnownFacts: Sendable, Equatable {
    var purchase: Purchase
    var reason: Text?
    var usage: Usage
    /// Only for a non-renewing purchase whose length is known.
    var elapsedShare: Int64?
    var daysSincePurchase: Int64
    var refundsRequested: Int64
    var refundsGranted: Int64
    /// The log contains a free trial of the subscription.
    var hadFreeTrial: Bool
}

/// The result of a policy for these facts.
struct PolicyVerdict: Sendable, Equatable {
    var rule: String?
    var isWithheld: Bool
    var deliveryStatus: DeliveryStatus
    var sampleContentProvided: Bool
    /// The value that is sent.
    var consumptionPercentage: Int64?
    var refundPreference: RefundPreference?
    /// The preference is a partial refund, and the percentage that Apple requires for it is unknown.
    var lacksPercentage: Bool
    /// The values that the policy's rules tested.
    var tested: RefundFacts
    /// The names of the values that were assumed.
    var assumed: [String]
}

extension KnownFacts {
    func verdict(of policy: RefundPolicy?) -> PolicyVerdict {
        var assumed: [String] = []
        let delivery = usage.deliveryStatus ?? policy?.deliveryStatus ?? .delivered
        if usage.deliveryStatus == nil { assumed.append("deliveryStatus") }
        let sample = usage.sampleContentProvided ?? policy?.sampleContentProvided ?? hadFreeTrial
        if usage.sampleContentProvided == nil { assumed.append("sampleContentProvided") }
        let percentage = usage.consumptionPercentage ?? elapsedShare
        if usage.consumptionPercentage == nil, percentage != nil { assumed.append("consumptionPercentage") }
        let tested = tested(delivery, percentage)

        let rule = policy?.rule(for: tested)
        var preference: RefundPreference?
        var isWithheld = false
        switch rule?.answer {
        case .withhold?: isWithheld = true
        case .prefer(let preferred)?: preference = preferred ?? usage.refundPreference
        // If a policy exists but no rule matches, no preference is sent.
        case nil: preference = policy == nil ? usage.refundPreference : nil
        }
        let sent = purchase.isAutoRenewable || delivery != .delivered ? nil : percentage
        // For renewing purchases Apple computes the share itself.
        let lacksPercentage =
            preference == .grantProrated && !purchase.isAutoRenewable && !(1..<100_000).contains(sent ?? 0)
        return PolicyVerdict(
            rule: rule?.name, isWithheld: isWithheld, deliveryStatus: delivery, sampleContentProvided: sample,
            consumptionPercentage: sent, refundPreference: lacksPercentage ? nil : preference,
            lacksPercentage: lacksPercentage, tested: tested, assumed: assumed)
    }

    private func tested(_ delivery: DeliveryStatus, _ percentage: Int64?) -> RefundFacts {
        var facts = RefundFacts()
        facts.productId = purchase.productId
        facts.productType = purchase.productType
        facts.bundleId = purchase.bundleId
        facts.storefront = purchase.storefront
        facts.reason = reason
        facts.billingPlan = purchase.billingPlan ?? (purchase.isAutoRenewable ? .billedUpfront : nil)
        facts.offerType = purchase.offerWord
        facts.deliveryStatus = Text(delivery.rawValue)
        facts.commitmentPeriod = purchase.commitmentPeriod
        facts.consumptionPercentage = percentage
        facts.daysSincePurchase = daysSincePurchase
        facts.refundsRequested = refundsRequested
        facts.refundsGranted = refundsGranted
        return facts
    }
}
