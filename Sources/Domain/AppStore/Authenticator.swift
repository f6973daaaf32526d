// The part of verification that is the same for every signed text: form, chain, dates, signature.

import Crypto
import JSON
import Records

/// A payload whose chain and signature are valid. Its contents have not been checked yet.
struct AuthenticPayload {
    /// The JSON that was signed; `document`, which it was read into, contains it too.
    let bytes: [UInt8]
    let signer: CheckedHeader
    /// Hash of header, dot and payload; it can be continued.
    let hash: SHA256.Prefix
    let parts: SignedText
    /// The payload's own date; nil if it is missing or not a whole number of 64 bits.
    let date: Int64?
}

final class Authenticator {
    /// How far clocks may differ. A later date is treated as now, and an outer payload with a later date is
    /// `in_future`.
    static let limitAhead: Int64 = 5 * 60 * 1000

    private var check: ChainCheck
    private var cache = ChainCache()
    private var header: JSONDocument
    var revocation: ((TrustedChain) -> RevocationStatus)?
    /// Chains that `revocation` did not know, each once, of all payloads since this list was emptied.
    var unknownChains: [TrustedChain] = []

    init(anchors: TrustAnchors, maxBytes: Int) {
        check = ChainCheck(anchors: anchors)
        header = PayloadJSON.document(maxBytes: maxBytes)
    }

    var cachedHeaders: Int { cache.count }
    var judgedChains: Int { check.judgedChains }

    /// The steps from `malformed` to `bad_signature`; their order is part of the contract. On success `document`
    /// contains the payload.
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
            throw Rejection(.badSignature, "the signature is not valid for this text")
        }
        if known == nil { cache.keep(signer) }
        return AuthenticPayload(bytes: payload, signer: signer, hash: hash, parts: parts, date: date)
    }

    /// The certificates are checked at the payload's own date: a text that was signed while they were valid stays
    /// valid, and Apple's history is read up to 180 days later. A date in the future proves nothing, so now is used
    /// instead.
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
    /// The member with the date of signing.
    var dateMember: MemberName {
        switch self {
        case .notification, .transaction, .renewal: .signedDate
        case .appTransaction: .receiptCreationDate
        }
    }
}
