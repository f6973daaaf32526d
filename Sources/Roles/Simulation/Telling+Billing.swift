// Purchases, renewals and failures to renew.

extension Telling {
    /// Sandbox renews this many times and then stops.
    static let limitSandboxRenewals = 12

    // MARK: Purchases

    /// The first purchase in the group, now.
    func subscribe(
        to product: Product, plan: Plan = .upfront, offer: Offer? = nil, withToken: Bool = true
    ) throws(Ending) -> Subscription {
        let subscription = Subscription(
            product, id: nextId(), plan: plan, offer: offer, customer: customer,
            accountToken: setsToken && withToken ? accountToken : nil, now: now)
        if plan == .monthly { subscription.commit(to: 1) }
        did("subscribed", subscription)
        try start(subscription)
        return subscription
    }

    /// Another family member may use what the purchaser pays for.
    func share(_ purchaser: Subscription) throws(Ending) -> Subscription {
        // No app can set a token for a shared purchase.
        let member = Subscription(
            purchaser.current.product, id: nextId(), plan: .upfront, offer: nil, customer: familyMember(),
            accountToken: nil, now: now)
        member.align(with: purchaser)
        did("joined_family", member)
        try start(member)
        return member
    }

    private func start(_ subscription: Subscription) throws(Ending) {
        try tell("SUBSCRIBED", "INITIAL_BUY", of: subscription, status: 1)
        subscriptions.append(subscription)
        subscription.giveCurrent()
        subscription.sayCurrent()
    }

    /// The customer returns now, after the end, under the same number.
    func resubscribe(_ subscription: Subscription, to product: Product, offer: Offer? = nil) throws(Ending) {
        did("resubscribed", subscription)
        subscription.next(id: nextId(), isRenewal: false)
        subscription.offerPeriodsLeft = (offer?.periods ?? 1) - 1
        subscription.begin(product, plan: .upfront, offer: offer, at: now, from: now, startsCycle: true)
        try tell("SUBSCRIBED", "RESUBSCRIBE", of: subscription, status: 1)
        subscription.giveCurrent()
        subscription.sayCurrent()
    }

    // MARK: Renewals

    /// The period ends and the next one is paid: usually up to a day early, sometimes seconds late.
    func renew(_ subscription: Subscription) throws(Ending) {
        let due = subscription.due
        let lead = random.number(in: pace.lead)
        let isEarly = random.chance(perMille: 800)
        try advance(to: isEarly ? due - lead : due + random.number(in: pace.delay))
        // If charged early, the period begins on time. If charged late, it begins on time or when it is charged, which
        // leaves a tiny gap.
        let start = now > due && random.chance(perMille: 500) ? now : due
        did("renewed", subscription)
        beginNext(of: subscription, at: start, from: due)
        try tell("DID_RENEW", of: subscription, status: 1)
        if start > due { subscription.bridge(from: due, until: start) }
        subscription.giveCurrent()
        try advance(to: start)
        subscription.sayCurrent()
    }

    func renew(_ subscription: Subscription, times: ClosedRange<Int64>) throws(Ending) {
        for _ in 0..<random.number(in: times) { try renew(subscription) }
    }

    /// Begins the next period as agreed; after the last month of a commitment, as the commitment's renewal says.
    private func beginNext(of subscription: Subscription, at start: Int64, from scheduled: Int64) {
        let renewal = subscription.renewal
        let offer = renewal.offer
        if subscription.offerPeriodsLeft > 0 { subscription.offerPeriodsLeft -= 1 }
        let commitment = subscription.current.commitment
        subscription.renewals += 1
        subscription.next(id: nextId(), isRenewal: true)
        guard var commitment, let after = renewal.commitment else {
            return subscription.begin(renewal.nextProduct, plan: renewal.plan, offer: offer, at: start, from: scheduled)
        }
        if commitment.period < Commitment.periods {
            commitment.period += 1
            subscription.begin(subscription.current.product, plan: .monthly, offer: nil, at: start, from: scheduled)
            subscription.commit(commitment)
        } else {
            subscription.begin(after.product, plan: after.plan, offer: nil, at: start, from: scheduled)
            if after.plan == .monthly { subscription.commit(to: 1) }
        }
    }

    // MARK: Failures

    /// The payment fails, at the end of the period or sometimes in the day before.
    func fail(_ subscription: Subscription, withGrace: Bool) throws(Ending) {
        let due = subscription.due
        let lead = random.number(in: pace.lead)
        try advance(to: random.chance(perMille: 150) ? due - lead : due)
        did("payment_failed", subscription)
        let graceEnd = due + pace.grace(of: subscription.current.product.length, choice: customer.app.graceDays)
        subscription.renewal.intent = .billing
        subscription.renewal.isRetrying = true
        subscription.renewal.graceUntil = withGrace ? graceEnd : nil
        let signed = try tell(
            "DID_FAIL_TO_RENEW", withGrace ? "GRACE_PERIOD" : nil, of: subscription, status: withGrace ? 4 : 3)
        if subscription.isCommitment {
            // Without grace, access ends at once and not at the end of the period.
            subscription.cut(at: signed)
            return subscription.say("billing_retry")
        }
        if withGrace { subscription.give(from: due, until: graceEnd, .grace) }
        try advance(to: due)
        subscription.say(withGrace ? "grace" : "billing_retry")
    }

    /// Grace ends without payment.
    func exhaustGrace(_ subscription: Subscription) throws(Ending) {
        try advance(to: subscription.renewal.graceUntil ?? now)
        subscription.say("billing_retry")
        did("grace_ended", subscription)
        try tell("GRACE_PERIOD_EXPIRED", of: subscription, status: 3)
    }

