// The stories of commitments, of non-renewing purchases, and of all other notifications of Apple.

extension Telling {
    func tellOfCommitments() throws(Ending) {
        let subscription = try subscribe(to: products.plusYear, plan: .monthly)
        switch story {
        case .commitmentCancelled:
            try renew(subscription, until: 4)
            try pass(subscription, perMille: 200...800)
            try turnOff(subscription)
        case .commitmentRecovered:
            try renew(subscription, times: 1...5)
            try fail(subscription, withGrace: false)
            try passRetry(subscription, perMille: 50...800)
            try recover(subscription)
        case .commitmentLost:
            try renew(subscription, times: 1...5)
            try fail(subscription, withGrace: false)
            return try giveUp(subscription)
        case .commitmentRefundOfEarlierPeriod:
            try renew(subscription, times: 1...5)
            try pass(subscription, perMille: 100...400)
            try requestRefund(subscription, of: subscription.previous)
            try pass(subscription, perMille: 500...800)
            try refundPrevious(subscription)
        case .commitmentRefunded:
            try renew(subscription, times: 0...5)
            try pass(subscription, perMille: 100...400)
            try requestRefund(subscription)
            try pass(subscription, perMille: 500...800)
            return try refund(subscription)
        case .commitmentUpgraded:
            try renew(subscription, times: 1...5)
            try pass(subscription, perMille: 200...800)
            try upgrade(subscription, to: products.premiumMonth)
        case .commitmentDowngraded:
            try renew(subscription, times: 1...5)
            try pass(subscription, perMille: 200...800)
            try plan(subscription, for: products.basicMonth)
            try renew(subscription, until: Commitment.periods)
            try renew(subscription)
        default:
            // A whole commitment and the one after it.
            try renew(subscription, until: Commitment.periods)
            try renew(subscription)
        }
        try liveOn(subscription)
    }

    private func renew(_ subscription: Subscription, until period: Int) throws(Ending) {
        while let current = subscription.current.commitment?.period, current < period { try renew(subscription) }
    }

    func tellOfOthers() throws(Ending) {
        switch story {
        case .consumable, .consumableRefunded:
            let purchase = try buy(products.credits, quantity: Int(random.number(in: 1...10)))
            guard story == .consumableRefunded else { return }
            try sleep()
            try requestRefund(purchase)
            try sleep()
            try refund(purchase, random.chance(perMille: 500) ? .full : .prorated)
        case .nonConsumable, .nonConsumableRefunded:
            let purchase = try buy(products.lifetime)
            guard story == .nonConsumableRefunded else { return }
            try sleep()
            try refund(purchase)
            guard random.chance(perMille: 300) else { return }
            try sleep()
            try reverseRefund(purchase)
        case .nonConsumableShared:
            _ = try buy(products.lifetime)
            try pause()
            let share = try buy(products.lifetime, as: familyMember())
            try sleep()
            try revokeShare(share)
        case .nonRenewing:
            let offer = Offer(kind: .code, discount: .oneTime, identifier: "PASS", length: nil)
            let purchase = try buy(products.pass, offer: random.chance(perMille: 300) ? offer : nil)
            try advance(to: passEnd(of: purchase))
            purchase.say("expired")
        case .metadataUpdated: try tellOfAdvancedCommerce("METADATA_UPDATE")
        case .priceChanged: try tellOfAdvancedCommerce("PRICE_CHANGE")
        case .migrated: try tellOfMigration()
        case .unknownType:
            let subscription = try subscribe(to: products.basicMonth)
            try pass(subscription, perMille: 200...800)
            did("something_new", subscription)
            try tell("SUBSCRIPTION_BLESSED", "TWICE", of: subscription, status: 1)
            try liveOn(subscription)
        default: try tellOfNoPurchase()
        }
    }

    /// Waits some days, or some seconds in sandbox.
    private func sleep() throws(Ending) {
        let days = random.number(in: 1...10)
        try advance(to: now + (pace == .production ? days * day : days * 10 * second))
    }

    private func tellOfAdvancedCommerce(_ type: String) throws(Ending) {
        let subscription = try subscribe(to: products.basicMonth)
        try pass(subscription, perMille: 200...800)
        did("changed_by_developer", subscription)
        subscription.current.isAdvancedCommerce = true
        subscription.renewal.isAdvancedCommerce = true
        try tell(type, of: subscription, status: 1)
        try liveOn(subscription)
    }

    /// The subscription continues under another number. Apple does not say what happens to the old one, and neither
    /// does the truth.
    private func tellOfMigration() throws(Ending) {
        let old = try subscribe(to: products.basicMonth)
        try pass(old, perMille: 200...800)
        did("migrated", old)
        let start = now
        let new = Subscription(
            products.basicMonth, id: nextId(), plan: .upfront, offer: nil, customer: customer,
            accountToken: old.accountToken, now: start)
        new.current.previousOriginal = old.current.original
        new.current.isAdvancedCommerce = true
        new.renewal.isAdvancedCommerce = true
        try tell("MIGRATION", of: new, status: 1)
        old.cut(at: start)
        old.say(nil)
        subscriptions.append(new)
        new.giveCurrent()
        new.sayCurrent()
        try liveOn(new)
    }

    private func tellOfNoPurchase() throws(Ending) {
        switch story {
        case .consentRescinded:
            let downloaded = now
            try sleep()
            did("consent_rescinded")
            try notify("RESCIND_CONSENT", of: customer, .appConsent(originalPurchaseDate: downloaded))
        case .externalPurchase:
            let token = random.uuid()
            let created = now
            for subtype in ["CREATED", "ACTIVE_TOKEN_REMINDER", "UNREPORTED"] {
                did("external_purchase_token")
                try pause()
                try notify(
                    "EXTERNAL_PURCHASE_TOKEN", subtype, of: customer,
                    .externalPurchaseToken(id: token, created: created))
                try sleep()
            }
        default:
            did("test_requested")
            try pause()
            try notify("TEST", of: customer, .data(nil, nil, status: nil, requestReason: nil))
        }
    }
}
