// A subscription on a card, for support staff.

import Contract
import Entitlements
import Notices

extension SubscriptionReport {
    /// As many as fit on one screen with the rest.
    static let shownPurchases = 8
    static let shownNotifications = 8

    /// - Parameter showsAll: every purchase and notification.
    func card(showsAll: Bool) -> [String] {
        var card = CardLines()
        card.text("subscription", "\(shownText(id)), \(environment.rawValue)")
        if let answer {
            addHead(answer, &card)
            addDetails(answer, &card)
            card.blank()
            addTimeline(answer, &card)
            addPurchases(answer, showsAll, &card)
        } else {
            card.text("state", "UNKNOWN: its notifications contain no purchase, so there is nothing to use")
        }
        addContent(&card)
        card.blank()
        addNotifications(showsAll, &card)
        card.blank()
        addPublished(&card)
        card.text("times", timesInWords)
        return card.lines
    }

    // MARK: What it is, and why

    private func addHead(_ answer: Answer, _ card: inout CardLines) {
        let entitlement = answer.entitlement
        let product = [entitlement.productId, entitlement.bundleId].compactMap { $0.map { shownText("\($0)") } }
        card.text("product", product.joined(separator: " of "))
        card.text(
            "",
            [entitlement.type, entitlement.ownership].compactMap { $0.map { shownText("\($0)") } }.joined(
                separator: ", "))
        if !entitlement.entitlements.isEmpty {
            card.text("is for", entitlement.entitlements.map(shownText).joined(separator: ", "))
        }
        card.text("account", entitlement.appAccountToken.map { shownText("\($0)") } ?? "none")
        card.blank()
        if isPast {
            card.text(
                "as of",
                "\(shownTime(answer.instant)), as asked, with all that is known now, also later notifications")
        }
        card.text("state", Self.stateInWords(entitlement))
        if let since = answer.basis.stateSince { card.text("since", shownTime(since)) }
        // Covers all purchases that follow each other without a gap.
        let unbroken = "since \(shownTime(entitlement.since))"
        if entitlement.access {
            if entitlement.since <= answer.instant { card.text("unbroken", unbroken) }
        } else if let end = entitlement.accessUntil, entitlement.since < end {
            card.text("unbroken", "\(unbroken), until it ended")
        }
        let deciders = deciders.map(Self.named).joined(separator: ", then ")
        card.text("why", why(answer) + (deciders.isEmpty ? "" : ". Source: \(deciders)"))
        addChanges(answer, &card)
    }

    private func addChanges(_ answer: Answer, _ card: inout CardLines) {
        guard !answer.changes.isEmpty else {
            return card.text("next", "no change, unless Apple sends something new")
        }
        var label = "next"
        for change in answer.changes {
            let state = Self.name(of: change.entitlement)
            let use = change.entitlement.access ? "may use it" : "may not use it"
            let purchase = change.beginsPurchase ? ", with the next purchase" : ""
            // Changes before the clock have happened.
            let condition = clock.map { change.at <= $0 } ?? false ? "" : "if nothing else arrives: "
            card.text(label, "\(shownTime(change.at))  \(condition)\(state), \(use)\(purchase)", hanging: 18)
            label = ""
        }
        if answer.hasMoreChanges { card.line("and more") }
    }

    /// `EXPIRED (voluntary)`.
    private static func name(of entitlement: Entitlement) -> String {
        entitlement.state.rawValue.uppercased().replacing("_", with: " ")
            + (entitlement.reason.map { " (\($0.rawValue))" } ?? "")
    }

    static func stateInWords(_ entitlement: Entitlement) -> String {
        let use: String
        switch (entitlement.access, entitlement.accessUntil) {
        case (true, let until?): use = "may use it until \(shownTime(until))"
        case (true, nil): use = "may use it, without an end"
        case (false, let end?) where end <= entitlement.since: use = "may not use it, and never could"
        case (false, let end?): use = "may not use it; access ended \(shownTime(end))"
        case (false, nil): use = "may not use it"
        }
        return "\(name(of: entitlement)): \(use)"
    }

    static func named(_ told: ToldNotification) -> String {
        let name = [told.type ?? "a transaction that was fetched", told.subtype].compactMap { $0 }.map(shownText)
        return name.joined(separator: " ") + " of " + shownTime(told.signedDate ?? told.timestamp)
    }

    // MARK: Money and plans

    private func addDetails(_ answer: Answer, _ card: inout CardLines) {
        let entitlement = answer.entitlement
        let currency = entitlement.currency.map { "\($0)" }
        if let words = Outlook(answer).lineInWords(entitlement, currency) { card.text("renews", words) }
        if let price = entitlement.price { card.text("price", shownMoney(price, currency)) }
        if let plan = entitlement.billingPlan {
            card.text("plan", Self.plan("\(plan)", entitlement.commitment, currency))
        }
        if let offer = entitlement.offer {
            card.text(
                "offer",
                [offer.type, offer.discount, offer.identifier].compactMap { $0.map { shownText("\($0)") } }.joined(
                    separator: ", "))
        }
        if entitlement.introOfferUsed, entitlement.offer?.type != "introductory" {
            card.text("", "an introductory offer was used before")
        }
        // Pending changes belong to the last purchase.
        guard answer.successor == nil else { return }
        let pending = [
            entitlement.pendingProductId.map { "changes to \(shownText("\($0)"))" },
            entitlement.pendingBillingPlan.map { "changes to the plan \(shownText("\($0)"))" },
            entitlement.priceConsent.map {
                $0 == .waiting ? "a higher price waits for consent" : "a higher price is settled"
            },
        ].compactMap { $0 }
        if !pending.isEmpty { card.text("pending", pending.joined(separator: "; ")) }
    }

    private static func plan(_ plan: String, _ commitment: Entitlement.Commitment?, _ currency: String?) -> String {
        guard let commitment else { return shownText(plan) }
        var parts = [shownText(plan)]
        if let period = commitment.period {
            parts.append("period \(period)" + (commitment.of.map { " of \($0)" } ?? ""))
        }
        if let end = commitment.endsAt { parts.append("commitment until \(shownTime(end))") }
        if let price = commitment.price { parts.append("\(shownMoney(price, currency)) in all") }
        if let renews = commitment.renews { parts.append(renews ? "another one follows" : "none follows") }
        return parts.joined(separator: ", ")
    }

    // MARK: Where it comes from

    private func addPublished(_ card: inout CardLines) {
        card.text("published", agreementInWords)
    }

    private var timesInWords: String {
        let place = "partition \(partition) of \(topic)"
        guard let clock, let answer, !isPast else { return "in UTC" }
        if isAsked { return "in UTC; as of \(shownTime(answer.instant)), as asked, with all that is known now" }
        let lag = distance(from: clock, to: now)
        let behind =
            lag > Self.clockIsLate
            ? "; that is \(shownLength(lag)) ago: is a clock running? (perennial ingest or clock)" : ""
        return "in UTC; as of \(shownTime(clock)), the clock of \(place)\(behind)"
    }

    /// Several times the greatest usual interval of ticks.
    private static let clockIsLate: Int64 = 600_000
}
