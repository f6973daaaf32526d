// Figures of the business as metrics, for dashboards that have only Prometheus.

internal import Churn
public import Contract
internal import Notices
internal import Platform
internal import Service
internal import Telemetry

/// Every replica of the API shows the same figures, so they are not added up over replicas.
final class BusinessGauges: ServicePart {
    /// The figures change slowly. Making them from two years of 200 kinds of rows takes some tenths of a second.
    static let pause: Duration = .seconds(15)

    let name: String
    private let thread: ThreadPart

    init(
        _ shelf: Shelf, products: ProductGroups, time: ReadAPITime, dayOf: @escaping @Sendable (Int64) -> CivilDay,
        metrics: Metrics
    ) {
        name = "business-\(shelf.names.environment.rawValue)"
        thread = ThreadPart(name, isAlone: true) { stop in
            var board = BusinessBoard(metrics, shelf.names.environment, products)
            repeat {
                board.show(shelf, at: time.elapsed(), now: time.now(), dayOf: dayOf)
                stop.wait(for: Self.pause)
            } while !stop.isOpen
        }
    }

    func start(failed: @escaping @Sendable (any Error) -> Void) throws { try thread.start(failed: failed) }
    func stopIsNear() { thread.stopIsNear() }
    func stop(by deadline: Deadline) throws { try thread.stop(by: deadline) }
}

/// What a product belongs to on a dashboard.
public struct ProductGroups: Sendable {
    private struct Product: Hashable {
        let bundleId: String
        let productId: String
    }

    private var groups: [Product: String] = [:]

    /// A product belongs to the first of the entitlements that it gives, by name. One that gives none stands for itself.
    public init(_ apps: [App] = []) {
        for app in apps {
            for entitlement in app.entitlements.sorted(by: { $0.name > $1.name }) {
                for id in entitlement.productIds {
                    groups[Product(bundleId: app.bundleId, productId: id)] = entitlement.name
                }
            }
        }
    }

    func group(_ bundleId: String, _ productId: String) -> String {
        groups[Product(bundleId: bundleId, productId: productId)] ?? productId
    }
}

/// The gauges of one environment. Used on one thread.
struct BusinessBoard {
    /// Each group has some sixty time series. Groups beyond this number are shown as one.
    static let limitGroups = 50
    static let other = "other"

    /// The counters of a day that dashboards show.
    static let counters: [ChurnCounter] = [
        .started, .adopted, .renewed, .resubscribed, .trials, .trialsConverted, .trialsEnded, .failed, .graceEntered,
        .earlyRecovered, .graceRecovered, .retryRecovered, .retryLost, .lapsedVoluntary, .lapsedBilling, .lapsedPrice,
        .lapsedUnavailable, .lapsedRefund, .lapsedOther, .regained, .charged, .refunded, .refundRequested,
    ]

    private struct Name: Hashable {
        var app: String
        var group: String
    }

    private let metrics: Metrics
    private let environment: String
    private let products: ProductGroups
    /// Groups that have a name of their own. They keep it, so that a series keeps its meaning.
    private var named: Set<Name> = []
    private var shown: Set<Series> = []
    private let openRefunds: Gauge
    private let refundMargin: Gauge

    init(_ metrics: Metrics, _ environment: Environment, _ products: ProductGroups) {
        self.metrics = metrics
        self.environment = environment.rawValue
        self.products = products
        openRefunds = metrics.gauge(
            "perennial_business_refund_requests_open",
            help: "Refund requests whose answer is not decided or not sent yet, before their deadline.",
            labels: ["environment": environment.rawValue])
        refundMargin = metrics.gauge(
            "perennial_business_refund_margin_seconds",
            help: "Time until the earliest deadline of an open refund request, in seconds. NaN: there is none.",
            labels: ["environment": environment.rawValue])
        openRefunds.set(.nan)
        refundMargin.set(.nan)
    }

