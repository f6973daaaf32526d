// The stories of subscriptions that are paid upfront.

extension Telling {
    var products: Products { customer.app.products }

    func tellStory() throws(Ending) {
        switch story {
        case .steady, .cancelled, .cancelledAndSaved, .resubscribed, .resubscribedLate, .productNotForSale,
            .endedForAnotherReason, .priceAccepted, .priceIgnored, .priceWithoutConsent, .priceCancelled, .extended,
            .massExtension, .extensionFailed:
            try tellOfRenewals()
        case .trialToPaid, .trialCancelled, .payAsYouGo, .payUpFront, .promotionalOffer, .offerCode, .winBack,
            .offerUpgrade, .offerDowngrade:
            try tellOfOffers()
        case .graceRecovered, .graceRecoveredLate, .graceLost, .graceCancelled, .retryRecovered, .retryLost,
            .retryCancelled:
            try tellOfFailures()
        case .upgraded, .downgraded, .crossgraded, .crossgradedLater, .changeDropped:
            try tellOfChanges()
        case .refunded, .refundedProrated, .refundReversed, .refundDeclined, .refundOfEarlierPeriod,
            .refundedThenRenewed, .familyMemberLeft, .familyPurchaserRefunded:
            try tellOfRefunds()
        case .commitmentRenewed, .commitmentCancelled, .commitmentRecovered, .commitmentLost,
            .commitmentRefundOfEarlierPeriod, .commitmentRefunded, .commitmentDowngraded, .commitmentUpgraded:
            try tellOfCommitments()
        case .consumable, .consumableRefunded, .nonConsumable, .nonConsumableRefunded, .nonConsumableShared,
            .nonRenewing, .metadataUpdated, .migrated, .priceChanged, .consentRescinded, .externalPurchase, .test,
            .unknownType:
            try tellOfOthers()
        case .subscriptionAsked, .subscriptionAskedTwice, .familyAsked, .commitmentAsked, .advancedCommerceAsked,
            .consumableAsked, .consumableAskedTwice, .passAsked, .lifetimeAsked:
            try tellOfRefundRequests()
        }
    }

    /// A plain subscription in its first month or a few months later.
    private func begin(_ product: Product? = nil, renewals: ClosedRange<Int64> = 0...4) throws(Ending) -> Subscription {
        let subscription = try subscribe(to: product ?? products.basicMonth)
        try renew(subscription, times: renewals)
        return subscription
    }

    private func tellOfRenewals() throws(Ending) {
        let some = [products.basicWeek, products.basicMonth, products.plusMonth, products.premiumMonth]
        // In other stories too much would happen years later, after the end of most simulations.
        let years = story == .steady ? [products.plusYear] : []
        let subscription = try begin(random.choice(of: some + years))
        switch story {
        case .cancelled:
            try pass(subscription, perMille: 100...800)
            try turnOff(subscription)
            return try lapse(subscription)
        case .cancelledAndSaved:
            try pass(subscription, perMille: 100...400)
            try turnOff(subscription)
            try pass(subscription, perMille: 500...800)
            try turnOn(subscription)
        case .resubscribed, .resubscribedLate:
            try pass(subscription, perMille: 100...800)
            try turnOff(subscription)
            try lapse(subscription)
            let gap = pace.longGap / 100 * random.number(in: story == .resubscribed ? 2...90 : 101...150)
            try advance(to: now + gap)
            try resubscribe(subscription, to: random.choice(of: some))
        case .productNotForSale:
            return try lapse(subscription, .unavailable, subtype: "PRODUCT_NOT_FOR_SALE", reason: "unavailable")
        case .endedForAnotherReason:
            return try lapse(subscription, .other, subtype: nil, reason: "other")
        case .priceAccepted, .priceIgnored, .priceWithoutConsent, .priceCancelled:
            try pass(subscription, perMille: 100...400)
            try raisePrice(subscription, needsConsent: story != .priceWithoutConsent)
            if story == .priceIgnored {
                return try lapse(subscription, .price, subtype: "PRICE_INCREASE", reason: "price")
            }
            try pass(subscription, perMille: 500...800)
            if story == .priceCancelled {
                try turnOff(subscription, subtype: nil)
                return try lapse(subscription)
            }
            if story == .priceAccepted { try acceptPrice(subscription) }
            try renew(subscription)
        case .extended, .massExtension:
            try pass(subscription, perMille: 100...400)
            try extend(subscription, byDays: random.number(in: 3...14))
            if story == .massExtension { try tellSummary(of: subscription) }
        case .extensionFailed:
            try pass(subscription, perMille: 100...400)
            did("extension_failed", subscription)
            try tell("RENEWAL_EXTENSION", "FAILURE", of: subscription, status: 1)
        default: break
        }
        try liveOn(subscription)
    }

