// A chain that was judged, for looking up its revocation status.

/// Leaf and intermediate of a chain that leads to a pinned root.
public struct TrustedChain: Sendable {
    public let leaf: Certificate
    public let intermediate: Certificate
    public let root: Certificate
    /// Hash of the three certificates together; it does not depend on who read them. Computed once, because it is
    /// looked up for every payload.
    public let fingerprint: [UInt8]

    public init(leaf: Certificate, intermediate: Certificate, root: Certificate) {
        self.leaf = leaf
        self.intermediate = intermediate
        self.root = root
        // Each encoding contains its length, so two different chains cannot give the same bytes.
        let bytes = leaf.der + intermediate.der + root.der
        fingerprint = SHA256.digest(bytes.span)
    }
}

public enum RevocationStatus: Sendable { case good, revoked, unknown }
