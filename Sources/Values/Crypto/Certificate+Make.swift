// Makes certificates: for the simulator's chain, for tests, and for a server.

internal import CCrypto

/// The contents of a certificate.
public struct CertificateRequest: Sendable {
    public enum Extension: Sendable {
        /// Critical, as in Apple's chain; `pathLength` only for an authority.
        case basicConstraints(isAuthority: Bool, pathLength: Int?)
        /// Critical. Bits as RFC 5280 counts them: 0 digitalSignature, 5 keyCertSign, 6 cRLSign.
        case keyUsage([Int])
        case subjectAlternativeNames(dns: [String], addresses: [String])
        /// Any other extension; `value` is DER.
        case other(identifier: String, isCritical: Bool, value: [UInt8])
    }
    public var commonName: String
    public var organization: String = "Perennial"
    /// The magnitude, big endian; 1...20 bytes.
    public var serial: [UInt8]
    /// In milliseconds; the fraction of a second is dropped.
    public var validity: ClosedRange<Int64>
    /// The identifiers of the subject's and the issuer's key are added unless they are among these.
    public var extensions: [Extension]

    public init(commonName: String, serial: [UInt8], validity: ClosedRange<Int64>, extensions: [Extension]) {
        self.commonName = commonName
        self.serial = serial
        self.validity = validity
        self.extensions = extensions
    }
}

extension Certificate {
    /// With `issuer` nil the certificate is self-signed. The hash is SHA-384 for a P-384 issuer, otherwise SHA-256.
    /// Whether key and certificate of the issuer belong together is not checked, because forgeries are made here too.
    /// With `isDeterministic` the same arguments give the same bytes.
    public static func make(
        _ request: CertificateRequest, key: SigningKey, issuer: (certificate: Certificate, key: SigningKey)? = nil,
        isDeterministic: Bool = false
    ) throws(CertificateFault) -> Certificate {
        let subject = try request.name()
        let keyIdentifier = identifier(of: key)
        let signer = issuer?.key ?? key
        let isSHA384 = signer.curve == .p384
        let algorithm = DER.sequence(try identifierDER(isSHA384 ? "1.2.840.10045.4.3.3" : "1.2.840.10045.4.3.2"))
        let extensions = try request.extensionsDER(
            subjectKey: keyIdentifier, issuerKey: issuer?.certificate.subjectKeyIdentifier)
        let signed = DER.sequence(
            DER.explicit(0, DER.integer([2])),
            try request.serialDER(),
            algorithm,
            issuer?.certificate.subjectDER ?? subject,
            try request.validityDER(),
            subject,
            try publicKeyDER(key),
            DER.explicit(3, extensions))
        let digest = isSHA384 ? SHA384.digest(signed.span) : SHA256.digest(signed.span)
        let signature = signer.sign(digest: digest.span, isDeterministic: isDeterministic)
        let half = signature.count / 2
        let numbers = DER.sequence(DER.integer(Array(signature[..<half])), DER.integer(Array(signature[half...])))
        return try Certificate(der: DER.sequence(signed, algorithm, DER.bits(numbers)))
    }

    private static func publicKeyDER(_ key: SigningKey) throws(CertificateFault) -> [UInt8] {
        let curve = key.curve == .p384 ? "1.3.132.0.34" : "1.2.840.10045.3.1.7"
        return DER.sequence(
            DER.sequence(try identifierDER("1.2.840.10045.2.1"), try identifierDER(curve)), DER.bits(key.publicPoint))
    }

    /// RFC 7093 section 2, method 1: 160 bits of a SHA-256, where RFC 5280 suggests SHA-1.
    private static func identifier(of key: SigningKey) -> [UInt8] {
        let point = key.publicPoint
        return Array(SHA256.digest(point.span).prefix(20))
    }
}

private func identifierDER(_ dotted: String) throws(CertificateFault) -> [UInt8] {
    guard let der = DER.identifier(dotted) else { throw CertificateFault("not an object identifier: \(dotted)") }
    return der
}

extension CertificateRequest {
    fileprivate func name() throws(CertificateFault) -> [UInt8] {
        // The upper bounds of X.520: OpenSSL accepts longer names, other programs do not.
        for text in [commonName, organization] where !(1...64).contains(text.unicodeScalars.count) {
            throw CertificateFault("a name must have 1 to 64 characters: \(text)")
        }
        return DER.sequence(
            DER.set(of: DER.sequence(try identifierDER("2.5.4.3"), DER.text(commonName))),
            DER.set(of: DER.sequence(try identifierDER("2.5.4.10"), DER.text(organization))))
    }

