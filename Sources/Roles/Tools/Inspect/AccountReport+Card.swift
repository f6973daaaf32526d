// An account on a card, and as JSON.

import Contract
import Entitlements
import JSON

extension AccountReport {
    var card: [String] {
        let account = account
        var card = CardLines()
        card.text("account", "\(shownText(token)), \(environment.rawValue)")
        card.blank()
        var label = "may use"
        for grant in account.grants {
            let by =
                "by \(shownText("\(grant.originalTransactionId)"))"
                + (grant.bundleId.map { " (\(shownText("\($0)")))" } ?? "")
            let until = grant.accessUntil.map(shownTime)
            let words =
                grant.access
                ? "\(until.map { "YES, until \($0)" } ?? "YES, without an end"), \(by)"
                : "no, not since \(until ?? "ever"), \(by)"
            card.text(label, "\(shownText("\(grant.name)")): \(words)", hanging: 4)
            label = ""
        }
        if account.grants.isEmpty { card.text(label, "nothing that has a name in the file apps of the worker") }
        for double in account.doublePayments {
            let ids = double.originalTransactionIds.map { shownText("\($0)") }.joined(separator: " and ")
            card.text("PAYS TWICE", "for \(shownText("\(double.name)")): \(ids) will be billed again")
        }
        label = "advice"
        for advice in account.advice {
            card.text(label, "\(Self.words(advice.kind)): \(shownText("\(advice.originalTransactionId)"))", hanging: 4)
            card.line("    \(advice.kind.url)")
            label = ""
        }
        if account.advice.isEmpty { card.text(label, "none") }
        addSubscriptions(&card)
        card.blank()
        card.text("times", timesInWords)
        return card.lines
    }

    private func addSubscriptions(_ card: inout CardLines) {
        for binding in bindings {
            card.blank()
            let id = shownText(String(decoding: binding.originalTransactionId, as: UTF8.self))
            guard let subscription = binding.subscription else {
                card.text("subscription", "\(id): this version cannot read its record (offset \(binding.offset))")
                continue
            }
            card.text("subscription", id)
            let product = [subscription.productId, subscription.bundleId].compactMap { $0.map { shownText("\($0)") } }
            card.text("", product.joined(separator: " of "))
            let state = (subscription.state?.rawValue ?? "unknown").uppercased().replacing("_", with: " ")
            let reason = subscription.reason.map { " (\($0.rawValue))" } ?? ""
            let until = subscription.accessUntil.map(shownTime)
            let access: String
            if subscription.hasAccess(at: instant) {
                access = until.map { "may use it until \($0)" } ?? "may use it, without an end"
            } else {
                access = "may not use it" + (until.map { "; access ended \($0)" } ?? "")
            }
            card.text("", "\(state)\(reason): \(access)")
            if let words = Self.words(subscription.renewal(at: instant)) { card.text("", words) }
        }
    }

    private static func words(_ renewal: AccountSubscription.Renewal) -> String? {
        switch renewal {
        case .none: nil
        case .failing: "its payment fails, and Apple keeps trying"
        case .renews: "renews"
        case .needsConsent: "renews only if the customer agrees to the higher price"
        case .committed: "is billed until its commitment ends; no commitment follows"
        case .off: "renewal is turned off"
        case .unknown: "nothing is known about its renewal"
        }
    }

    private static func words(_ kind: Account.Advice.Kind) -> String {
        switch kind {
        case .fixPayment: "update the payment method"
        case .consentToPrice: "agree to the new price, or it ends"
        case .renew: "turn renewal on again, before it ends"
        case .resubscribe: "subscribe again"
        }
    }

    private var timesInWords: String {
        let asked = isAsked ? "as asked, with what is known now" : "the clock of this host"
        return "in UTC; as of \(shownTime(instant)), \(asked); partition \(partition) of \(topic) was written last "
            + (clock.map(shownTime) ?? "never")
    }

    var json: String {
        let account = account
        var writer = JSONWriter()
        writer.object { report in
            report.member("appAccountToken", token)
            report.member("environment", environment.rawValue)
            report.member("at", instant)
            report.name("entitlements")
            account.writeGrants(to: &report)
            report.name("subscriptions")
            report.array { list in
                for binding in bindings where binding.subscription != nil { list.json(binding.bytes) }
            }
            report.member("unreadable", bindings.count - subscriptions.count)
            report.name("advice")
            account.writeAdvice(to: &report)
            report.name("doublePayments")
            report.array { list in
                for double in account.doublePayments {
                    list.object { item in
                        item.member("entitlement", "\(double.name)")
                        item.name("originalTransactionIds")
                        item.array { ids in for id in double.originalTransactionIds { ids.string("\(id)") } }
                    }
                }
            }
            report.name("position")
            report.array { list in
                list.object { place in
                    place.member("topic", topic)
                    place.member("partition", partition)
                    place.member("offset", position)
                    place.member("asOf", orNull: clock)
                }
            }
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
