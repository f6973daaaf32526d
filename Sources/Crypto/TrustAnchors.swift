// Paths from a leaf to a pinned root.

internal import CCrypto

/// A set of pinned roots.
///
/// Only a self-signed certificate ends a path. A pinned one that is not (an intermediate, a cross-signed root) stays without
/// effect, so who reads settings refuses it (`Certificate.isSelfSigned`, `isAuthority`). The set may be shared by threads.
public struct TrustAnchors: Sendable {
    public let roots: [Certificate]
    private let store: Store

    public init(_ roots: [Certificate]) {
        self.roots = roots
        store = Store(roots)
    }

    /// The root by which leaf, intermediate and root form a path as OpenSSL 3 judges it with its default flags, dates apart,
    /// of exactly these three certificates; nil when there is none.
    public func root(of leaf: Certificate, through intermediate: Certificate) -> Certificate? {
        let place = perennial_anchors_judge(store.anchors, leaf.handle, intermediate.handle)
        return place < 0 ? nil : roots[place]
    }

    /// Owns OpenSSL's set of the roots. It locks by itself where it has to.
    private final class Store: @unchecked Sendable {
        let anchors: OpaquePointer

        init(_ roots: [Certificate]) {
            guard let anchors = perennial_anchors_create(roots.map(\.handle), roots.count) else {
                // It takes references and a list of pointers; nothing else can fail.
                fatalError("no memory for the pinned roots")
            }
            self.anchors = anchors
        }

        deinit { perennial_anchors_destroy(anchors) }
    }
}
