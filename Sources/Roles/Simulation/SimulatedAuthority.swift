// A certificate authority with the same structure as Apple's, and its signatures.

public import Crypto

/// Root, intermediate and leaf with the sizes, curves, extensions and markers of Apple's, under another root. A
/// verifier that pins this root accepts its signatures like Apple's.
public final class SimulatedAuthority: Sendable {
    public let root: Certificate
    public let intermediate: Certificate
    public let leaf: Certificate
    let rootKey: SigningKey
    let intermediateKey: SigningKey
    let leafKey: SigningKey
    private let header: [UInt8]

    /// 2014 to 2049: all simulations lie in between, and certificates use two-digit years until 2049.
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

    /// Compact serialisation. The same payload always gives the same text. Callable from any thread.
    public func sign(_ payload: [UInt8]) -> [UInt8] { JWS.sign(payload, encodedHeader: header, key: leafKey) }
}
