// How many records arrive, on average.

import Contract
import Glibc

/// Records a day of the topics that workers read.
public struct Rates: Sendable {
    /// All notifications: of subscriptions, purchases and refund requests.
    public let notifications: Double
    public let ticks: Double
    public let usage: Double
    public let refundRequests: Double

    /// Apple asks, and later says what it did.
    static let notificationsPerRequest = 2.0

    init(_ installation: Installation, _ figures: MeasuredFigures) {
        let customers = installation.customers
        notifications =
            customers.renewalsADay * figures[.notificationsPerRenewal] + customers.purchasesADay
            + customers.refundRequestsADay * Self.notificationsPerRequest
        ticks = Self.ticks(
            notifications: notifications, partitions: installation.decisions.plan.partitions,
            interval: installation.decisions.tickSeconds)
        usage = customers.usageRecordsADay
        refundRequests = customers.refundRequestsADay
    }

    /// A partition gets a tick when it was quiet for an interval. If notifications arrive independently of each other, L a second,
    /// then the time to the next record is at most the interval T, and the record is a tick with the probability e^-LT. So there
    /// are L / (e^LT - 1) ticks a second, which is 1/T where nothing arrives.
    static func ticks(notifications: Double, partitions: Int, interval: Double) -> Double {
        let seconds = Installation.secondsInDay
        let expected = notifications / seconds / Double(partitions) * interval
        let perInterval = expected < 1e-9 ? 1 : expected / expm1(expected)
        return Double(partitions) * seconds / interval * perInterval
    }

    /// Records a day that a worker reads and commits.
    var read: Double { notifications + ticks }
}
