// Changes of plan, price, offer and dates.

extension Telling {
    /// An upgrade, or a crossgrade to the same length: a new period begins now, and the rest of the old one is
    /// refunded.
    func upgrade(_ subscription: Subscription, to product: Product, offer: Offer? = nil) throws(Ending) {
        did("upgraded", subscription)
        let start = now
        var old = subscription.current
        old.isUpgraded = true
        subscription.next(id: nextId(), isRenewal: false)
        subscription.offerPeriodsLeft = (offer?.periods ?? 1) - 1
        subscription.begin(product, plan: .upfront, offer: offer, at: start, from: start, startsCycle: true)
        let isOffer = offer != nil
        try tell(isOffer ? "OFFER_REDEEMED" : "DID_CHANGE_RENEWAL_PREF", "UPGRADE", of: subscription, status: 1)
        subscription.cut(at: start)
        subscription.giveCurrent()
        subscription.sayCurrent()
        // Apple reports the refund only sometimes.
        guard random.chance(perMille: 500) else { return }
        let length = old.expiresDate.map { $0 - old.purchaseDate } ?? 1
        let left = old.expiresDate.map { max(0, $0 - start) } ?? 0
        old.revocation = Revocation(date: start, kind: .prorated, reason: 0, percentage: Int(left * 100_000 / length))
        try tell("REFUND", of: subscription, status: 1, transaction: old)
    }

    /// A downgrade, or a crossgrade to another length: it takes effect with the next period, or with the next
    /// commitment.
    func plan(_ subscription: Subscription, for product: Product, offer: Offer? = nil) throws(Ending) {
        did("planned_change", subscription)
        if subscription.isCommitment {
            subscription.renewal.commitment?.product = product
            subscription.renewal.commitment?.plan = .upfront
            subscription.renewal.commitment?.price = customer.storefront.price(product.price)
        } else {
            subscription.renewal.nextProduct = product
            subscription.renewal.offer = offer
            subscription.offerPeriodsLeft = offer?.periods ?? 0
            subscription.priceRenewal()
        }
        try tell(
            offer == nil ? "DID_CHANGE_RENEWAL_PREF" : "OFFER_REDEEMED", "DOWNGRADE", of: subscription, status: 1)
    }

    /// Returns to the current product before the change takes effect.
    func dropPlan(_ subscription: Subscription) throws(Ending) {
        did("dropped_change", subscription)
        subscription.renewal.nextProduct = subscription.current.product
        subscription.priceRenewal()
        try tell("DID_CHANGE_RENEWAL_PREF", of: subscription, status: 1)
    }

    /// An active subscriber redeems an offer for the next periods.
    func redeem(_ offer: Offer, _ subscription: Subscription) throws(Ending) {
        did("redeemed_offer", subscription)
        subscription.renewal.offer = offer
        subscription.offerPeriodsLeft = offer.periods
        subscription.priceRenewal()
        try tell("OFFER_REDEEMED", of: subscription, status: 1)
    }

    /// A higher price is announced.
    func raisePrice(_ subscription: Subscription, needsConsent: Bool) throws(Ending) {
        did("price_increase_announced", subscription)
        // An increase of more than half needs consent.
        subscription.pricePerMille = needsConsent ? 1750 : 1100
        subscription.renewal.priceIncreaseStatus = needsConsent ? 0 : 1
        subscription.priceRenewal()
        try tell("PRICE_INCREASE", needsConsent ? "PENDING" : "ACCEPTED", of: subscription, status: 1)
    }

    func acceptPrice(_ subscription: Subscription) throws(Ending) {
        did("price_increase_accepted", subscription)
        subscription.renewal.priceIncreaseStatus = 1
        try tell("PRICE_INCREASE", "ACCEPTED", of: subscription, status: 1)
    }

    /// The developer gives free days.
    func extend(_ subscription: Subscription, byDays days: Int64) throws(Ending) {
        did("extended", subscription)
        var extended = subscription.current
        let length = pace == .production ? days * day : days * 10 * second
        let end = subscription.due + length
        extended.expiresDate = end
        subscription.renewal.renewalDate = end
        try tell("RENEWAL_EXTENDED", of: subscription, status: 1, transaction: extended)
        subscription.extend(to: end)
    }
}
