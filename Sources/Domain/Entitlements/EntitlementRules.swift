// The settings that answers depend on.

public import Contract
internal import Crypto
internal import JSON
internal import Notices
import SubscriptionHistory

public struct EntitlementRules: Sendable {
    /// What an app's settings say about a product. Its names are in `bytes`.
    struct Product: Sendable, Equatable {
        fileprivate let bundleId: Range<Int>
        fileprivate let productId: Range<Int>
        /// The names of the entitlements, sorted by bytes, as an array in JSON.
        fileprivate let json: Range<Int>
        /// The same as values, by their place in `names`.
        fileprivate let names: Int
        /// For a product that does not renew.
        let period: Period?
    }

    private struct ProductName: Hashable, Comparable {
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
    /// Sorted by names. All texts lie one after the other in `bytes`, so that a search touches no other memory.
    private var products: [Product] = []
    private var bytes: [UInt8] = []
    private var names: [[String]] = []

    /// - Parameter leeway: in milliseconds, not negative.
    public init(apps: [App], leeway: Int64, environment: Environment) {
        precondition(leeway >= 0)
        self.leeway = leeway
        isSandbox = environment == .sandbox
        var told: [ProductName: (entitlements: [String], period: Period?)] = [:]
        for app in apps {
            for entitlement in app.entitlements {
                for productId in entitlement.productIds {
                    let name = ProductName(bundleId: Text(app.bundleId), productId: Text(productId))
                    told[name, default: ([], nil)].entitlements.append(entitlement.name)
                }
            }
            for product in app.periods {
                let name = ProductName(bundleId: Text(app.bundleId), productId: Text(product.productId))
                told[name, default: ([], nil)].period = product.period
            }
        }
        for (name, product) in told.sorted(by: { $0.key < $1.key }) {
            let sorted = product.entitlements.sorted { Text($0) < Text($1) }
            var json = JSONWriter()
            json.array { list in for entitlement in sorted { list.string(entitlement) } }
            names.append(sorted)
            products.append(
                Product(
                    bundleId: add(name.bundleId.bytes), productId: add(name.productId.bytes), json: add(json.bytes),
                    names: names.count - 1, period: product.period))
        }
    }

    private mutating func add(_ text: [UInt8]) -> Range<Int> {
        bytes += text
        return bytes.count - text.count..<bytes.count
    }

    /// A hash of the settings that does not depend on their order: 16 hexadecimal digits. Settings with the same
    /// meaning may still differ.
    public var fingerprint: String {
        var told = JSONWriter()
        told.array { told in
            told.integer(leeway)
            told.bool(isSandbox)
            for product in products {
                told.string(utf8: Array(bytes[product.bundleId]))
                told.string(utf8: Array(bytes[product.productId]))
                told.json(Array(bytes[product.json]))
                if let period = product.period { told.string(period.text) } else { told.null() }
            }
        }
        return hexadecimal(Array(SHA256.digest(told.bytes.span).prefix(8)))
    }

    /// nil: the settings say nothing about it.
    func product(of terms: Terms, _ texts: borrowing KnownTexts) -> Product? {
        guard let bundleId = texts[terms.bundleId], let productId = texts[terms.productId] else { return nil }
        return bytes.withUnsafeBufferPointer { bytes in
            guard let start = bytes.baseAddress else { return nil }
            func place(_ range: Range<Int>) -> TextPlace {
                TextPlace(start: start + range.lowerBound, count: range.count)
            }
            var (low, high) = (0, products.count)
            while low < high {
                let middle = (low + high) / 2
                let product = products[middle]
                let (itsBundle, itsProduct) = (place(product.bundleId), place(product.productId))
                if itsBundle == bundleId, itsProduct == productId { return product }
                let isBefore = itsBundle == bundleId ? itsProduct < productId : itsBundle < bundleId
                if isBefore { low = middle + 1 } else { high = middle }
            }
            return nil
        }
    }

    /// The names of the entitlements that a product gives, sorted by bytes.
    func entitlements(of product: Product?) -> [String] { product.map { names[$0.names] } ?? [] }

    /// The same as an array in JSON.
    func writeEntitlements(of product: Product?, to json: inout JSONWriter) {
        guard let product else { return json.array { _ in } }
        bytes.withUnsafeBufferPointer { json.json(UnsafeBufferPointer(rebasing: $0[product.json])) }
    }

    /// How long Apple retries billing. nil: it is not known.
    func retryWindow(isCommitment: Bool) -> Int64? {
        isSandbox ? nil : (isCommitment ? 90 : 60) * millisecondsPerDay
    }
}
