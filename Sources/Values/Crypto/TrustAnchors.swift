// Finds paths from a leaf to a pinned root.

internal import CCrypto

/// A set of pinned roots.
///
/// Only a self-signed certificate ends a path. A pinned certificate that is not self-signed (an intermediate, a
/// cross-signed root) has no effect, so code that reads settings refuses it (`Certificate.isSelfSigned`,
/// `isAuthority`). Threads may share the set.
public struct TrustAnchors: Sendable {
    public let roots: [Certificate]
    private let anchors: [Anchor]

    public init(_ roots: [Certificate]) {
        self.roots = roots
        anchors = roots.map(Anchor.init)
    }

    /// Whether one of the roots has signed `intermediate`. Only the roots' own keys are used: another key could be one
    /// that takes long to verify with.
    public func haveSigned(_ intermediate: Certificate) -> Bool {
        roots.contains { perennial_certificate_is_signed_by(intermediate.handle, $0.handle) }
    }

    /// The roots that form a path with leaf and intermediate, of exactly these three certificates, as OpenSSL 3 judges
    /// it with its default flags, apart from dates.
    ///
    /// Each root is judged separately: in a set OpenSSL stops at the first root whose name and key match, and of two
    /// that differ only in their dates it would be chance which one that is.
    public func roots(of leaf: Certificate, through intermediate: Certificate) -> [Certificate] {
        // The leaf's own signature first: a sender who invents leaves below Apple's intermediate then causes one
        // verification, not two for each root. Call `haveSigned` before: here the intermediate chooses the key.
        guard perennial_certificate_is_signed_by(leaf.handle, intermediate.handle) else { return [] }
        return zip(roots, anchors).compactMap { root, anchor in anchor.holds(leaf, through: intermediate) ? root : nil }
    }

    /// Owns OpenSSL's data for a root. OpenSSL does the locking that is needed.
    private final class Anchor: @unchecked Sendable {
        private let anchor: OpaquePointer

        init(_ root: Certificate) {
            guard let anchor = perennial_anchor_create(root.handle) else {
                // It takes a reference and a list with one element; nothing else can fail.
                fatalError("no memory for a pinned root")
            }
            self.anchor = anchor
        }

        deinit { perennial_anchor_destroy(anchor) }

        func holds(_ leaf: Certificate, through intermediate: Certificate) -> Bool {
            perennial_anchor_judge(anchor, leaf.handle, intermediate.handle)
        }
    }
}
