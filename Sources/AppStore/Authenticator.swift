// The part of verification that every signed text goes through, whatever it holds: form, chain, dates, signature.

import Crypto
import JSON

/// A payload whose chain and signature hold. What it says is not judged yet.
struct AuthenticPayload {
    /// JSON as it was signed; the document that was given to read it into holds it, too.
    let bytes: [UInt8]
    let signer: CheckedHeader
    /// Of header, dot and payload: more can be added to it.
    let hash: SHA256.Prefix
    let parts: SignedText
    /// What the payload says of its time; nil when it is missing or no whole number of 64 bits.
    let date: Int64?
}

final class Authenticator {
    /// How far clocks may disagree; what is dated later is judged as of now, and an outer payload is `in_future`.
    static let limitAhead: Int64 = 5 * 60 * 1000

    private var check: ChainCheck
    private var cache = ChainCache()
    private var header: JSONDocument
    var revocation: ((TrustedChain) -> RevocationStatus)?
    /// Chains that `revocation` did not know, of all payloads since this was emptied; each once.
    var unknownChains: [TrustedChain] = []

    init(anchors: TrustAnchors, maxBytes: Int) {
        check = ChainCheck(anchors: anchors)
        header = PayloadJSON.document(maxBytes: maxBytes)
    }

    var cachedHeaders: Int { cache.count }
    var judgedChains: Int { check.judgedChains }

    /// The steps from `malformed` to `bad_signature`; their order is part of the contract. On success `document` holds the
    /// payload.
    func authenticate(
        _ text: Span<UInt8>, as kind: PayloadKind, into document: inout JSONDocument, now: Int64
    ) throws(Rejection) -> AuthenticPayload {
        let known = cache.entry(for: text, now: now)
        let parts = try SignedText(text, headerCount: known?.text.count)
        let headerText = text.extracting(parts.header)
        if known == nil {
            let bytes = try SignedText.decode(headerText, "header")
            try PayloadJSON.read(bytes.span, into: &header, "header")
        }
        let payload = try SignedText.decode(text.extracting(parts.payload), "payload")
        try PayloadJSON.read(payload.span, into: &document, "payload")
        let signature = try SignedText.decode(text.extracting(parts.signature), "signature")

        let signer: CheckedHeader
        if let known { signer = known } else { signer = try check.check(header, text: headerText, now: now) }
        let date = document.integer(kind.dateMember, of: document.root)
        try checkDates(signer, date: date, now: now)
        try checkRevocation(signer)
        var hash = signer.hash
        hash.add(text.extracting(parts.header.upperBound..<parts.payload.upperBound))
        guard signer.key.verify(signature.span, digest: hash.digest().span) else {
            throw Rejection(.badSignature, "the signature does not verify")
        }
        if known == nil { cache.keep(signer) }
        return AuthenticPayload(bytes: payload, signer: signer, hash: hash, parts: parts, date: date)
    }

    /// At the payload's own date: what was signed while the certificates were valid stays true, and Apple's history is read
    /// 180 days later. A date ahead of the clock is nobody's evidence.
    private func checkDates(_ signer: CheckedHeader, date: Int64?, now: Int64) throws(Rejection) {
        let judged = date.flatMap { isAhead($0, of: now) ? nil : $0 } ?? now
        guard signer.isValid(at: judged) else {
            throw Rejection(.expiredChain, "a certificate is not valid at the payload's date")
        }
    }

    private func checkRevocation(_ signer: CheckedHeader) throws(Rejection) {
        switch revocation?(signer.chain) {
        case nil, .good: break
        case .revoked: throw Rejection(.revoked, "a certificate of the chain is revoked")
        case .unknown:
            if !unknownChains.contains(where: { $0.fingerprint == signer.chain.fingerprint }) {
                unknownChains.append(signer.chain)
            }
        }
    }
}

func isAhead(_ date: Int64, of now: Int64) -> Bool {
    let (limit, overflows) = now.addingReportingOverflow(Authenticator.limitAhead)
    return !overflows && date > limit
}

extension PayloadKind {
    /// What tells when it was signed.
    var dateMember: StaticString {
        switch self {
        case .notification, .transaction, .renewal: "signedDate"
        case .appTransaction: "receiptCreationDate"
        }
    }
}
