// The settings that decisions depend on.

public import Contract
internal import Crypto
internal import JSON
internal import Notices

public struct ConsumptionRules: Sendable {
    /// Apple asks for an answer within this time. It counts from the date on the request, so a request that arrives
    /// after retries of Apple leaves less time.
    public static let timeToAnswer: Int64 = 12 * 3_600_000
    /// Requests are decided at least this long before the deadline, so that there is time to send and to retry.
    static let timeToSend: Int64 = 30 * 60_000
    /// Time after the deadline, so that the row of the last attempt has been read.
    static let timeToSettle: Int64 = 60_000

    /// nil: answers contain facts, and no preference except the one from `usage`.
    public let policy: RefundPolicy?
    /// How long a request waits for usage.
    let wait: Int64
    private let bundleIds: Set<Text>
    private let periods: [Product: Period]

    private struct Product: Hashable {
        let bundleId: Text
        let productId: Text
    }

    /// - Parameter wait: in milliseconds, not negative.
    public init(apps: [App], policy: RefundPolicy?, wait: Int64) {
        precondition(wait >= 0)
        self.policy = policy
        self.wait = wait
        bundleIds = Set(apps.map { Text($0.bundleId) })
        var periods: [Product: Period] = [:]
        for app in apps {
            for product in app.periods {
                periods[Product(bundleId: Text(app.bundleId), productId: Text(product.productId))] = product.period
            }
        }
        self.periods = periods
    }

    func knows(_ bundleId: Text?) -> Bool { bundleId.map(bundleIds.contains) ?? false }

    /// How much of a non-renewing purchase has passed, in thousandths of a percent, rounded down. nil: its length is
    /// unknown.
    func elapsedShare(of purchase: Purchase, at instant: Int64) -> Int64? {
        guard purchase.isNonRenewing, let bundleId = purchase.bundleId, let productId = purchase.productId,
            let period = periods[Product(bundleId: bundleId, productId: productId)]
        else { return nil }
        let start = purchase.purchaseDate
        let length = Int128(adding(period, to: start)) - Int128(start)
        guard length > 0 else { return nil }
        let share = (Int128(instant) - Int128(start)) * 100_000 / length
        return Int64(min(max(share, 0), 100_000))
    }

    /// When to decide a request if no more usage arrives.
    func decisionDue(requestedAt timestamp: Int64, deadline: Int64) -> Int64 {
        min(adding(timestamp, wait), adding(deadline, -Self.timeToSend))
    }

    /// A hash of the settings that does not depend on their order: 16 hexadecimal digits.
    public var fingerprint: String {
        var told = JSONWriter()
        told.array { told in
            told.integer(wait)
            for bundleId in bundleIds.sorted() { told.string(utf8: bundleId.bytes) }
            let sorted = periods.sorted {
                ($0.key.bundleId, $0.key.productId) < ($1.key.bundleId, $1.key.productId)
            }
            for (product, period) in sorted {
                told.string(utf8: product.bundleId.bytes)
                told.string(utf8: product.productId.bytes)
                told.string(period.text)
            }
        }
        let bytes = told.bytes + (policy?.fingerprint ?? [])
        return hexadecimal(Array(SHA256.digest(bytes.span).prefix(8)))
    }
}
