// What the subscriptions of an account amount to, over all apps, and what to advise its customer.

public import Notices

public struct Account: Sendable, Equatable {
    /// Of one name of an entitlement.
    public struct Grant: Sendable, Equatable {
        public let name: Text
        public let access: Bool
        /// With access its end, nil when it has none; without it the instant it ended.
        public let accessUntil: Int64?
        /// Of those that give it the one that lasts longest.
        public let originalTransactionId: Text
        public let bundleId: Text?
        /// As Apple writes it.
        public let environment: Text?
    }

    public struct Advice: Sendable, Equatable {
        public enum Kind: String, Sendable {
            /// Apple cannot bill: the customer has to mend the payment.
            case fixPayment = "fix_payment"
            /// Without it the subscription ends.
            case consentToPrice = "consent_to_price"
            /// Renewal is turned off, and access goes on for now.
            case renew
            /// It is over.
            case resubscribe

            /// To buy, and not to mend what has been bought: of several subscriptions of one name one is enough.
            var asksToBuy: Bool { self == .renew || self == .resubscribe }

            /// Where the customer does it.
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

    /// A name that more than one subscription gives which will be billed again: the customer pays twice.
    public struct DoublePayment: Sendable, Equatable {
        public let name: Text
        public let originalTransactionIds: [Text]
    }

    /// By name.
    public let grants: [Grant]
    /// By subscription.
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
            // In sandbox nobody pays: beside a purchase of production those of testers are none.
            let isTested = givers.allSatisfy(\.isOfSandbox)
            let paid = givers.filter { $0.isPaidFor(at: now) && $0.isOfSandbox == isTested }
            return paid.count < 2
                ? nil : DoublePayment(name: name, originalTransactionIds: paid.map(\.originalTransactionId))
        }
        // What is had in the one does not stand in for what ends in the other.
        let advised = [false, true].map { isOfSandbox in
            Self.advice(for: sorted.filter { $0.isOfSandbox == isOfSandbox }, at: now)
        }
        advice = advised.joined().sorted { $0.originalTransactionId < $1.originalTransactionId }
    }

    private static func advice(for subscriptions: [AccountSubscription], at now: Int64) -> [Advice] {
        // Whoever pays for what he has anyway, and goes on to have, pays twice.
        let lasting = subscriptions.filter { $0.goesOn(at: now) }.reduce(into: Set()) { $0.formUnion($1.entitlements) }
        let advised = subscriptions.compactMap { subscription in
            subscription.advice(at: now).map { (subscription: subscription, kind: $0) }
        }
        // Those that still run first, and of these the one that lasts longest.
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
