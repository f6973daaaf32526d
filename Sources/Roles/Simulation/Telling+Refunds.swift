// Refunds, family sharing and non-renewing purchases.

extension Telling {
    static let requestReasons = [
        "UNINTENDED_PURCHASE", "FULFILLMENT_ISSUE", "UNSATISFIED_WITH_PURCHASE", "LEGAL", "OTHER",
    ]

    /// The customer asks Apple for a refund of one purchase.
    func requestRefund(_ subscription: Subscription, of transaction: Transaction? = nil) throws(Ending) {
        did("requested_refund", subscription)
        let reason = random.choice(of: Self.requestReasons)
        try send(
            "CONSUMPTION_REQUEST", subscription, status: 1, transaction: transaction ?? subscription.current,
            requestReason: reason)
    }

    func declineRefund(_ subscription: Subscription, of transaction: Transaction? = nil) throws(Ending) {
        did("refund_declined", subscription)
        try send("REFUND_DECLINED", subscription, status: 1, transaction: transaction ?? subscription.current)
    }

    /// The current period is refunded and ends now.
    func refund(_ subscription: Subscription, _ kind: Revocation.Kind = .full) throws(Ending) {
        did("refunded", subscription)
        let percentage = kind == .full ? 100_000 : Int(random.number(in: 10...90)) * 1000
        subscription.current.revocation = Revocation(
            date: now, kind: kind, reason: Int(random.number(in: 0...1)), percentage: percentage)
        let date = now
        if subscription.isCommitment {
            // No more months are billed.
            subscription.renewal.isOn = false
            subscription.renewal.commitment?.isOn = false
        }
        try send("REFUND", subscription, status: 5, transaction: subscription.current)
        subscription.revoke(subscription.current, at: date)
        subscription.say("revoked", "refund")
    }

    /// The previous period is refunded: only that one counts as never paid.
    func refundPrevious(_ subscription: Subscription) throws(Ending) {
        guard var previous = subscription.previous else { preconditionFailure("there was no period before") }
        did("refunded_earlier_period", subscription)
        previous.revocation = Revocation(date: now, kind: .full, reason: 1, percentage: 100_000)
        let date = now
        try send("REFUND", subscription, status: 1, transaction: previous)
        subscription.revoke(previous, at: date)
    }

    /// The refund of the current period is reversed after a dispute.
    func reverseRefund(_ subscription: Subscription) throws(Ending) {
        did("refund_reversed", subscription)
        subscription.current.revocation = nil
        try send("REFUND_REVERSED", subscription, status: 1, transaction: subscription.current)
        subscription.reinstate(subscription.current, at: now)
        subscription.say(subscription.current.expiresDate == nil ? "owned" : "active")
    }

    /// Works for a subscription and for a non-renewing purchase, which has no renewal info and no status.
    private func send(
        _ type: String, _ subscription: Subscription, status: Int, transaction: Transaction,
        requestReason: String? = nil
    ) throws(Ending) {
        guard transaction.expiresDate == nil else {
            try tell(type, of: subscription, status: status, transaction: transaction, requestReason: requestReason)
            return
        }
        try pause()
        try notify(
            type, of: subscription.customer, .data(transaction, nil, status: nil, requestReason: requestReason))
    }

    // MARK: Families

    /// Somebody who may use what the customer pays for.
    func familyMember() -> Customer {
        Customer(
            app: customer.app, pace: pace, storefront: customer.storefront,
            appTransactionId: nextId() - Self.firstId + Self.firstAppTransactionId,
            isFamilyMember: true, namesApp: customer.namesApp)
    }

    /// A member loses a shared purchase.
    /// - Parameter reason: 0, or the reason of the purchaser's refund.
    func revokeShare(_ member: Subscription, reason: Int = 0) throws(Ending) {
        did("family_access_revoked", member)
        let date = now
        member.current.revocation = Revocation(date: date, kind: .family, reason: reason, percentage: nil)
        try send("REVOKE", member, status: 5, transaction: member.current)
        member.revoke(member.current, at: date)
        member.say("revoked", "family")
    }

    // MARK: One-time purchases

    func buy(
        _ product: Product, quantity: Int = 1, offer: Offer? = nil, as member: Customer? = nil
    ) throws(Ending) -> Subscription {
        let purchase = Subscription(
            oneTime: product, id: nextId(), quantity: quantity, offer: offer, customer: member ?? customer,
            accountToken: member == nil && setsToken ? accountToken : nil, now: now)
        did("bought", purchase)
        try pause()
        try notify(
            "ONE_TIME_CHARGE", of: purchase.customer, .data(purchase.current, nil, status: nil, requestReason: nil))
        subscriptions.append(purchase)
        if product.kind == .nonRenewing {
            purchase.give(from: purchase.current.purchaseDate, until: passEnd(of: purchase), .pass)
            purchase.say("active")
        } else {
            purchase.give(from: purchase.current.purchaseDate, until: nil, member == nil ? .owned : .family)
            purchase.say("owned")
        }
        return purchase
    }

    /// According to the apps file: Apple knows no end, not even in sandbox.
    func passEnd(of purchase: Subscription) -> Int64 { purchase.current.purchaseDate + Products.passDays * day }
}
