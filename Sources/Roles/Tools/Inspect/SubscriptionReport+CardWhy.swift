// The reason for a state, in plain words.

import Entitlements
import Notices

extension SubscriptionReport {
    func why(_ answer: Answer) -> String {
        let basis = answer.basis
        let purchase = basis.purchase
        let transaction = purchase.transaction
        let bought = "bought \(shownTime(purchase.start))"
        let expires = transaction.expiresDate.map(shownTime) ?? "an unknown time"
        let isToCome = answer.hasNotBegun
        if !isToCome, let next = answer.successor { return why(basis, followedBy: next) }
        switch basis.rule {
        // A purchase that was refunded or replaced before it began never begins.
        case .owned where isToCome, .passRuns where isToCome, .paid where isToCome, .failsEarly where isToCome:
            return "it has not begun: it begins \(shownTime(purchase.start)); the state shown is that at its beginning"
        case .taken: return "it was shared in a family or given by an organisation, and was withdrawn\(date(purchase))"
        case .upgraded:
            return
                "the customer moved to another product\(date(purchase)), which is not in this subscription yet"
        case .refunded: return "Apple refunded the purchase\(date(purchase))"
        case .owned: return "\(bought), without an end"
        case .passRuns: return "\(bought), and lasts until \(purchase.end.map(shownTime) ?? "ever")"
        case .passOver: return "\(bought), and lasted until \(purchase.end.map(shownTime) ?? "ever")"
        case .paid:
            return "\(purchase.isFreeTrial ? "free trial" : "paid") until \(expires), \(Outlook(answer).inWords)"
        case .renewalExpected:
            return
                "the period ended \(expires) and should have renewed; Apple's notification may be late, so access lasts a little longer"
        case .failsEarly:
            return "paid until \(expires), but Apple's attempts to bill the renewal fail"
        case .grace:
            return "the renewal due \(expires) could not be billed; Apple keeps trying, and grants grace meanwhile"
        case .retry:
            let end = answer.entitlement.retry.map { ", until \(shownTime($0.until))" } ?? ""
            let payment =
                transaction.billingPlan == "MONTHLY" ? "a payment of the commitment" : "the renewal due \(expires)"
            return "\(payment) could not be billed; Apple keeps trying\(end), without access"
        case .retryOver: return "the renewal due \(expires) could not be billed, and Apple has stopped trying"
        case .ended: return "the last period ended \(expires): \(reasonInWords(answer.entitlement.reason))"
        }
    }

    /// Does not say whether renewal was on, because that is known only for the last purchase.
    private func why(_ basis: Timeline.Basis, followedBy next: Timeline.Purchase) -> String {
        let purchase = basis.purchase
        let later = "the next purchase is of \(shownTime(next.start))"
        if basis.rule == .upgraded { return "the customer moved to another product\(date(purchase)), and \(later)" }
        guard let expires = purchase.transaction.expiresDate else { return later }
        let gap =
            next.start < expires ? distance(from: next.start, to: expires) : distance(from: expires, to: next.start)
        let isRenewal = purchase.transaction.productId == next.transaction.productId && gap <= Self.renewalTolerance
        let hasBegun = clock.map { next.start <= $0 } ?? false
        let follows = isRenewal ? (hasBegun ? "renewed after that" : "renewed already") : later
        switch basis.rule {
        case .paid, .failsEarly:
            return "\(purchase.isFreeTrial ? "free trial" : "paid") until \(shownTime(expires)), and \(follows)"
        default: return "the period ended \(shownTime(expires)), and \(isRenewal ? "it was \(follows)" : follows)"
        }
    }

    /// Apple renews up to a day before a period ends, and the new period may begin some time after the end of the old one.
    private static let renewalTolerance: Int64 = 86_400_000

    private func date(_ purchase: Timeline.Purchase) -> String {
        purchase.fateDate.map { " \(shownTime($0))" } ?? ""
    }

    private func reasonInWords(_ reason: Entitlement.Reason?) -> String {
        switch reason {
        case .voluntary: "the customer turned renewal off"
        case .billing: "the payment failed"
        case .price: "the customer did not agree to the higher price"
        case .unavailable: "the product was no longer for sale"
        case .other: "Apple gave a reason that this version does not know"
        case .refund, .family, .unknown, nil: "no news of a renewal has arrived"
        }
    }

    var agreementInWords: String {
        let sequence = published?.sequence.map { "sequence \($0)" } ?? "no sequence"
        let asOf = published?.asOf.map { ", of \(shownTime($0))" } ?? ""
        let value = "\(sequence)\(asOf)"
        switch agreement {
        case .same: return "the same in entitlements (\(value))"
        case .nothing: return "nothing in entitlements, as it should be"
        case .unfounded:
            return "a value in entitlements (\(value)) without a notification: were notifications deleted?"
        case .absent:
            return
                "NOTHING in entitlements: the worker is behind, or is not running; see perennial offsets show entitlements"
        case .behind(let count):
            let cause =
                count == 0 ? "a change that was due since" : count == 1 ? "1 notification" : "\(count) notifications"
            return
                "OLDER in entitlements (\(value)): the worker is behind by \(cause); see perennial offsets show entitlements"
        case .otherRules(let names):
            return
                "DIFFERENT in entitlements (\(value)): it was made with other settings (apps, entitlements.leeway.ms) than "
                + "these; the differing members are \(names.joined(separator: ", "))"
        case .different(let names):
            return
                "DIFFERENT in entitlements (\(value)): \(names.joined(separator: ", ")); was it made with other settings (apps, "
                + "entitlements.leeway.ms) or by another version? perennial replay entitlements --name NAME computes all of it again"
        }
    }
}
