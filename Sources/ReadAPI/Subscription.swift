// A record of `entitlements` or `accounts`, as far as answers are computed from it.

internal import Entitlements
internal import JSON

/// A member that is not of its kind counts as absent: it may be sealed.
struct Subscription {
    enum State: String {
        case active, grace, billingRetry = "billing_retry", expired, revoked, superseded, owned
    }

    /// As JSON, to be written as it came.
    let id: [UInt8]
    let bundleId: [UInt8]?
    /// Names as bytes: two spellings that Unicode calls equal are two names.
    let entitlements: [[UInt8]]
    /// nil: one that this build does not know.
    let state: State?
    private let access: Bool
    let accessUntil: Int64?
    /// One-time purchases have none.
    private let billingPlan: String?
    private let autoRenew: Bool?
    /// Of a commitment: whether another one follows.
    private let commitmentRenews: Bool?
    private let isCommitment: Bool
    private let isConsentAwaited: Bool
    private let isFailing: Bool
    private let retryUntil: Int64?

    /// Whether answers can be given from it: what decides access is there, and of its kind.
    static func isOne(_ record: JSONDocument.Value, in json: borrowing JSONDocument) -> Bool {
        guard let id = json.member("originalTransactionId", of: record), json.kind(of: id.value) == .string,
            let access = json.member("access", of: record), json.kind(of: access.value) == .bool
        else { return false }
        return json.member("accessUntil", of: record).map { json.isIntegerOrNull($0.value) } ?? true
    }

    /// - Parameter record: one that `isOne`.
    init(_ record: JSONDocument.Value, in json: borrowing JSONDocument) {
        id = json.written("originalTransactionId", of: record) ?? Array("null".utf8)
        bundleId = json.written("bundleId", of: record)
        entitlements = json.texts("entitlements", of: record)
        state = json.text("state", of: record).flatMap { State(rawValue: $0) }
        access = json.flag("access", of: record) ?? false
        accessUntil = json.integer("accessUntil", of: record)
        billingPlan = json.text("billingPlan", of: record)
        autoRenew = json.flag("autoRenew", of: record)
        let commitment = json.member("commitment", of: record)?.value
        isCommitment = commitment.map { json.kind(of: $0) == .object } ?? false
        commitmentRenews = commitment.flatMap { json.flag("renews", of: $0) }
        isConsentAwaited = json.text("priceConsent", of: record) == "waiting"
        let retry = json.member("retry", of: record)?.value
        retryUntil = retry.flatMap { json.integer("until", of: $0) }
        isFailing = retryUntil != nil || json.integer("graceUntil", of: record) != nil
    }

    /// By the reader's clock: the record tells when access ends if nothing more arrives.
    func hasAccess(at now: Int64) -> Bool { access && accessUntil.map { now < $0 } ?? true }

    /// Lasts longer than `other`; of two that last alike neither does.
    func outlasts(_ other: Subscription, at now: Int64) -> Bool {
        let (own, others) = (hasAccess(at: now), other.hasAccess(at: now))
        if own != others { return own }
        // Without end, with access. Without access the one that ended last.
        guard let until = accessUntil else { return own && other.accessUntil != nil }
        guard let otherUntil = other.accessUntil else { return !own }
        return until > otherUntil
    }

    // MARK: What to tell the customer

    enum Need: String {
        case fixPayment = "fix_payment"
        case consentToPrice = "consent_to_price"
        case renew, resubscribe

        /// Where Apple lets the customer do it.
        var url: String {
            switch self {
            case .fixPayment: "https://apps.apple.com/account/billing"
            case .consentToPrice, .renew, .resubscribe: "https://apps.apple.com/account/subscriptions"
            }
        }
    }

    func need(at now: Int64) -> Need? {
        // One-time purchases are not Apple's to renew, and who had his money back is not asked to pay again.
        guard billingPlan != nil else { return nil }
        switch state {
        case .expired: return .resubscribe
        case .billingRetry, .grace: return retryIsOver(at: now) ? .resubscribe : .fixPayment
        case .active where isFailing: return retryIsOver(at: now) ? .resubscribe : .fixPayment
        case .active where !hasAccess(at: now): return .resubscribe
        case .active where endsByItself: return .renew
        case .active: return isConsentAwaited ? .consentToPrice : nil
        case .revoked, .superseded, .owned, nil: return nil
        }
    }

    private func retryIsOver(at now: Int64) -> Bool { retryUntil.map { now >= $0 } ?? false }

    /// The customer has turned renewal off. Within a commitment `autoRenew` speaks of the next payment only.
    private var endsByItself: Bool { isCommitment ? commitmentRenews == false : autoRenew == false }

    // MARK: Runs

    /// The times paid for. One that cannot be read is left out: without an end that is there it would seem to have none.
    static func runs(of record: JSONDocument.Value, in json: borrowing JSONDocument) -> [Run] {
        guard let list = json.member("runs", of: record)?.value else { return [] }
        var runs: [Run] = []
        var place = json.firstElement(of: list)
        while let run = place {
            let end = json.member("end", of: run)?.value
            if let start = json.integer("start", of: run), end.map({ json.isIntegerOrNull($0) }) ?? true {
                runs.append(Run(start: start, end: end.flatMap { json.integer($0) }))
            }
            place = json.element(after: run)
        }
        return runs
    }
}

extension JSONDocument {
    func text(_ name: StaticString, of object: Value) -> String? { member(name, of: object).flatMap { text($0.value) } }
    func flag(_ name: StaticString, of object: Value) -> Bool? { member(name, of: object).flatMap { bool($0.value) } }
    func integer(_ name: StaticString, of object: Value) -> Int64? {
        member(name, of: object).flatMap { integer($0.value) }
    }

    func isIntegerOrNull(_ value: Value) -> Bool { kind(of: value) == .null || integer(value) != nil }

    /// The value of a member as it was written; nil when there is none.
    func written(_ name: StaticString, of object: Value) -> [UInt8]? {
        guard let member = member(name, of: object) else { return nil }
        return raw(member.value).withUnsafeBytes { Array($0) }
    }

    /// The texts of an array.
    func texts(_ name: StaticString, of object: Value) -> [[UInt8]] {
        guard let list = member(name, of: object)?.value else { return [] }
        var texts: [[UInt8]] = []
        var place = firstElement(of: list)
        while let element = place {
            if let text = string(element) { texts.append(text.withUnsafeBytes { Array($0) }) }
            place = self.element(after: element)
        }
        return texts
    }
}
