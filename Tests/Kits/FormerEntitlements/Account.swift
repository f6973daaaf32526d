// Combines the subscriptions of an account over all apps, and derives advice for the customer.

public import Notices

public struct Account: Sendable, Equatable {
    /// Access to one entitlement name.
    public struct Grant: Sendable, Equatable {
        public let name: Text
        public let access: Bool
        /// If there is access: when it ends, or nil if it has no end. Otherwise when it ended.
        public let accessUntil: Int64?
        /// The subscription that gives this entitlement for the longest time.
        public let originalTransactionId: Text
        public let bundleId: Text?
        /// As Apple writes it.
        public let environment: Text?
    }

    public struct Advice: Sendable, Equatable {
        public enum Kind: String, Sendable {
            /// Apple cannot bill the customer, who has to fix the payment.
            case fixPayment = "fix_payment"
            /// The subscription ends unless the customer consents.
            case consentToPrice = "consent_to_price"
            /// Renewal is turned off; access continues for now.
            case renew
            /// The subscription is over.
            case resubscribe

            /// The advice is to buy, not to fix a purchase. One purchase is enough for all subscriptions that give the
            /// same name.
            var asksToBuy: Bool { self == .renew || self == .resubscribe }

            /// The page where the customer does it.
            public var url: String {
                switch self {
                case .fixPayment: "https://apps.apple.com/account/billing"
                case .consentToPrice, .renew, .resubscribe: "https://apps.apple.com/account/subscriptions"
                }
            }
        }

        public let kind: Kind
        public let originalTransactionId: Text
    }

    /// An entitlement name that several subscriptions give which will be billed again: the customer pays twice.
    public struct DoublePayment: Sendable, Equatable {
        public let name: Text
        public let originalTransactionIds: [Text]
    }

    /// Sorted by name.
    public let grants: [Grant]
    /// Sorted by subscription.
    public let advice: [Advice]
    public let doublePayments: [DoublePayment]

    public init(_ subscriptions: [AccountSubscription], at now: Int64) {
        let sorted = subscriptions.sorted { $0.originalTransactionId < $1.originalTransactionId }
        var givers: [Text: [AccountSubscription]] = [:]
        for subscription in sorted {
            for name in subscription.entitlements { givers[name, default: []].append(subscription) }
        }
        let best = givers.compactMapValues { $0.max { $1.lasts(longerThan: $0, at: now) } }
        grants = best.sorted { $0.key < $1.key }.map { name, giver in
            Grant(
                name: name, access: giver.hasAccess(at: now), accessUntil: giver.accessUntil,
                originalTransactionId: giver.originalTransactionId, bundleId: giver.bundleId,
                environment: giver.environment)
        }
        doublePayments = givers.sorted { $0.key < $1.key }.compactMap { name, givers in
            // Nobody pays in sandbox: if a production purchase gives the name, sandbox purchases do not count.
            let isTested = givers.allSatisfy(\.isOfSandbox)
            let paid = givers.filter { $0.isPaidFor(at: now) && $0.isOfSandbox == isTested }
            return paid.count < 2
                ? nil : DoublePayment(name: name, originalTransactionIds: paid.map(\.originalTransactionId))
        }
        // Production and sandbox are kept apart: access in one is no substitute for access that ends in the other.
        let advised = [false, true].map { isOfSandbox in
            Self.advice(for: sorted.filter { $0.isOfSandbox == isOfSandbox }, at: now)
        }
        advice = advised.joined().sorted { $0.originalTransactionId < $1.originalTransactionId }
    }

    private static func advice(for subscriptions: [AccountSubscription], at now: Int64) -> [Advice] {
        // A customer who pays for what another subscription gives anyway, and will go on giving, pays twice.
        let lasting = subscriptions.filter { $0.goesOn(at: now) }.reduce(into: Set()) { $0.formUnion($1.entitlements) }
        let advised = subscriptions.compactMap { subscription in
            subscription.advice(at: now).map { (subscription: subscription, kind: $0) }
        }
        // Running subscriptions come first. Of these, the subscription with the latest end comes first.
        let ranked = advised.sorted { left, right in
            let (isLeftOver, isRightOver) = (left.kind == .resubscribe, right.kind == .resubscribe)
            return isLeftOver == isRightOver
                ? left.subscription.lasts(longerThan: right.subscription, at: now) : isRightOver
        }
        var (helped, advice): (Set<Text>, [Advice]) = (lasting, [])
        for (subscription, kind) in ranked {
            let names = subscription.entitlements
            let isCovered = !names.isEmpty && names.allSatisfy((kind.asksToBuy ? helped : lasting).contains)
            guard !isCovered else { continue }
            helped.formUnion(names)
            advice.append(Advice(kind: kind, originalTransactionId: subscription.originalTransactionId))
        }
        return advice.sorted { $0.originalTransactionId < $1.originalTransactionId }
    }
}
