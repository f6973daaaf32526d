// From signed bytes to facts that Apple stands for.

public import Contract
public import Crypto
internal import JSON

public enum PayloadKind: String, Sendable, CaseIterable {
    case notification, transaction, renewal
    case appTransaction = "app-transaction"
}

/// What a verifier takes.
public struct VerificationPolicy: Sendable {
    /// Apple Root CA - G3 and what the settings add.
    public var anchors: TrustAnchors
    /// nil: neither bundleId nor appAppleId is checked.
    public var apps: [App]?
    /// Of the signed text; the body that brings it has its own limit. A genuine one has about 20 KB.
    public var maxBytes = 262_144

    public init(anchors: TrustAnchors, apps: [App]?) {
        self.anchors = anchors
        self.apps = apps
    }
}

/// Verifies payloads, one at a time; one for each thread. It has no clock: callers tell it the time.
///
/// The steps and their order are a contract, because each has a code that others count and answer by: form, algorithm, chain,
/// markers, dates, revocation, signature, then what the payload says of app, environment and members, then the payloads
/// signed inside of it, last its date. The first that fails gives the code.
public final class Verifier {
    /// Under which name a published record has what was signed in `signedAppTransactionInfo`, in the place of that.
    private static let appTransaction: StaticString = "appTransaction"

    private let policy: VerificationPolicy
    private let identity: Identity
    private let authenticator: Authenticator
    // A parser each: the text of a part inside points into the buffers of the one around it.
    private var outer: JSONDocument
    private var inner: JSONDocument
    private var body: JSONDocument

    public init(_ policy: VerificationPolicy) {
        self.policy = policy
        identity = Identity(policy: policy)
        authenticator = Authenticator(anchors: policy.anchors, maxBytes: policy.maxBytes)
        outer = PayloadJSON.document(maxBytes: policy.maxBytes)
        inner = PayloadJSON.document(maxBytes: policy.maxBytes)
        // Bounded by whoever received it.
        body = PayloadJSON.document(maxBytes: Int(Int32.max))
    }

    /// Asked, if set, for every chain that leads to a root and holds its markers and dates; must answer at once, from what
    /// is known. `unknown` passes here: it is the caller's to decide (see `unknownChains`).
    public var revocation: ((TrustedChain) -> RevocationStatus)? {
        get { authenticator.revocation }
        set { authenticator.revocation = newValue }
    }

    /// Of the last payload, whether it was taken or not: the chains that `revocation` did not know. Who may not rely on such a
    /// chain has no verdict as long as there is one here, whatever was found after it, a wrong signature too.
    public var unknownChains: [TrustedChain] { authenticator.unknownChains }

    /// How many headers are known whose chain need not be checked again.
    public var cachedHeaders: Int { authenticator.cachedHeaders }

    /// How many chains were judged by their signatures, which is the dearest part of all.
    var judgedChains: Int { authenticator.judgedChains }

    /// `NotificationBody.signedPayload` with buffers that are used again.
    public func signedPayload(of body: [UInt8]) throws(Rejection) -> [UInt8] {
        try NotificationBody.signedPayload(of: body, with: &self.body)
    }

    /// - Parameter now: milliseconds since 1970.
    public func notification(_ jws: [UInt8], now: Int64) throws(Rejection) -> VerifiedNotification {
        let checked = try check(jws, as: .notification, now: now)
        return verifiedNotification(checked, jws)
    }

    /// One payload of any kind, nested parts verified too. The outcome is its decoded JSON, nested parts in their places.
    public func decoded(_ jws: [UInt8], as kind: PayloadKind, now: Int64) throws(Rejection) -> [UInt8] {
        let checked = try check(jws, as: kind, now: now)
        let bytes = checked.payload.bytes
        return spliced(bytes, outer.range(of: outer.root), checked.parts.map { ($0.valueRange, $0.bytes) })
    }

    // MARK: The steps

    private func check(
        _ jws: [UInt8], as kind: PayloadKind, now: Int64
    ) throws(Rejection) -> CheckedPayload {
        authenticator.unknownChains.removeAll(keepingCapacity: true)
        guard jws.count <= policy.maxBytes else {
            throw Rejection(.tooLarge, "the signed text has more than \(policy.maxBytes) bytes")
        }
        let payload = try authenticator.authenticate(jws.span, as: kind, into: &outer, now: now)
        let contents = kind == .notification ? NotificationContents(outer) : nil
        let subject = contents?.subject ?? Subject(outer, outer.root, environment: kind.environmentMember)
        do throws(Rejection) {
            return try check(payload, contents, subject, as: kind, now: now)
        } catch {
            // Signed by Apple: what it says of its environment can be relied on, whatever else is wrong with it.
            throw error.told(of: subject.environment)
        }
    }

    private func check(
        _ payload: AuthenticPayload, _ contents: NotificationContents?, _ subject: Subject, as kind: PayloadKind,
        now: Int64
    ) throws(Rejection) -> CheckedPayload {
        if kind == .notification, contents?.count != 1 {
            throw Rejection(
                .inconsistent, "payload: not exactly one of data, summary, externalPurchaseToken and appData")
        }
        try identity.check(outer, subject, kind)
        try kind.members.check(outer, outer.root)
        let parts = try contents.map { contents throws(Rejection) in try innerParts(of: contents, now: now) } ?? []
        if let date = payload.date, isAhead(date, of: now) {
            throw Rejection(
                .inFuture, "payload: it is dated more than 5 minutes ahead; is the clock of this host right?")
        }
        return CheckedPayload(payload: payload, contents: contents, subject: subject, parts: parts)
    }