    mutating func show(_ shelf: Shelf, at elapsed: Duration, now: Int64, dayOf: (Int64) -> CivilDay) {
        // While a copy is being built, the totals grow from zero. Whenever there are no answers, the figures stay as they are.
        if shelf.isAnswering(at: elapsed), let table = shelf.totals.reading?.table { show(table, today: dayOf(now)) }
        let deadlines = shelf.copies.compactMap { $0.openRefundDeadlines(after: now) }
        // Some copy cannot be read now: a smaller number would look like an improvement.
        guard deadlines.count == shelf.copies.count else { return }
        openRefunds.set(Double(deadlines.reduce(0) { $0 + $1.count }))
        refundMargin.set(deadlines.joined().min().map { Double($0 - now) / 1000 } ?? .nan)
    }

    private mutating func show(_ table: CellTable, today: CivilDay) {
        // Sorted, so that two replicas whose first complete copies have the same groups name the same ones.
        let groups = BusinessFigures.groups(table, today: today) { bundleId, productId in
            Name(app: bundleId.description, group: products.group(bundleId.description, productId.description))
        }.sorted { ($0.key.app, $0.key.group) < ($1.key.app, $1.key.group) }
        var values: [Series: Double] = [:]
        for (name, figures) in groups {
            if named.count < Self.limitGroups { named.insert(name) }
            let shown = named.contains(name) ? name : Name(app: Self.other, group: Self.other)
            for (figure, value) in Self.values(figures) {
                values[Series(name: shown, figure: figure), default: 0] += value
            }
        }
        // Each gauge changes once: a reader between two of them sees figures of this moment or of the one before, and no zeros.
        for (series, value) in values { gauge(series).set(value) }
        for series in shown.subtracting(values.keys) { gauge(series).set(0) }
        shown.formUnion(values.keys)
    }

    private enum Figure: Hashable {
        case stock(ChurnCounter)
        case revenue(currency: String)
        case count(ChurnCounter, day: String)
        case failures(outcome: String)
    }

    private struct Series: Hashable {
        var name: Name
        var figure: Figure
    }

    private static func values(_ figures: BusinessFigures.Group) -> [(Figure, Double)] {
        ChurnCounter.allCases.filter(\.isStock).map { (.stock($0), Double(figures.stocks[$0])) }
            + figures.monthlyRevenue.map { (.revenue(currency: $0.key.description), Double($0.value) / 1000) }
            + counters.map { (.count($0, day: "today"), Double(figures.today[$0])) }
            + counters.map { (.count($0, day: "yesterday"), Double(figures.yesterday[$0])) }
            + [
                (.failures(outcome: "any"), Double(figures.failed)),
                (.failures(outcome: "recovered"), Double(figures.recovered)),
            ]
    }

    private func gauge(_ series: Series) -> Gauge {
        let (app, group) = (series.name.app, series.name.group)
        switch series.figure {
        case .stock(let counter):
            return metrics.gauge(
                "perennial_business_subscriptions",
                help: "Subscriptions by state: paid, on trial, in the grace period, in billing retry.",
                labels: ["environment": environment, "app": app, "group": group, "state": counter.stateName])
        case .revenue(let currency):
            return metrics.gauge(
                "perennial_business_monthly_revenue", help: "Monthly recurring revenue, in units of the currency.",
                labels: ["environment": environment, "app": app, "group": group, "currency": currency])
        case .count(let counter, let day):
            return metrics.gauge(
                "perennial_business_day",
                help: "Churn counters of the current day in churn.zone, and of the day before.",
                labels: [
                    "environment": environment, "app": app, "group": group, "counter": counter.name, "day": day,
                ])
        case .failures(let outcome):
            return metrics.gauge(
                "perennial_business_failures",
                help:
                    "Payments that failed in the 30 days that ended 16 days ago, and those of them made within 16 days.",
                labels: ["environment": environment, "app": app, "group": group, "outcome": outcome])
        }
    }
}
