// A chain that was judged, and what is known of its revocation.

/// Leaf and intermediate of a chain that leads to a pinned root.
public struct TrustedChain: Sendable {
    public let leaf: Certificate
    public let intermediate: Certificate
    public let root: Certificate
    /// Of the three certificates together: the same whoever has read them. Made once, since it is looked up for every payload.
    public let fingerprint: [UInt8]

    public init(leaf: Certificate, intermediate: Certificate, root: Certificate) {
        self.leaf = leaf
        self.intermediate = intermediate
        self.root = root
        // Each encoding tells its length, so two chains cannot join to the same bytes.
        let bytes = leaf.der + intermediate.der + root.der
        fingerprint = SHA256.digest(bytes.span)
    }
}

public enum RevocationStatus: Sendable { case good, revoked, unknown }
