// What the simulated store sells, and where.

public import Contract

/// One app of the simulated store. All apps sell the same products under different names.
public struct SimulatedApp: Sendable {
    public let bundleId: String
    public let appAppleId: Int64
    let group: String
    /// Days of billing grace, as the developer set them in App Store Connect.
    let graceDays: Int64
    let products: Products

    /// - Parameter graceDays: 3, 16 or 28.
    public init(bundleId: String, appAppleId: Int64, graceDays: Int64 = 16) {
        self.bundleId = bundleId
        self.appAppleId = appAppleId
        self.graceDays = graceDays
        // Apple's group ids have eight digits.
        group = String(21_400_000 + appAppleId % 100_000)
        products = Products(bundleId: bundleId)
    }

    /// Its entry in the `apps` file of an installation: three entitlements, each of which includes the one below.
    public var contractApp: Contract.App {
        Contract.App(
            bundleId: bundleId, appAppleId: appAppleId,
            entitlements: entitlements.map { Contract.App.Entitlement(name: $0, productIds: $1.map(\.id)) },
            periods: Contract.Period("P\(Products.passDays)D").map {
                [Contract.App.ProductPeriod(productId: products.pass.id, period: $0)]
            } ?? [])
    }

    private var entitlements: [(String, [Product])] {
        let subscriptions = products.all.filter { $0.kind == .autoRenewable }
        return [
            ("basic", subscriptions + [products.pass, products.lifetime]),
            ("plus", subscriptions.filter { $0.level >= 2 } + [products.lifetime]),
            ("premium", subscriptions.filter { $0.level >= 3 }),
        ]
    }

    /// The entitlements of a product.
    func names(of productId: String) -> [String] {
        entitlements.filter { $0.1.contains { $0.id == productId } }.map(\.0)
    }
}

enum ProductKind: String, Sendable {
    case autoRenewable = "Auto-Renewable Subscription"
    case nonConsumable = "Non-Consumable"
    case consumable = "Consumable"
    case nonRenewing = "Non-Renewing Subscription"
}

struct Product: Sendable {
    let id: String
    let kind: ProductKind
    let length: PlanLength
    /// The rank in the group: greater is better; products with equal levels are crossgrades of each other.
    let level: Int
    /// Milliunits of a currency that is worth one euro.
    let price: Int64
    /// The monthly price under the plan with a commitment of twelve months.
    let monthlyCommitmentPrice: Int64?

    fileprivate init(
        _ id: String, _ kind: ProductKind, _ length: PlanLength = .month, level: Int = 0, price: Int64,
        monthlyCommitmentPrice: Int64? = nil
    ) {
        self.id = id
        self.kind = kind
        self.length = length
        self.level = level
        self.price = price
        self.monthlyCommitmentPrice = monthlyCommitmentPrice
    }
}

struct Products: Sendable {
    /// The length of the non-renewing pass, which Apple does not know.
    static let passDays: Int64 = 30

    let basicWeek, basicMonth, audioMonth, plusMonth, plusYear, premiumMonth, credits, lifetime, pass: Product

    init(bundleId: String) {
        func subscription(
            _ name: String, _ length: PlanLength, _ level: Int, _ price: Int64, commitment: Int64? = nil
        ) -> Product {
            Product(
                "\(bundleId).\(name)", .autoRenewable, length, level: level, price: price,
                monthlyCommitmentPrice: commitment)
        }
        basicWeek = subscription("basic.week", .week, 1, 2990)
        basicMonth = subscription("basic.month", .month, 1, 7990)
        audioMonth = subscription("audio.month", .month, 1, 7990)
        plusMonth = subscription("plus.month", .month, 2, 12_990)
        plusYear = subscription("plus.year", .year, 2, 99_990, commitment: 9990)
        premiumMonth = subscription("premium.month", .month, 3, 19_990)
        credits = Product("\(bundleId).credits.100", .consumable, price: 1990)
        lifetime = Product("\(bundleId).lifetime", .nonConsumable, price: 149_990)
        pass = Product("\(bundleId).pass.30", .nonRenewing, price: 9990)
    }

    var all: [Product] {
        [basicWeek, basicMonth, audioMonth, plusMonth, plusYear, premiumMonth, credits, lifetime, pass]
    }
}

struct Storefront: Sendable {
    let country: String
    let id: String
    let currency: String
    /// Units of the currency per euro, and the multiple in milliunits that prices are rounded to.
    private let rate: Int64
    private let step: Int64

    /// Germany comes first, because the commitment plan is not sold in the United States.
    static let all = [
        Storefront(country: "DEU", id: "143443", currency: "EUR", rate: 1, step: 10),
        Storefront(country: "FRA", id: "143442", currency: "EUR", rate: 1, step: 10),
        Storefront(country: "GBR", id: "143444", currency: "GBP", rate: 1, step: 10),
        Storefront(country: "JPN", id: "143462", currency: "JPY", rate: 160, step: 10_000),
        Storefront(country: "KOR", id: "143466", currency: "KRW", rate: 1500, step: 100_000),
        Storefront(country: "USA", id: "143441", currency: "USD", rate: 1, step: 10),
    ]

    var sellsCommitments: Bool { country != "USA" }

    func price(_ euros: Int64) -> Int64 { euros * rate / step * step }
}