    private func tellOfOffers() throws(Ending) {
        let basic = products.basicMonth
        switch story {
        case .trialToPaid, .trialCancelled:
            let trial = Offer(kind: .introductory, discount: .freeTrial, identifier: nil, length: .week)
            let subscription = try subscribe(to: basic, offer: trial)
            if story == .trialToPaid { return try liveOn(subscription) }
            try pass(subscription, perMille: 100...800)
            try turnOff(subscription)
            try lapse(subscription)
        case .payAsYouGo:
            let offer = Offer(
                kind: .introductory, discount: .payAsYouGo, identifier: nil, length: .month, periods: 3)
            try liveOn(try subscribe(to: basic, offer: offer))
        case .payUpFront:
            let offer = Offer(kind: .introductory, discount: .payUpFront, identifier: nil, length: .quarter)
            try liveOn(try subscribe(to: basic, offer: offer))
        case .offerCode:
            // Redeemed in the App Store before the app is installed: there is no token.
            let offer = Offer(kind: .code, discount: .freeTrial, identifier: "SPRING", length: .month)
            try liveOn(try subscribe(to: basic, offer: offer, withToken: false))
        case .winBack:
            let subscription = try begin()
            try pass(subscription, perMille: 100...800)
            try turnOff(subscription)
            subscription.renewal.winBackOffers = ["comeback.half", "comeback.month"]
            try lapse(subscription)
            try advance(to: now + pace.longGap / 100 * random.number(in: 20...150))
            let offer = Offer(
                kind: .winBack, discount: .payAsYouGo, identifier: "comeback.half", length: .month, periods: 2)
            try resubscribe(subscription, to: basic, offer: offer)
            try liveOn(subscription)
        default:
            let subscription = try begin(story == .offerDowngrade ? products.plusMonth : basic)
            try pass(subscription, perMille: 100...700)
            let offer = Offer(
                kind: .promotional, discount: .payAsYouGo, identifier: "loyal.half", length: .month, periods: 2)
            switch story {
            case .offerUpgrade: try upgrade(subscription, to: products.premiumMonth, offer: offer)
            case .offerDowngrade: try plan(subscription, for: basic, offer: offer)
            default: try redeem(offer, subscription)
            }
            try liveOn(subscription)
        }
    }

    private func tellOfFailures() throws(Ending) {
        let hasGrace = story.rawValue.hasPrefix("grace")
        let subscription = try begin(random.choice(of: [products.basicMonth, products.plusMonth, products.basicWeek]))
        try fail(subscription, withGrace: hasGrace)
        switch story {
        case .graceCancelled, .retryCancelled:
            try passRetry(subscription, perMille: 200...700)
            return try cancelWhileFailing(subscription)
        case .graceLost, .retryLost:
            if hasGrace { try exhaustGrace(subscription) }
            return try giveUp(subscription)
        default: break
        }
        if story == .graceRecoveredLate { try exhaustGrace(subscription) }
        try passRetry(subscription, perMille: 50...700)
        try recover(subscription)
        try liveOn(subscription)
    }

    private func tellOfChanges() throws(Ending) {
        let subscription = try begin(story == .downgraded ? products.premiumMonth : products.plusMonth)
        try pass(subscription, perMille: 100...700)
        switch story {
        case .upgraded: try upgrade(subscription, to: products.premiumMonth)
        // Equal level and equal length: it takes effect at once and is reported as an upgrade.
        case .crossgraded:
            try upgrade(subscription, to: products.audioMonth)
        case .downgraded: try plan(subscription, for: products.basicMonth)
        case .crossgradedLater: try plan(subscription, for: products.plusYear)
        default:
            try plan(subscription, for: products.basicMonth)
            try pass(subscription, perMille: 750...900)
            try dropPlan(subscription)
        }
        try liveOn(subscription)
    }

    private func tellOfRefunds() throws(Ending) {
        if story == .familyMemberLeft || story == .familyPurchaserRefunded { return try tellOfFamilies() }
        let subscription = try begin(renewals: story == .refundOfEarlierPeriod ? 1...4 : 0...4)
        try pass(subscription, perMille: 100...400)
        switch story {
        case .refundOfEarlierPeriod:
            try requestRefund(subscription, of: subscription.previous)
            try pass(subscription, perMille: 450...700)
            try refundPrevious(subscription)
        case .refundDeclined:
            try requestRefund(subscription)
            try pass(subscription, perMille: 450...700)
            try declineRefund(subscription)
        default:
            try requestRefund(subscription)
            try pass(subscription, perMille: 450...600)
            try refund(subscription, story == .refundedProrated ? .prorated : .full)
            if story == .refundedThenRenewed { break }
            did("turned_renewal_off", subscription)
            subscription.renewal.isOn = false
            try tell("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", of: subscription, status: 5)
            guard story == .refundReversed else { return }
            try pass(subscription, perMille: 700...900)
            try reverseRefund(subscription)
            return try lapse(subscription)
        }
        try liveOn(subscription)
    }

    private func tellOfFamilies() throws(Ending) {
        let purchaser = try subscribe(to: products.premiumMonth)
        try pass(purchaser, perMille: 50...200)
        let first = try share(purchaser)
        let second = try share(purchaser)
        for _ in 0..<random.number(in: 0...2) { for one in [purchaser, first, second] { try renew(one) } }
        try pass(purchaser, perMille: 300...500)
        if story == .familyPurchaserRefunded {
            try requestRefund(purchaser)
            try refund(purchaser)
            let reason = purchaser.current.revocation?.reason ?? 0
            try revokeShare(first, reason: reason)
            return try revokeShare(second, reason: reason)
        }
        try revokeShare(first)
        for _ in 0..<random.number(in: 1...3) { for one in [purchaser, second] { try renew(one) } }
        try pass(purchaser, perMille: 100...800)
        for one in [purchaser, second] { try turnOff(one) }
        for one in [purchaser, second] { try lapse(one) }
    }

    private func tellSummary(of subscription: Subscription) throws(Ending) {
        did("mass_extension_finished")
        try pause()
        try notify(
            "RENEWAL_EXTENSION", "SUMMARY", of: customer,
            .extensionSummary(
                request: random.uuid(), productId: subscription.current.product.id,
                succeeded: Int(random.number(in: 1...20_000)), failed: Int(random.number(in: 0...5))))
    }
}
