// What an installation is to serve, and what it has decided about its topics and processes.

public import Contract

/// The description that a sizing begins with. It is checked when it is made, so every number that follows from it is finite.
public struct Installation: Sendable {
    /// What customers do.
    public struct Customers: Sendable {
        /// Subscriptions that are paid now.
        public var subscribers: Int
        public var renewalsADay: Double
        /// Subscriptions that will have ended after the years of the installation. What is known of them is kept.
        public var churned: Double
        /// One-time purchases. Each is kept like a subscription.
        public var purchasesADay: Double = 0
        public var refundRequestsADay: Double = 0
        public var usageRecordsADay: Double = 0
        /// Questions to the read API, on average.
        public var questionsASecond: Double = 0
        /// Kinds of subscriptions that churn counts apart: product, plan, storefront and currency together.
        public var kinds: Int = 1

        public init(subscribers: Int, renewalsADay: Double, churned: Double) {
            self.subscribers = subscribers
            self.renewalsADay = renewalsADay
            self.churned = churned
        }
    }

    /// What the operator has decided.
    public struct Decisions: Sendable {
        public var plan: TopicPlan
        public var years: Int = 1
        /// How many times the average the busiest time is.
        public var peakFactor: Double = 1
        public var tickSeconds: Double = 60
        public var archivesSignedPayloads = true
        /// Bytes of a record of `notifications` and of `signed`; nil: those that were measured.
        public var notificationBytes: Double?
        public var signedBytes: Double?
        public var workerThreads: Int = 1
        public var stateCacheBytes: Double
        public var ingestBufferedBytes: Double

        public init(plan: TopicPlan, stateCacheBytes: Double, ingestBufferedBytes: Double) {
            self.plan = plan
            self.stateCacheBytes = stateCacheBytes
            self.ingestBufferedBytes = ingestBufferedBytes
        }
    }

    public let customers: Customers
    public let decisions: Decisions

    /// The shortest period that Apple sells, in days.
    static let shortestPeriod = 7.0
    static let greatestCount = 1e8
    static let greatestCopies = 10
    static let greatestYears = 30
    static let daysInYear = 365.0
    static let secondsInDay = 86_400.0

    public init(_ customers: Customers, _ decisions: Decisions) throws(SizingFaults) {
        let faults = Self.faults(customers) + Self.faults(decisions)
        guard faults.isEmpty else { throw SizingFaults(texts: faults) }
        self.customers = customers
        self.decisions = decisions
    }

    private static func faults(_ customers: Customers) -> [String] {
        var faults: [String] = []
        func check(_ name: String, _ option: String, _ value: Double, from least: Double, to most: Double) {
            // A comparison with NaN is false.
            guard value >= least, value <= most else {
                return faults.append("\(name) must be a number from \(plain(least)) to \(plain(most)) (\(option))")
            }
        }
        check("the subscribers", "--subscribers", Double(customers.subscribers), from: 1, to: greatestCount)
        // Numbers that were not given are computed from it.
        guard faults.isEmpty else { return faults }
        check(
            "the churned subscribers", "--churned, or --churn-a-month and --years", customers.churned, from: 0,
            to: 100 * greatestCount)
        check("the renewals a day", "--renewals-a-day", customers.renewalsADay, from: 1e-6, to: greatestCount)
        check("the purchases a day", "--purchases-a-day", customers.purchasesADay, from: 0, to: greatestCount)
        check(
            "the refund requests a day", "--refund-requests-a-day", customers.refundRequestsADay, from: 0,
            to: greatestCount)
        check("the usage records a day", "--usage-a-day", customers.usageRecordsADay, from: 0, to: greatestCount)
        check("the questions a second", "--questions-a-second", customers.questionsASecond, from: 0, to: 1e6)
        check("the kinds", "--kinds", Double(customers.kinds), from: 1, to: 1e6)
        guard faults.isEmpty else { return faults }
        let most = Double(customers.subscribers) / shortestPeriod
        // Shares of plans may add up to a little more than 100 %, as numbers of a computer do.
        if customers.renewalsADay > most * 1.000_001 {
            faults.append(
                "\(plain(customers.renewalsADay)) renewals a day are too many for \(customers.subscribers) subscribers: Apple's shortest "
                    + "period is a week, so these renew at most \(plain(most)) times a day")
        }
        let paid = Double(customers.subscribers) + customers.purchasesADay
        if customers.refundRequestsADay > paid {
            faults.append(
                "\(plain(customers.refundRequestsADay)) refund requests a day are more than there are subscribers and purchases a "
                    + "day (\(plain(paid)))")
        }
        return faults
    }

    private static func faults(_ decisions: Decisions) -> [String] {
        var faults: [String] = []
        func check(_ name: String, _ option: String, _ value: Double, from least: Double, to most: Double) {
            guard value >= least, value <= most else {
                return faults.append("\(name) must be a number from \(plain(least)) to \(plain(most)) (\(option))")
            }
        }
        check("the years", "--years", Double(decisions.years), from: 1, to: Double(greatestYears))
        check("the peak factor", "--peak", decisions.peakFactor, from: 1, to: 1000)
        check("the interval of ticks in seconds", "tick.interval.ms", decisions.tickSeconds, from: 0.1, to: 3600)
        check("the partitions", "partitions", Double(decisions.plan.partitions), from: 1, to: 10_000)
        check(
            "the copies of a topic", "topics.replication.factor", Double(decisions.plan.replicationFactor), from: 1,
            to: Double(greatestCopies))
        check("the threads of a worker", "worker.threads", Double(decisions.workerThreads), from: 1, to: 256)
        check("the cache of a worker", "state.cache.bytes", decisions.stateCacheBytes, from: 1, to: 1e13)
        check("the buffer of ingest", "ingest.max.buffered.bytes", decisions.ingestBufferedBytes, from: 1, to: 1e13)
        if let bytes = decisions.notificationBytes {
            check(
                "the bytes of a notification", "--notification-bytes", bytes, from: 200,
                to: Double(TopicPlan.limitBatchBytes))
        }
        if let bytes = decisions.signedBytes {
            check(
                "the bytes of a signed payload", "--signed-bytes", bytes, from: 200,
                to: Double(TopicPlan.limitBatchBytes))
        }
        if decisions.signedBytes != nil, !decisions.archivesSignedPayloads {
            faults.append("signed payloads are not archived (archive.signed.payloads=false), so they have no size")
        }
        if decisions.workerThreads > decisions.plan.partitions {
            faults.append(
                "a worker of \(decisions.workerThreads) threads has nothing to do for all of them: there are only "
                    + "\(decisions.plan.partitions) partitions")
        }
        return faults
    }
}

/// Everything that is wrong with a description, one sentence each.
public struct SizingFaults: Error, Equatable {
    public let texts: [String]

    public init(texts: [String]) { self.texts = texts }
}

/// Without decimals if there are none to show.
func plain(_ value: Double) -> String {
    guard abs(value) < 1e15 else { return "\(value)" }
    return value == value.rounded() ? "\(Int64(value))" : "\((value * 1000).rounded() / 1000)"
}
