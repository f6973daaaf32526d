// Brokers: cores, memory and disk of each.

import Contract

public struct BrokerSizing: Sendable {
    /// As many as a topic has copies: each keeps one copy of everything.
    public let brokers: Int
    /// Of all brokers together.
    public let coresOnAverage: Double
    public let coresAtPeak: Double
    /// Of each broker, when one is lost in the busiest time and the others do its work.
    public let coresOfEach: Double
    /// Of each broker's process. The memory that the system uses to keep files at hand is not counted.
    public let memoryBytes: Double
    public let diskBytes: Double

    /// Our choice: more cores than that are seldom given to a broker.
    static let mostCores = 16.0

    /// More brokers than copies should share the work.
    public var areTooFew: Bool { coresOfEach > Self.mostCores }
}

struct BrokerFormulas {
    let installation: Installation
    let figures: MeasuredFigures
    let rates: Rates
    let processes: ProcessFormulas

    private func work(at factor: Double) -> Double {
        let seconds = Installation.secondsInDay
        // The records of a refund request are counted as the records of notifications.
        let requests = (rates.usage + rates.refundRequests * 4) * factor / seconds
        let notifications = rates.notifications * factor / seconds
        var microseconds =
            processes.commits(at: factor) * figures[.brokerPerCommit]
            + (notifications + requests) * figures[.brokerPerNotification]
        if installation.decisions.archivesSignedPayloads {
            microseconds += notifications * figures[.brokerPerArchivedNotification]
        }
        return microseconds / 1e6
    }

    func brokers(_ topics: [TopicSizing]) -> BrokerSizing {
        let copies = installation.decisions.plan.replicationFactor
        let rest = Double(copies) * figures[.brokerRest]
        // A copy on another broker was not measured: each is counted as if it were written by clients.
        let average = work(at: 1) * Double(copies)
        let peak = work(at: installation.decisions.peakFactor) * Double(copies)
        return BrokerSizing(
            brokers: copies, coresOnAverage: rest + average, coresAtPeak: rest + peak,
            coresOfEach: figures[.brokerRest] + peak / Double(max(1, copies - 1)),
            memoryBytes: figures[.brokerMemory],
            diskBytes: topics.reduce(0) { $0 + $1.keptBytesInAllCopies } / Double(copies))
    }
}