    fileprivate func serialDER() throws(CertificateFault) -> [UInt8] {
        guard (1...20).contains(serial.count), serial.contains(where: { $0 != 0 }) else {
            throw CertificateFault("a serial number must have 1 to 20 bytes and not be 0 (RFC 5280 4.1.2.2)")
        }
        return DER.integer(serial)
    }

    fileprivate func validityDER() throws(CertificateFault) -> [UInt8] {
        guard let first = DER.time(seconds: validity.lowerBound.seconds),
            let last = DER.time(seconds: validity.upperBound.seconds)
        else { throw CertificateFault("the validity of a certificate must be within the years 1950 to 9999") }
        return DER.sequence(first, last)
    }

    fileprivate func extensionsDER(
        subjectKey: [UInt8], issuerKey: [UInt8]?
    ) throws(CertificateFault) -> [UInt8] {
        var content: [UInt8] = []
        var isGiven: Set<String> = []
        for wanted in extensions {
            let (identifier, isCritical, value) = try wanted.parts()
            guard isGiven.insert(identifier).inserted else {
                throw CertificateFault("an extension is given twice: \(identifier)")
            }
            content += try Self.extensionDER(identifier, isCritical: isCritical, value)
        }
        if !isGiven.contains("2.5.29.14") {
            content += try Self.extensionDER("2.5.29.14", isCritical: false, DER.octets(subjectKey))
        }
        if let issuerKey, !issuerKey.isEmpty, !isGiven.contains("2.5.29.35") {
            content += try Self.extensionDER("2.5.29.35", isCritical: false, DER.sequence(DER.implicit(0, issuerKey)))
        }
        return DER.sequence(content)
    }

    private static func extensionDER(
        _ identifier: String, isCritical: Bool, _ value: [UInt8]
    ) throws(CertificateFault) -> [UInt8] {
        let name = try identifierDER(identifier)
        // DER omits default values, so a false is not written.
        return isCritical
            ? DER.sequence(name, DER.boolean(true), DER.octets(value)) : DER.sequence(name, DER.octets(value))
    }
}

extension CertificateRequest.Extension {
    fileprivate func parts() throws(CertificateFault) -> (identifier: String, isCritical: Bool, value: [UInt8]) {
        switch self {
        case .basicConstraints(isAuthority: false, pathLength: nil): return ("2.5.29.19", true, DER.sequence())
        case .basicConstraints(isAuthority: false, pathLength: .some):
            throw CertificateFault("only a CA certificate can have a path length")
        case .basicConstraints(isAuthority: true, pathLength: nil):
            return ("2.5.29.19", true, DER.sequence(DER.boolean(true)))
        case .basicConstraints(isAuthority: true, pathLength: let length?):
            guard let length = UInt8(exactly: length) else { throw CertificateFault("a path length must be 0 to 255") }
            return ("2.5.29.19", true, DER.sequence(DER.boolean(true), DER.integer([length])))
        case .keyUsage(let bits):
            guard bits.allSatisfy((0...8).contains) else { throw CertificateFault("keyUsage bits must be 0 to 8") }
            return ("2.5.29.15", true, DER.namedBits(bits))
        case .subjectAlternativeNames(let dns, let addresses):
            var names = dns.flatMap { DER.implicit(2, Array($0.utf8)) }
            for address in addresses { names += DER.implicit(7, try Self.bytes(ofAddress: address)) }
            return ("2.5.29.17", false, DER.sequence(names))
        case .other(let identifier, let isCritical, let value): return (identifier, isCritical, value)
        }
    }

    /// 4 or 16 bytes.
    private static func bytes(ofAddress address: String) throws(CertificateFault) -> [UInt8] {
        let bytes = [UInt8](unsafeUninitializedCapacity: 16) { buffer, initialized in
            initialized = perennial_address_bytes(address, buffer.baseAddress)
        }
        guard !bytes.isEmpty else { throw CertificateFault("not an address: \(address)") }
        return bytes
    }
}

extension Int64 {
    /// Of milliseconds, rounded down.
    fileprivate var seconds: Int64 { self / 1000 - (self % 1000 < 0 ? 1 : 0) }
}
