// An own certificate authority in Apple's shape, and signatures by it.

public import Crypto

/// Root, intermediate and leaf as Apple's are, by size, curve, extensions and marker, under an own root. What it signs
/// verifies like Apple's for whoever pins this root.
public final class SimulatedAuthority: Sendable {
    public let root: Certificate
    public let intermediate: Certificate
    public let leaf: Certificate
    let rootKey: SigningKey
    let intermediateKey: SigningKey
    let leafKey: SigningKey
    private let header: [UInt8]

    /// 2014 to 2049: simulations lie in between, and certificates count years of two digits until 2049.
    public static let validity: ClosedRange<Int64> =
        Int64(dayNumber(2014, 1, 1)) * day...Int64(dayNumber(2050, 1, 1)) * day - second

    public init(seed: UInt64) throws(CertificateFault) {
        let chain = try CertificateChain(seed: seed)
        root = chain.root
        intermediate = chain.intermediate
        leaf = chain.leaf
        rootKey = chain.rootKey
        intermediateKey = chain.intermediateKey
        leafKey = chain.leafKey
        let header = JWS.header(certificates: [leaf.der, intermediate.der, root.der])
        self.header = Base64.encodeURL(header.span)
    }

    /// For `verify.roots`.
    public var rootPEM: [UInt8] { root.pem }

    /// Compact serialisation. The same payload gives the same text. Any thread.
    public func sign(_ payload: [UInt8]) -> [UInt8] { JWS.sign(payload, encodedHeader: header, key: leafKey) }
}
