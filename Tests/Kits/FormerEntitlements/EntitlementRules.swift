// The settings that answers depend on.

internal import Contract
internal import Crypto
internal import JSON
internal import Notices

struct EntitlementRules: Sendable {
    /// What an app's settings say about a product.
    struct Product: Sendable {
        /// Sorted by bytes.
        var entitlements: [String] = []
        /// For a product that does not renew.
        var period: Period?
    }

    private struct ProductName: Hashable, Comparable, Sendable {
        let bundleId: Text
        let productId: Text

        static func < (left: ProductName, right: ProductName) -> Bool {
            (left.bundleId, left.productId) < (right.bundleId, right.productId)
        }
    }

    /// A renewal may be reported late: while a renewal is expected, access lasts this much longer.
    let leeway: Int64
    /// In sandbox retries take minutes, and Apple does not document how many.
    let isSandbox: Bool
    private var products: [ProductName: Product] = [:]

    /// - Parameter leeway: in milliseconds, not negative.
    init(apps: [App], leeway: Int64, environment: Environment) {
        precondition(leeway >= 0)
        self.leeway = leeway
        isSandbox = environment == .sandbox
        for app in apps {
            for entitlement in app.entitlements {
                for productId in entitlement.productIds {
                    let name = ProductName(bundleId: Text(app.bundleId), productId: Text(productId))
                    products[name, default: Product()].entitlements.append(entitlement.name)
                }
            }
            for product in app.periods {
                let name = ProductName(bundleId: Text(app.bundleId), productId: Text(product.productId))
                products[name, default: Product()].period = product.period
            }
        }
        for name in products.keys { products[name]?.entitlements.sort { Text($0) < Text($1) } }
    }

    /// A hash of the settings that does not depend on their order: 16 hexadecimal digits. Settings with the same
    /// meaning may still differ.
    var fingerprint: String {
        var told = JSONWriter()
        told.array { told in
            told.integer(leeway)
            told.bool(isSandbox)
            for name in products.keys.sorted() {
                guard let product = products[name] else { continue }
                told.string(utf8: name.bundleId.bytes)
                told.string(utf8: name.productId.bytes)
                told.array { told in for entitlement in product.entitlements { told.string(entitlement) } }
                if let period = product.period { told.string(period.text) } else { told.null() }
            }
        }
        return hexadecimal(Array(SHA256.digest(told.bytes.span).prefix(8)))
    }

    func product(of transaction: Transaction) -> Product {
        guard let bundleId = transaction.bundleId, let productId = transaction.productId else { return Product() }
        return products[ProductName(bundleId: bundleId, productId: productId)] ?? Product()
    }

    /// How long Apple retries billing. nil: it is not known.
    func retryWindow(isCommitment: Bool) -> Int64? {
        isSandbox ? nil : (isCommitment ? 90 : 60) * millisecondsPerDay
    }
}
