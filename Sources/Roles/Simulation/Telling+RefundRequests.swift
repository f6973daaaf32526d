// The stories of customers who ask for a refund, and of Apple's decisions based on the developer's answer.

extension Telling {
    func tellOfRefundRequests() throws(Ending) {
        switch story {
        case .consumableAsked, .consumableAskedTwice:
            let purchase = try buy(products.credits, quantity: Int(random.number(in: 1...10)))
            try ask(purchase, twice: story == .consumableAskedTwice)
        case .lifetimeAsked:
            try ask(try buy(products.lifetime))
        case .passAsked:
            let purchase = try buy(products.pass)
            guard try ask(purchase) == .declined else { return }
            try advance(to: passEnd(of: purchase))
            purchase.say("expired")
        case .commitmentAsked: try tellOfCommitmentAsked()
        case .familyAsked: try tellOfFamilyAsked()
        default:
            let some = [products.basicWeek, products.basicMonth, products.plusMonth, products.premiumMonth]
            let subscription = try subscribe(to: random.choice(of: some))
            if story == .advancedCommerceAsked {
                try pause()
                did("changed_by_developer", subscription)
                subscription.current.isAdvancedCommerce = true
                subscription.renewal.isAdvancedCommerce = true
                try tell("METADATA_UPDATE", of: subscription, status: 1)
            }
            // Most customers ask soon after the purchase.
            if random.chance(perMille: 250) { try renew(subscription, times: 1...3) }
            let outcome = try ask(subscription, twice: story == .subscriptionAskedTwice)
            try goOn(subscription, after: outcome)
        }
    }

    private func tellOfCommitmentAsked() throws(Ending) {
        let subscription = try subscribe(to: products.plusYear, plan: .monthly)
        let isLate = random.chance(perMille: 250)
        try renew(subscription, times: isLate ? 1...4 : 0...0)
        if isLate, random.chance(perMille: 500), let previous = subscription.previous {
            // One month is refunded although the commitment continues.
            try waitToAsk(subscription)
            if try decision(on: subscription, previous, twice: false) == .declined {
                try declineRefund(subscription, of: previous)
            } else {
                try refundPrevious(subscription)
            }
            return try liveOn(subscription)
        }
        if try ask(subscription) == .declined { try liveOn(subscription) }
    }

    /// A family member may ask Apple for a refund as well, but no developer may answer that request.
    private func tellOfFamilyAsked() throws(Ending) {
        let purchaser = try subscribe(to: products.premiumMonth)
        try pause()
        let member = try share(purchaser)
        try waitToAsk(purchaser)
        if random.chance(perMille: 500) {
            try requestRefund(member)
            try pause()
            try declineRefund(member)
        }
        let outcome = try decision(on: purchaser, purchaser.current, twice: false)
        if outcome == .declined {
            try declineRefund(purchaser)
            for one in [purchaser, member] { try turnOff(one) }
            for one in [purchaser, member] { try lapse(one) }
            return
        }
        try refund(purchaser, outcome.kind)
        try revokeShare(member, reason: purchaser.current.revocation?.reason ?? 0)
    }

    // MARK: Asking and deciding

    private enum Outcome {
        case refunded, refundedProrated, declined

        var kind: Revocation.Kind { self == .refundedProrated ? .prorated : .full }
    }

    /// After a while, the customer asks for a refund of the current period or the purchase, and Apple decides.
    @discardableResult
    private func ask(_ subscription: Subscription, twice: Bool = false) throws(Ending) -> Outcome {
        try waitToAsk(subscription)
        let outcome = try decision(on: subscription, subscription.current, twice: twice)
        if outcome == .declined {
            try declineRefund(subscription)
        } else {
            try refund(subscription, outcome.kind)
        }
        return outcome
    }

    private func waitToAsk(_ subscription: Subscription) throws(Ending) {
        let isSoon = random.chance(perMille: 850)
        let length = subscription.current.expiresDate.map { $0 - subscription.current.purchaseDate } ?? 30 * day
        let wait =
            switch pace {
            case .production:
                isSoon ? random.number(in: 5 * minute...3 * hour) : length / 1000 * random.number(in: 30...300)
            case .sandbox: random.number(in: 5 * second...30 * second)
            }
        try advance(to: max(now, subscription.current.purchaseDate) + wait)
    }

    /// Apple asks the developer, perhaps twice, waits, and decides.
    private func decision(
        on subscription: Subscription, _ transaction: Transaction, twice: Bool
    ) throws(Ending) -> Outcome {
        let delay =
            switch (pace, decidesWithin) {
            case (_, let longest?): random.number(in: minute / 2...longest)
            case (.production, nil):
                random.chance(perMille: 800)
                    ? random.number(in: 2 * hour...14 * hour) : random.number(in: 14 * hour...40 * hour)
            case (.sandbox, nil): random.number(in: 20 * second...60 * second)
            }
        let again = random.number(in: 100...800)
        try requestRefund(subscription, of: transaction)
        // The period must not end before the decision: that would be another story.
        let room = subscription.current.expiresDate.map { $0 - pace.lead.upperBound - 10 * second - now } ?? .max
        let time = now + max(10 * second, min(delay, room))
        if twice {
            try advance(to: now + min(11 * hour, (time - now) / 1000 * again))
            try requestRefund(subscription, of: transaction)
        }
        try advance(to: time)
        let answer = try answer(to: transaction)
        var chance = Randomness(seed, 8, UInt64(subscriber), UInt64(count))
        guard chance.chance(perMille: answer.refundsPerMille) else { return .declined }
        return answer == .grantProrated ? .refundedProrated : .refunded
    }

    private func answer(to transaction: Transaction) throws(Ending) -> RefundAnswer {
        guard let desk else { return .unknown }
        guard let answer = desk.answer(to: String(transaction.id), decidedAt: now) else {
            throw .undecided(until: now)
        }
        return answer
    }

    /// What a subscriber does after the decision.
    private func goOn(_ subscription: Subscription, after outcome: Outcome) throws(Ending) {
        guard outcome != .declined else { return try liveOn(subscription) }
        did("turned_renewal_off", subscription)
        subscription.renewal.isOn = false
        try tell("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", of: subscription, status: 5)
        guard random.chance(perMille: 150) else { return }
        try pass(subscription, perMille: 700...900)
        try reverseRefund(subscription)
        try lapse(subscription)
    }
}
