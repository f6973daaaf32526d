// All that is known of a request when it is decided.

internal import JSON
internal import Notices

/// What a decision rests on, before anything is assumed. Another policy can be asked about it later.
struct KnownFacts: Sendable, Equatable {
    var purchase: Purchase
    var reason: Text?
    var usage: Usage
    /// Of a purchase without renewal whose length is known.
    var elapsedShare: Int64?
    var daysSincePurchase: Int64
    var refundsRequested: Int64
    var refundsGranted: Int64
    /// A free trial of the subscription is in the log.
    var hadFreeTrial: Bool
}

/// What a policy makes of them.
struct PolicyVerdict: Sendable, Equatable {
    var rule: String?
    var isWithheld: Bool
    var deliveryStatus: DeliveryStatus
    var sampleContentProvided: Bool
    /// As it is sent.
    var consumptionPercentage: Int64?
    var refundPreference: RefundPreference?
    /// A part of the money cannot be asked for without saying how much was used.
    var lacksPercentage: Bool
    /// What the policy's tests saw.
    var tested: RefundFacts
    /// Names of what was filled in.
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
        // A policy none of whose rules fits has no preference.
        case nil: preference = policy == nil ? usage.refundPreference : nil
        }
        let sent = purchase.isAutoRenewable || delivery != .delivered ? nil : percentage
        // Of what renews Apple computes the part itself.
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
        facts.billingPlan = purchase.billingPlan ?? (purchase.isAutoRenewable ? "BILLED_UPFRONT" : nil)
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
