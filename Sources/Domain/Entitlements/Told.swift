// What was last published about a subscription, as far as the next records depend on it.

internal import Notices
import SubscriptionHistory

/// Stored with the history: later facts and other settings may change the view of the past, but not what was published.
/// Its texts stay where they lie.
struct Told {
    /// The hash of the last value: see `SubscriptionTeller`.
    var answer: UInt64
    /// The account whose `accounts` record has the subscription.
    var account: TextPlace?
    var state: Entitlement.State
    var reason: Entitlement.Reason?
    var access: Bool
    var purchase: PurchaseId
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

// MARK: As bytes

extension Told {
    private struct Flags: OptionSet {
        let rawValue: UInt64
        static let access = Flags(rawValue: 1 << 0)
        static let account = Flags(rawValue: 1 << 1)
        static let numericPurchase = Flags(rawValue: 1 << 2)
        static let expires = Flags(rawValue: 1 << 3)
        static let renewsKnown = Flags(rawValue: 1 << 4)
        static let renews = Flags(rawValue: 1 << 5)
        static let consentWaiting = Flags(rawValue: 1 << 6)
        static let consentSettled = Flags(rawValue: 1 << 7)
        static let retrying = Flags(rawValue: 1 << 8)
        static let commitment = Flags(rawValue: 1 << 9)
        static let lastMonth = Flags(rawValue: 1 << 10)
        static let recovered = Flags(rawValue: 1 << 11)
        static let completed = Flags(rawValue: 1 << 12)
        static let all = Flags(rawValue: 1 << 13 - 1)
    }

    /// The indexes are stored: append new values at the end.
    private static let states: InlineArray<7, Entitlement.State> = [
        .active, .grace, .billingRetry, .expired, .revoked, .superseded, .owned,
    ]
    private static let reasons: InlineArray<9, Entitlement.Reason?> = [
        nil, .voluntary, .billing, .price, .unavailable, .other, .unknown, .refund, .family,
    ]

    private var flags: Flags {
        var flags: Flags = []
        if access { flags.insert(.access) }
        if account != nil { flags.insert(.account) }
        if purchase.text == nil { flags.insert(.numericPurchase) }
        if expires != nil { flags.insert(.expires) }
        if let renews {
            flags.insert(.renewsKnown)
            if renews { flags.insert(.renews) }
        }
        if let priceConsent { flags.insert(priceConsent == .waiting ? .consentWaiting : .consentSettled) }
        if isRetrying { flags.insert(.retrying) }
        if isCommitment { flags.insert(.commitment) }
        if lastMonthEnd != nil { flags.insert(.lastMonth) }
        if isRecovered { flags.insert(.recovered) }
        if isCompleted { flags.insert(.completed) }
        return flags
    }

    func write(to writer: inout ByteWriter) {
        writer.unsigned(flags.rawValue)
        for place in Self.states.indices where Self.states[place] == state { writer.byte(UInt8(place)) }
        for place in Self.reasons.indices where Self.reasons[place] == reason { writer.byte(UInt8(place)) }
        writer.fixed(answer)
        writer.fixed(plan.value)
        writer.fixed(offer.value)
        writer.fixed(pending.value)
        purchase.write(to: &writer)
        if let account { writer.text(account.bytes) }
        if let expires { writer.signed(expires) }
        if let lastMonthEnd { writer.signed(lastMonthEnd) }
    }

    /// nil if the bytes are invalid.
    init?(_ reader: inout KeptReader) {
        let flags = Flags(rawValue: reader.unsigned())
        let (state, reason) = (Int(reader.byte()), Int(reader.byte()))
        guard reader.isValid, Flags.all.isSuperset(of: flags),
            !(flags.contains(.consentWaiting) && flags.contains(.consentSettled)),
            !flags.contains(.renews) || flags.contains(.renewsKnown), Self.states.indices.contains(state),
            Self.reasons.indices.contains(reason)
        else { return nil }
        self.state = Self.states[state]
        self.reason = Self.reasons[reason]
        answer = reader.fixed()
        plan = Mark(value: reader.fixed())
        offer = Mark(value: reader.fixed())
        pending = Mark(value: reader.fixed())
        purchase = reader.id(isNumber: flags.contains(.numericPurchase))
        account = flags.contains(.account) ? reader.text() : nil
        expires = flags.contains(.expires) ? reader.signed() : nil
        lastMonthEnd = flags.contains(.lastMonth) ? reader.signed() : nil
        access = flags.contains(.access)
        renews = flags.contains(.renewsKnown) ? flags.contains(.renews) : nil
        priceConsent =
            flags.contains(.consentWaiting) ? .waiting : flags.contains(.consentSettled) ? .settled : nil
        isRetrying = flags.contains(.retrying)
        isCommitment = flags.contains(.commitment)
        isRecovered = flags.contains(.recovered)
        isCompleted = flags.contains(.completed)
        guard reader.isValid else { return nil }
    }
}
