// What to expect of the next payment, in plain words.

import Entitlements

enum Outlook: Equatable {
    /// No payment is expected, or another purchase has already followed.
    case over
    case renews
    /// Its date has passed, and no notification about it has arrived.
    case overdue
    /// It ends unless the customer agrees to a higher price.
    case needsConsent
    case failing
    /// The customer has turned renewal off; for a commitment, the next payment.
    case off
    /// The last period of a commitment that is not followed by another one.
    case lastPeriod
    /// Renewal is on, but Apple has announced the end.
    case ends
    case unknown

    init(_ answer: SubscriptionReport.Answer) {
        let (basis, entitlement) = (answer.basis, answer.entitlement)
        switch basis.rule {
        case .taken, .upgraded, .refunded, .owned, .passRuns, .passOver: self = .over
        case .failsEarly, .grace, .retry: self = answer.successor == nil ? .failing : .over
        // For an ended subscription, the last renewal info says only that the customer turned renewal off.
        case .retryOver, .ended: self = entitlement.autoRenew == false && answer.successor == nil ? .off : .over
        case .paid, .renewalExpected:
            if answer.successor != nil {
                self = .over
            } else if basis.isLastPeriod {
                self = .lastPeriod
            } else if basis.expectsRenewal {
                self =
                    entitlement.priceConsent == .waiting
                    ? .needsConsent : basis.rule == .paid ? .renews : .overdue
            } else {
                switch entitlement.autoRenew {
                case true?: self = .ends
                case false?: self = .off
                case nil: self = .unknown
                }
            }
        }
    }

    /// The text after `paid until ...,`.
    var inWords: String {
        switch self {
        case .renews, .overdue: "and renews then"
        case .needsConsent: "and ends then, unless the customer agrees to the higher price"
        case .off: "and renewal is turned off"
        case .lastPeriod: "the last period of its commitment, and none follows"
        case .ends: "and Apple has announced that it ends then"
        case .over, .failing, .unknown: "and nothing is known about its renewal"
        }
    }

    /// As a separate line; nil: there is nothing to say.
    func lineInWords(_ entitlement: Entitlement, _ currency: String?) -> String? {
        let price = entitlement.renewalPrice.map { " for \(shownMoney($0, currency))" } ?? ""
        let date = entitlement.renewsAt.map(shownTime)
        switch self {
        case .over, .unknown: return nil
        case .renews: return "yes\(date.map { ", \($0)" } ?? "")\(price)"
        case .overdue: return "yes\(date.map { ", due since \($0)" } ?? "")\(price)"
        case .needsConsent:
            return "only if the customer agrees to the higher price\(date.map { ": \($0)" } ?? "")\(price)"
        case .failing: return "yes, once it can be billed\(price)"
        case .off: return "no: renewal is turned off"
        case .lastPeriod: return "no: it is the last period of its commitment, and none follows"
        case .ends: return "no: Apple has announced that it ends"
        }
    }
}
