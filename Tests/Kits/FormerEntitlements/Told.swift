// What was last published about a subscription, as far as the next records depend on it.

internal import Notices

/// Stored with the facts: later facts and other settings may change the view of the past, but not what was published.
struct Told: Sendable, Equatable {
    /// `EntitlementRecord.answer` of the last value.
    var answer: UInt64
    /// The account whose `accounts` record has the subscription.
    var account: Text?
    var state: Entitlement.State
    var reason: Entitlement.Reason?
    var access: Bool
    var purchase: TransactionId
    var plan: Mark
    var offer: Mark
    var pending: Mark
    var expires: Int64?
    /// Whether another period follows; for a commitment, whether another commitment follows. The last known value.
    var renews: Bool?
    var priceConsent: Entitlement.PriceConsent?
    /// A failed payment was being retried.
    var isRetrying: Bool
    var isCommitment: Bool
    /// When the last month of a commitment ends, if this purchase is that month.
    var lastMonthEnd: Int64?
    /// The next purchase was known before it began, and was reported as a recovery.
    var isRecovered: Bool
    /// The completion of its commitment has been reported.
    var isCompleted: Bool
}

/// Stands for texts of which only a change matters. FNV-1a.
struct Mark: Sendable, Equatable {
    private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    init(value: UInt64) { self.value = value }

    init(_ texts: Text?...) {
        for text in texts {
            add(text == nil ? 0 : 1)
            for byte in text?.bytes ?? [] { add(byte) }
            // 0xff occurs in no text, so it separates texts.
            add(0xff)
        }
    }

    private mutating func add(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
}

extension Standing {
    /// - Parameters:
    ///   - before: the state that was published before.
    ///   - events: the events of this change.
    func told(after before: Told?, _ events: [EntitlementEvent], answer: UInt64) -> Told {
        let isSamePurchase = before?.purchase == row.transaction.id
        func isTold(_ kind: EntitlementEvent.Kind, before wasTold: Bool) -> Bool {
            isSamePurchase && (wasTold || events.contains { $0.kind == kind })
        }
        return Told(
            answer: answer, account: entitlement.appAccountToken, state: entitlement.state, reason: entitlement.reason,
            access: entitlement.access, purchase: row.transaction.id, plan: plan, offer: offer, pending: pending,
            expires: expires, renews: renews ?? before?.renews, priceConsent: entitlement.priceConsent,
            isRetrying: isRetrying, isCommitment: row.isCommitment, lastMonthEnd: lastMonthEnd,
            isRecovered: isTold(.recovered, before: before?.isRecovered ?? false),
            isCompleted: isTold(.commitmentCompleted, before: before?.isCompleted ?? false))
    }
}
