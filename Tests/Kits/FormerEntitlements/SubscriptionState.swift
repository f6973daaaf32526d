// The state that a worker keeps for a subscription.

internal import Notices

/// The facts, and what was last published about them. Encoding: sequence, what was published, facts.
struct SubscriptionState: Sendable, Equatable {
    /// The version of the encoding; the worker's `stateFormat`.
    static let format: UInt8 = 1

    /// The sequence of the last value that was written; 0: none was written.
    var sequence: Int64 = 0
    var told: Told?
    var facts = Facts()

    init() {}

    var bytes: [UInt8] {
        var writer = ByteWriter(capacity: 512 + facts.purchases.count * 48 + facts.renewalInfos.count * 48)
        writer.signed(sequence)
        writer.byte(told == nil ? 0 : 1)
        if let told { told.write(to: &writer) }
        facts.write(to: &writer)
        return writer.bytes
    }

    /// nil if the bytes are not a valid state.
    ///
    /// - Parameter format: the format in which the bytes were written. A new format must still read the one before it.
    init?(_ bytes: [UInt8], format: UInt8 = Self.format) {
        guard format == Self.format else { return nil }
        var reader = ByteReader(bytes)
        guard let sequence = reader.signed(), sequence >= 0, let isTold = reader.byte(), isTold <= 1 else { return nil }
        if isTold == 1 {
            guard let told = Told(&reader) else { return nil }
            self.told = told
        }
        guard let facts = Facts(&reader) else { return nil }
        self.sequence = sequence
        self.facts = facts
    }
}

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
    private static let states: [Entitlement.State] = [
        .active, .grace, .billingRetry, .expired, .revoked, .superseded, .owned,
    ]
    private static let reasons: [Entitlement.Reason?] = [
        nil, .voluntary, .billing, .price, .unavailable, .other, .unknown, .refund, .family,
    ]

    private var flags: Flags {
        var flags: Flags = []
        if access { flags.insert(.access) }
        if account != nil { flags.insert(.account) }
        if case .number = purchase.form { flags.insert(.numericPurchase) }
        if expires != nil { flags.insert(.expires) }
        if let renews { flags.formUnion(renews ? [.renewsKnown, .renews] : .renewsKnown) }
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
        writer.byte(UInt8(Self.states.firstIndex(of: state)!))
        writer.byte(UInt8(Self.reasons.firstIndex(of: reason)!))
        writer.fixed(answer)
        writer.fixed(plan.value)
        writer.fixed(offer.value)
        writer.fixed(pending.value)
        purchase.write(to: &writer)
        if let account { writer.text(account) }
        if let expires { writer.signed(expires) }
        if let lastMonthEnd { writer.signed(lastMonthEnd) }
    }

    init?(_ reader: inout ByteReader) {
        guard let flags = reader.unsigned().map(Flags.init(rawValue:)), Flags.all.isSuperset(of: flags),
            !flags.isSuperset(of: [.consentWaiting, .consentSettled]),
            !flags.contains(.renews) || flags.contains(.renewsKnown),
            let state = reader.byte(), Self.states.indices.contains(Int(state)),
            let reason = reader.byte(), Self.reasons.indices.contains(Int(reason)),
            let answer = reader.fixed(), let plan = reader.fixed(), let offer = reader.fixed(),
            let pending = reader.fixed(), let purchase = reader.id(isNumber: flags.contains(.numericPurchase))
        else { return nil }
        var account: Text?
        if flags.contains(.account) {
            guard let text = reader.text() else { return nil }
            account = text
        }
        var expires: Int64?
        if flags.contains(.expires) {
            guard let date = reader.signed() else { return nil }
            expires = date
        }
        var lastMonthEnd: Int64?
        if flags.contains(.lastMonth) {
            guard let date = reader.signed() else { return nil }
            lastMonthEnd = date
        }
        self.init(
            answer: answer, account: account, state: Self.states[Int(state)], reason: Self.reasons[Int(reason)],
            access: flags.contains(.access), purchase: purchase, plan: Mark(value: plan), offer: Mark(value: offer),
            pending: Mark(value: pending), expires: expires,
            renews: flags.contains(.renewsKnown) ? flags.contains(.renews) : nil,
            priceConsent: flags.contains(.consentWaiting)
                ? .waiting : flags.contains(.consentSettled) ? .settled : nil,
            isRetrying: flags.contains(.retrying), isCommitment: flags.contains(.commitment),
            lastMonthEnd: lastMonthEnd,
            isRecovered: flags.contains(.recovered), isCompleted: flags.contains(.completed))
    }
}