    private func innerParts(of contents: NotificationContents, now: Int64) throws(Rejection) -> [InnerPart] {
        var parts: [InnerPart] = []
        for place in InnerPart.Place.all where place.content == contents.kind {
            guard let member = outer.member(place.member, of: contents.subject.object),
                let text = outer.bytes(of: member.value)
            else { continue }
            if place.kind == .appTransaction, outer.member(Self.appTransaction, of: contents.subject.object) != nil {
                // The record would have two members of one name, and its readers two opinions on which of them counts.
                throw Rejection(.inconsistent, "\(place.path): there is an \(Self.appTransaction) beside it")
            }
            let part: InnerPart
            do throws(Rejection) {
                let payload = try authenticator.authenticate(text.span, as: place.kind, into: &inner, now: now)
                try place.kind.members.check(inner, inner.root)
                part = InnerPart(place, outer, member, payload, inner)
            } catch {
                throw Rejection(.inconsistent, "\(place.path): \(error.reason.rawValue), \(error.detail)")
            }
            try InnerPart.compare(place, inner, with: contents.subject, outer)
            parts.append(part)
        }
        // Not the products: a renewal's may rightly be another than its transaction's.
        if let first = parts.first?.originalTransactionId,
            let differing = parts.first(where: { !hasSameBytes($0.originalTransactionId, first) })
        {
            throw Rejection(
                .inconsistent, "\(differing.path): originalTransactionId differs from that of the transaction")
        }
        return parts
    }

    // MARK: The outcome

    private func verifiedNotification(_ checked: CheckedPayload, _ jws: [UInt8]) -> VerifiedNotification {
        guard let contents = checked.contents, let environment = checked.subject.environment,
            let uuid = outer.text("notificationUUID", of: outer.root),
            let type = outer.text("notificationType", of: outer.root), let signedDate = checked.payload.date
        else {
            // Every step above has asked for them.
            preconditionFailure("a checked notification lacks a required member")
        }
        let object = contents.subject.object
        let subtype = outer.text("subtype", of: outer.root)
        let status = outer.integer("status", of: object)
        let rest = jws.span.extracting(checked.payload.parts.payload.upperBound..<jws.count)
        return VerifiedNotification(
            environment: environment, notificationUUID: uuid, notificationType: type, subtype: subtype,
            signedDate: signedDate, bundleId: outer.text("bundleId", of: object),
            appAppleId: outer.integer("appAppleId", of: object),
            bundleVersion: outer.text("bundleVersion", of: object), status: status,
            consumptionRequestReason: outer.text("consumptionRequestReason", of: object),
            content: content(checked, contents), key: key(checked, contents) ?? uuid,
            sha256: checked.payload.hash.digest(followedBy: rest),
            leafSerial: checked.payload.signer.leafSerial,
            flags: Flags.all(of: checked.parts, type: type, subtype: subtype, hasStatus: status != nil, signedDate))
    }

    private func content(
        _ checked: CheckedPayload, _ contents: NotificationContents
    ) -> VerifiedNotification.Content {
        let object = contents.subject.object
        switch contents.kind {
        case .data:
            return .data(
                transaction: checked.parts.first { $0.kind == .transaction }?.bytes,
                renewalInfo: checked.parts.first { $0.kind == .renewal }?.bytes)
        case .summary: return .summary(outer.rawBytes(of: object))
        case .externalPurchaseToken: return .externalPurchaseToken(outer.rawBytes(of: object))
        case .appData:
            let replacements = checked.parts.map { part in
                (part.memberRange, Array("\"\(Self.appTransaction)\":".utf8) + part.bytes)
            }
            return .appData(spliced(checked.payload.bytes, outer.range(of: object), replacements))
        }
    }

    /// So that all that is said of one purchase is in one partition.
    private func key(_ checked: CheckedPayload, _ contents: NotificationContents) -> String? {
        let said =
            switch contents.kind {
            case .data: checked.parts.first?.originalTransactionId
            case .summary: String?.none
            case .externalPurchaseToken: outer.text("externalPurchaseId", of: contents.subject.object)
            case .appData: checked.parts.first?.appTransactionId
            }
        return said.flatMap { $0.isEmpty ? nil : $0 }
    }
}

/// A payload that went through every step; points into the verifier's documents.
private struct CheckedPayload {
    let payload: AuthenticPayload
    let contents: NotificationContents?
    let subject: Subject
    let parts: [InnerPart]
}

extension PayloadKind {
    fileprivate var environmentMember: StaticString { self == .appTransaction ? "receiptType" : "environment" }
}

/// Not `==`, by which two texts of different bytes may be equal under Unicode's rules.
private func hasSameBytes(_ left: String?, _ right: String) -> Bool { left?.utf8.elementsEqual(right.utf8) ?? false }

/// A part of `bytes` with pieces of it replaced; those come in their order.
private func spliced(
    _ bytes: [UInt8], _ part: Range<Int>, _ replacements: [(range: Range<Int>, bytes: [UInt8])]
) -> [UInt8] {
    var result: [UInt8] = []
    var position = part.lowerBound
    for replacement in replacements.sorted(by: { $0.range.lowerBound < $1.range.lowerBound }) {
        result += bytes[position..<replacement.range.lowerBound]
        result += replacement.bytes
        position = replacement.range.upperBound
    }
    return result + bytes[position..<part.upperBound]
}
