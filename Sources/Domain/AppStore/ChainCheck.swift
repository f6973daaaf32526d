// From the header of a signed text to a trusted chain: algorithm, form, certificates, path, markers.

import Crypto
import JSON

/// Extensions that only Apple's certificates for signing App Store data have.
enum Marker {
    static let leaf = "1.2.840.113635.100.6.11.1"
    static let intermediate = "1.2.840.113635.100.6.2.1"
}

struct ChainCheck {
    private static let certificatesInChain = 3

    let anchors: TrustAnchors
    private var verdicts = ChainVerdicts()
    /// How many chains have needed a check of their signatures.
    private(set) var judgedChains = 0

    init(anchors: TrustAnchors) {
        self.anchors = anchors
    }

    /// The order of the steps is part of the contract: the first step that fails determines the code.
    mutating func check(
        _ header: borrowing JSONDocument, text: Span<UInt8>, now: Int64
    ) throws(Rejection) -> CheckedHeader {
        try checkAlgorithm(header)
        try checkForm(header)
        let texts = try certificateTexts(of: header)
        let (path, judgedAt) = try path(of: texts, now: now)
        return CheckedHeader(
            text: text.withUnsafeBufferPointer { Array($0) }, chain: path.chain, roots: path.roots, key: path.key,
            checkedAt: judgedAt)
    }

    /// Apple's chain is public, and anybody can write the other members of a header. So a chain is identified by its
    /// certificates alone.
    private mutating func path(
        of texts: [[UInt8]], now: Int64
    ) throws(Rejection) -> (path: TrustedPath, judgedAt: Int64) {
        if let known = verdicts.verdict(on: texts, now: now) {
            if known.texts[2] != texts[2] { _ = try certificate(texts[2], at: 2) }
            return (try known.result.get(), known.judgedAt)
        }
        let certificates = try certificates(of: texts)
        judgedChains += 1
        do throws(Rejection) {
            let path = try judge(certificates, texts, now: now)
            verdicts.keep(ChainVerdict(texts: texts, result: .success(path), judgedAt: now))
            return (path, now)
        } catch {
            verdicts.keep(ChainVerdict(texts: texts, result: .failure(error), judgedAt: now))
            throw error
        }
    }

    private mutating func judge(
        _ certificates: [Certificate], _ texts: [[UInt8]], now: Int64
    ) throws(Rejection) -> TrustedPath {
        let (leaf, intermediate) = (certificates[0], certificates[1])
        guard let key = leaf.p256Key else {
            throw Rejection(.badCertificate, "x5c[0]: its key is not on P-256, with a named curve and both coordinates")
        }
        guard leaf.mayVerifySignatures else {
            throw Rejection(.badCertificate, "x5c[0]: its keyUsage does not allow signatures")
        }
        // The sender chooses the third certificate; trust comes only from the pinned roots.
        let isVouchedFor = verdicts.isVouchedFor(texts[1], now: now) { anchors.haveSigned(intermediate) }
        let roots = isVouchedFor ? anchors.roots(of: leaf, through: intermediate) : []
        guard let root = roots.first else {
            throw Rejection(.untrustedChain, "the chain does not lead to a pinned root")
        }
        guard leaf.hasExtension(Marker.leaf) else {
            throw Rejection(.missingMarker, "x5c[0] has no extension \(Marker.leaf)")
        }
        guard intermediate.hasExtension(Marker.intermediate) else {
            throw Rejection(.missingMarker, "x5c[1] has no extension \(Marker.intermediate)")
        }
        return TrustedPath(
            chain: TrustedChain(leaf: leaf, intermediate: intermediate, root: root), roots: roots, key: key)
    }

    /// The text never chooses the algorithm: only one is accepted.
    private func checkAlgorithm(_ header: borrowing JSONDocument) throws(Rejection) {
        guard header.has("alg", of: header.root, equalTo: "ES256") else {
            throw Rejection(.badAlgorithm, "alg is not the string ES256")
        }
    }

    /// `jwk`, `jku`, `x5u`, `kid` and similar members are ignored: a key that the text brings itself proves nothing.
    private func checkForm(_ header: borrowing JSONDocument) throws(Rejection) {
        guard header.member("crit", of: header.root) == nil else {
            throw Rejection(.malformed, "header: crit requires extensions that are not supported")
        }
        if let isEncoded = header.member("b64", of: header.root), header.bool(isEncoded.value) != true {
            throw Rejection(.malformed, "header: b64 is not true")
        }
        guard let chain = header.value("x5c", of: header.root), header.kind(of: chain) == .array else {
            throw Rejection(.malformed, "header: x5c is not an array")
        }
        var element = header.firstElement(of: chain)
        while let text = element {
            guard header.kind(of: text) == .string else {
                throw Rejection(.malformed, "header: x5c contains elements that are not strings")
            }
            element = header.element(after: text)
        }
    }

    private func certificateTexts(of header: borrowing JSONDocument) throws(Rejection) -> [[UInt8]] {
        var texts: [[UInt8]] = []
        var element = header.value("x5c", of: header.root).flatMap { header.firstElement(of: $0) }
        while let value = element, texts.count <= Self.certificatesInChain {
            texts.append(header.bytes(of: value) ?? [])
            element = header.element(after: value)
        }
        guard texts.count == Self.certificatesInChain else {
            throw Rejection(.badChainLength, "x5c does not contain 3 certificates")
        }
        return texts
    }

    /// All three are read, even the third, which is not used: there is only one valid form of a header, not a looser
    /// one as well.
    private func certificates(of texts: [[UInt8]]) throws(Rejection) -> [Certificate] {
        var certificates: [Certificate] = []
        for (index, text) in texts.enumerated() {
            certificates.append(try certificate(text, at: index))
        }
        return certificates
    }

    private func certificate(_ text: [UInt8], at index: Int) throws(Rejection) -> Certificate {
        guard let der = Base64.decodeStandard(text.span) else {
            throw Rejection(.badCertificate, "x5c[\(index)]: not canonical base64")
        }
        do throws(CertificateFault) {
            return try Certificate(der: der)
        } catch {
            throw Rejection(.badCertificate, "x5c[\(index)]: \(error)")
        }
    }
}
