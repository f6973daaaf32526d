// Paths from a leaf to a pinned root.

internal import CCrypto

/// A set of pinned roots.
///
/// Only a self-signed certificate ends a path. A pinned one that is not (an intermediate, a cross-signed root) stays without
/// effect, so who reads settings refuses it (`Certificate.isSelfSigned`, `isAuthority`). The set may be shared by threads.
public struct TrustAnchors: Sendable {
    public let roots: [Certificate]
    private let anchors: [Anchor]

    public init(_ roots: [Certificate]) {
        self.roots = roots
        anchors = roots.map(Anchor.init)
    }

    /// Whether one of the roots, by its own key, vouches for it. Of anything else the key may be one that takes long to verify with.
    public func haveSigned(_ intermediate: Certificate) -> Bool {
        roots.contains { perennial_certificate_is_signed_by(intermediate.handle, $0.handle) }
    }

    /// The roots by which leaf, intermediate and root form a path as OpenSSL 3 judges it with its default flags, dates apart,
    /// of exactly these three certificates.
    ///
    /// Each is judged by itself: in a set OpenSSL stops at the first whose name and key fit, and of two that differ in nothing
    /// but their dates it would be chance which one that is.
    public func roots(of leaf: Certificate, through intermediate: Certificate) -> [Certificate] {
        // The leaf's own signature first: who makes up leaves below Apple's intermediate pays for one verification here, not
        // for two with each root. Ask `haveSigned` before: here the key is whatever the intermediate says.
        guard perennial_certificate_is_signed_by(leaf.handle, intermediate.handle) else { return [] }
        return zip(roots, anchors).compactMap { root, anchor in anchor.holds(leaf, through: intermediate) ? root : nil }
    }

    /// Owns what OpenSSL makes of a root. It locks by itself where it has to.
    private final class Anchor: @unchecked Sendable {
        private let anchor: OpaquePointer

        init(_ root: Certificate) {
            guard let anchor = perennial_anchor_create(root.handle) else {
                // It takes a reference and a list of one; nothing else can fail.
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