    /// Advances to a time between the failure and the end of grace, or of the retry window after grace.
    func passRetry(_ subscription: Subscription, perMille: ClosedRange<Int64>) throws(Ending) {
        let grace = subscription.renewal.graceUntil
        let window = subscription.due + pace.retryWindow(isCommitment: subscription.isCommitment)
        let until = if let grace, now < grace { grace } else { window }
        let from = max(now, subscription.due)
        // Not to the last moment: the notifications have to fall inside.
        try advance(to: from + max(0, until - from - minute / 2) / 1000 * random.number(in: perMille))
    }

    /// The payment succeeds now. In grace the billing cycle continues; after grace, or without it, a new one begins.
    func recover(_ subscription: Subscription) throws(Ending) {
        let due = subscription.due
        let isInGrace = subscription.renewal.graceUntil.map { now < $0 } ?? false
        let start = now
        did(isInGrace ? "recovered_in_grace" : "recovered", subscription)
        let commitment = subscription.current.commitment
        let period = commitment.map { $0.period % Commitment.periods + 1 }
        let plan = subscription.current.plan ?? .upfront
        let product = subscription.renewal.nextProduct
        subscription.renewals += 1
        subscription.offerPeriodsLeft = 0
        subscription.next(id: nextId(), isRenewal: true)
        subscription.begin(
            product, plan: plan, offer: nil, at: start, from: isInGrace ? due : start, startsCycle: !isInGrace)
        if let period { subscription.commit(to: period) }
        try tell("DID_RENEW", "BILLING_RECOVERY", of: subscription, status: 1)
        subscription.cut(at: start)
        subscription.giveCurrent()
        subscription.sayCurrent()
    }

    /// Apple gives up at the end of the retry window, or a little earlier.
    func giveUp(_ subscription: Subscription) throws(Ending) {
        let window = pace.retryWindow(isCommitment: subscription.isCommitment)
        try advance(to: subscription.due + window - window / 30 + random.number(in: 0...window / 60))
        did("retry_ended", subscription)
        // The end date of grace remains: it does not prove that there is grace now.
        subscription.renewal.isOn = false
        subscription.renewal.isRetrying = false
        subscription.renewal.commitment?.isOn = false
        try tell("EXPIRED", "BILLING_RETRY", of: subscription, status: 2)
        subscription.say("expired", "billing")
    }

    /// The customer cancels while the payment fails: access ends at once, also in grace.
    func cancelWhileFailing(_ subscription: Subscription) throws(Ending) {
        did("turned_renewal_off", subscription)
        subscription.renewal.isOn = false
        subscription.renewal.isRetrying = false
        subscription.renewal.intent = .cancelled
        let signed = try tell("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", of: subscription, status: 2)
        subscription.cut(at: max(signed, subscription.due))
        subscription.say("expired", "voluntary")
        try tell("EXPIRED", "VOLUNTARY", of: subscription, status: 2)
    }

    // MARK: Ends

    /// - Parameter subtype: nil when the customer cancels after the notice of a higher price.
    func turnOff(_ subscription: Subscription, subtype: String? = "AUTO_RENEW_DISABLED") throws(Ending) {
        did("turned_renewal_off", subscription)
        if subscription.isCommitment, let commitment = subscription.current.commitment {
            // The remaining months are billed anyway.
            subscription.renewal.commitment?.isOn = false
            subscription.renewal.isOn = commitment.period < Commitment.periods
        } else {
            subscription.renewal.isOn = false
        }
        try tell("DID_CHANGE_RENEWAL_STATUS", subtype, of: subscription, status: 1)
    }

    func turnOn(_ subscription: Subscription) throws(Ending) {
        did("turned_renewal_on", subscription)
        subscription.renewal.isOn = true
        subscription.renewal.commitment?.isOn = true
        try tell("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_ENABLED", of: subscription, status: 1)
    }

    /// The period ends, and no other begins.
    func lapse(
        _ subscription: Subscription, _ intent: RenewalInfo.Intent = .cancelled, subtype: String? = "VOLUNTARY",
        reason: String = "voluntary"
    ) throws(Ending) {
        let wasOff = !subscription.renewal.isOn
        try advance(to: subscription.due)
        // Only a customer who turned off renewal has announced the end before.
        if wasOff { subscription.say("expired", reason) }
        did("expired", subscription)
        subscription.renewal.isOn = false
        subscription.renewal.isRetrying = false
        subscription.renewal.intent = intent
        try tell("EXPIRED", subtype, of: subscription, status: 2)
        subscription.say("expired", reason)
    }

    /// Renews until the simulation is over. If that does not happen, it finally cancels, so that no story is endless.
    func liveOn(_ subscription: Subscription) throws(Ending) {
        if subscription.isCommitment {
            let isCancelled = subscription.renewal.commitment?.isOn == false
            while let period = subscription.current.commitment?.period, period < Commitment.periods {
                try renew(subscription)
            }
            if !isCancelled { try turnOff(subscription) }
            return try lapse(subscription)
        }
        switch pace {
        case .production:
            try renew(subscription, times: subscription.current.product.length == .year ? 1...3 : 3...24)
            try pass(subscription, perMille: 200...800)
            try turnOff(subscription)
        case .sandbox:
            while subscription.renewals < Self.limitSandboxRenewals { try renew(subscription) }
            subscription.renewal.isOn = false
        }
        try lapse(subscription)
    }
}
