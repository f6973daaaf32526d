// Verifies signed bytes and returns their contents.

public import Contract
public import Crypto
internal import JSON
public import Records

public enum PayloadKind: String, Sendable, CaseIterable {
    case notification, transaction, renewal
    case appTransaction = "app-transaction"
}

/// What a verifier accepts.
public struct VerificationPolicy: Sendable {
    /// Apple Root CA - G3 and the roots that the settings add.
    public var anchors: TrustAnchors
    /// nil: neither bundleId nor appAppleId is checked.
    public var apps: [App]?
    /// Byte limit of the signed text; its body has a separate limit. A genuine text has about 20 KB.
    public var maxBytes = 262_144

    public init(anchors: TrustAnchors, apps: [App]?) {
        self.anchors = anchors
        self.apps = apps
    }
}

/// Verifies payloads, one at a time; use one verifier for each thread. It has no clock: callers pass the time.
///
/// The steps and their order are a contract, because others count and answer by the codes: form, algorithm, chain,
/// markers, dates, revocation, signature, then app, environment and members of the payload, then the payloads signed
/// inside of it, and last its date. The first step that fails determines the code.
public final class Verifier {
    /// Name of the member of a published record that replaces `signedAppTransactionInfo` and contains its decoded JSON.

    /// All possible flags of a notification.
    public static var flagNames: [String] { Flags.names }

    private let policy: VerificationPolicy
    private let identity: Identity
    private let authenticator: Authenticator
    // One parser each: the text of an inner part points into the buffers of the outer one.
    private var outer: JSONDocument
    private var inner: JSONDocument
    private var body: JSONDocument

    public init(_ policy: VerificationPolicy) {
        self.policy = policy
        identity = Identity(policy: policy)
        authenticator = Authenticator(anchors: policy.anchors, maxBytes: policy.maxBytes)
        outer = PayloadJSON.document(maxBytes: policy.maxBytes)
        inner = PayloadJSON.document(maxBytes: policy.maxBytes)
        // The caller has limited the size.
        body = PayloadJSON.document(maxBytes: Int(Int32.max))
    }

    /// Called, if set, for every chain that leads to a root, has its markers and valid dates. It must answer at once,
    /// from what is known. `unknown` is accepted here: the caller decides (see `unknownChains`).
    public var revocation: ((TrustedChain) -> RevocationStatus)? {
        get { authenticator.revocation }
        set { authenticator.revocation = newValue }
    }

    /// The chains of the last payload that `revocation` did not know, whether the payload was accepted or not. A caller
    /// that requires the status has no verdict while this is not empty, even if a later step failed, such as the
    /// signature.
    public var unknownChains: [TrustedChain] { authenticator.unknownChains }

    /// Number of cached headers, whose chain need not be checked again.
    public var cachedHeaders: Int { authenticator.cachedHeaders }

    /// Number of chains whose signatures were checked, which is the most expensive step.
    var judgedChains: Int { authenticator.judgedChains }

    /// `NotificationBody.signedPayload` with reused buffers.
    public func signedPayload(of body: [UInt8]) throws(Rejection) -> [UInt8] {
        try NotificationBody.signedPayload(of: body, with: &self.body)
    }

    /// - Parameter now: milliseconds since 1970.
    public func notification(_ jws: [UInt8], now: Int64) throws(Rejection) -> VerifiedNotification {
        let checked = try check(jws, as: .notification, now: now)
        return verifiedNotification(checked, jws)
    }

    /// Verifies one payload of any kind, nested parts included. Returns its decoded JSON, with nested parts in their
    /// places.
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
            // Apple has signed it, so its environment can be trusted, whatever else is wrong with it.
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
                .inFuture, "payload: its date is more than 5 minutes in the future; check the clock of this host")
        }
        return CheckedPayload(payload: payload, contents: contents, subject: subject, parts: parts)
    }

    private func innerParts(of contents: NotificationContents, now: Int64) throws(Rejection) -> [InnerPart] {
        var parts: [InnerPart] = []
        for place in InnerPart.Place.all where place.content == contents.kind {
            guard let member = outer.member(place.member.text, of: contents.subject.object),
                let text = outer.bytes(of: member.value)
            else { continue }
            let namesake = MemberName.appTransaction.text
            if place.kind == .appTransaction, outer.member(namesake, of: contents.subject.object) != nil {
                // Otherwise the record would have two members of one name, and readers would disagree about which one
                // counts.
                throw Rejection(.inconsistent, "\(place.path): there is also a member \(namesake)")
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
        // Products are not compared: a renewal's product may differ from its transaction's.
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
            let uuid = outer.text(.notificationUUID, of: outer.root),
            let type = outer.text(.notificationType, of: outer.root), let signedDate = checked.payload.date
        else {
            // All steps above have required these members.
            preconditionFailure("a checked notification lacks a required member")
        }
        let object = contents.subject.object
        let subtype = outer.text(.subtype, of: outer.root)
        let status = outer.integer(.status, of: object)
        let rest = jws.span.extracting(checked.payload.parts.payload.upperBound..<jws.count)
        return VerifiedNotification(
            environment: environment, notificationUUID: uuid, notificationType: type, subtype: subtype,
            signedDate: signedDate, bundleId: outer.text(.bundleId, of: object),
            appAppleId: outer.integer(.appAppleId, of: object),
            bundleVersion: outer.text(.bundleVersion, of: object), status: status,
            consumptionRequestReason: outer.text(.consumptionRequestReason, of: object),
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
                (part.memberRange, Array("\"\(MemberName.appTransaction.text)\":".utf8) + part.bytes)
            }
            return .appData(spliced(checked.payload.bytes, outer.range(of: object), replacements))
        }
    }

    /// The key puts all notifications of one purchase into one partition.
    private func key(_ checked: CheckedPayload, _ contents: NotificationContents) -> String? {
        let said =
            switch contents.kind {
            case .data: checked.parts.first?.originalTransactionId
            case .summary: String?.none
            case .externalPurchaseToken: outer.text(.externalPurchaseId, of: contents.subject.object)
            case .appData: checked.parts.first?.appTransactionId
            }
        return said.flatMap { $0.isEmpty ? nil : $0 }
    }
}

/// A payload that has passed every step; points into the verifier's documents.
private struct CheckedPayload {
    let payload: AuthenticPayload
    let contents: NotificationContents?
    let subject: Subject
    let parts: [InnerPart]
}

extension PayloadKind {
    fileprivate var environmentMember: MemberName { self == .appTransaction ? .receiptType : .environment }
}

/// Compares bytes: with `==` texts of different bytes can be equal by Unicode's rules.
private func hasSameBytes(_ left: String?, _ right: String) -> Bool { left?.utf8.elementsEqual(right.utf8) ?? false }

/// A part of `bytes` with some ranges replaced.
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
