// What was last told of a subscription, as far as the next telling depends on it.

public import Notices

/// Kept beside the facts: later facts and other settings may see the past differently, but not what was said of it.
public struct Told: Sendable, Equatable {
    /// `EntitlementRecord.answer` of the last value.
    public var answer: UInt64
    /// Whose `accounts` have the subscription.
    public var account: Text?
    public var state: Entitlement.State
    public var reason: Entitlement.Reason?
    public var access: Bool
    var purchase: TransactionId
    var plan: Mark
    var offer: Mark
    var pending: Mark
    var expires: Int64?
    /// Whether another period follows; of a commitment whether another commitment does. The last that was known.
    var renews: Bool?
    var priceConsent: Entitlement.PriceConsent?
    /// A failed payment was being tried again.
    var isRetrying: Bool
    var isCommitment: Bool
    /// When the last month of a commitment ends, which this purchase is.
    var lastMonthEnd: Int64?
    /// The next purchase was known before it began, and has been told as a recovery.
    var isRecovered: Bool
    /// Its commitment has been told to be completed.
    var isCompleted: Bool
}

/// Stands for texts of which only matters whether they have become others: FNV-1a.
struct Mark: Sendable, Equatable {
    private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    init(value: UInt64) { self.value = value }

    init(_ texts: Text?...) {
        for text in texts {
            add(text == nil ? 0 : 1)
            for byte in text?.bytes ?? [] { add(byte) }
            // No byte of a text, so that none runs into the next.
            add(0xff)
        }
    }

    private mutating func add(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
}

extension Standing {
    /// - Parameters:
    ///   - before: what was told before that.
    ///   - events: those that tell the change.
    public func told(after before: Told?, _ events: [EntitlementEvent], answer: UInt64) -> Told {
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
