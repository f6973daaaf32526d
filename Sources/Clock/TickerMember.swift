// One member of the group that shares the ticking.

import Contract
import Kafka
import Log
import Platform
import Records
import Telemetry

/// Owns partitions for as long as the group says so, and ticks them. One thread; good for one joining.
final class TickerMember: RebalanceHooks {
    /// A tick is at most this part of the interval late when it follows notifications: their end is seen by the next look.
    private static let looksPerInterval = 10
    /// Below it the looks themselves would be the load; above it somebody who waits for a tick would notice.
    private static let lookBounds: ClosedRange<Duration> = .milliseconds(50)...(.seconds(3))
    /// A member that dies without leaving holds its partitions' clocks up for this long: a third of the default interval.
    /// Shorter would take partitions away from hosts that only stood still for a moment.
    private static let sessionTimeout: Duration = .seconds(10)
    /// Long enough for one broker of three to be replaced.
    private static let patience: Duration = .seconds(15)
    /// Longer than a member that hangs holds up the others (`max.poll.interval.ms`, two minutes).
    private static let groupPatience: Duration = .seconds(150)
    /// For one question to the brokers, and for a tick's acknowledgement.
    private static let answerLimit: Duration = .seconds(5)
    /// A process may have stood still between its look and its tick, while others took over.
    private static let lookLife: Duration = .seconds(1)
    /// Clocks of synchronised hosts differ by less.
    private static let strangeLeadMilliseconds: Int64 = 5_000

    /// What went well.
    enum Success {
        /// The topic is as it should be. Joining may take as long as the session of a member that died, which harms nobody.
        case topicSeen
        case looked
        /// Ticks were acknowledged, or there is nothing to tick that could be refused.
        case ticked
    }

    var onSuccess: (Success) -> Void = { _ in }

    private let configuration: Ticker.Configuration
    private let topic: String
    private let group: String
    private let metrics: TickerMetrics
    private let logger: Logger
    private let membership: Consumer
    private let reader: PartitionReader
    private let producer: Producer
    private let reports: Reports
    private var schedule: TickSchedule
    /// Whether the group has given partitions, which may be none.
    private var hasJoined = false
    /// By when it has to.
    private var joining = Deadline(after: TickerMember.groupPatience)
    private let lookInterval: Duration

    /// Delivery reports come in while the producer is polled, on the same thread.
    private final class Reports {
        var taken: [DeliveryReport] = []
    }

    init(_ configuration: Ticker.Configuration, names: Names, metrics: TickerMetrics, logger: Logger)
        throws(PropertyFault)
    {
        self.configuration = configuration
        topic = names.topic(.notifications)
        group = names.clockGroup
        self.metrics = metrics
        self.logger = logger
        let clientID = "perennial-clock-\(names.environment.rawValue)"
        reader = try PartitionReader(
            clientID: "\(clientID)-reader", group: group, topic: topic, properties: configuration.kafka)
        // No instance id: who leaves is replaced at once.
        var options = Consumer.Configuration(clientID: clientID, groupID: group, properties: configuration.kafka)
        options.sessionTimeout = Self.sessionTimeout
        membership = try Consumer(options)
        let reports = Reports()
        self.reports = reports
        var producerOptions = Producer.Configuration(clientID: clientID, properties: configuration.kafka)
        // A tick that waits is a tick for a time that has passed.
        producerOptions.deliveryTimeout = Self.answerLimit
        producer = try Producer(producerOptions) { reports.taken.append($0) }
        schedule = TickSchedule(
            interval: max(1, configuration.interval.wholeMilliseconds), life: Ticker.life(in: names.environment))
        lookInterval = min(
            max(configuration.interval / Self.looksPerInterval, Self.lookBounds.lowerBound), Self.lookBounds.upperBound)
    }

    func close(by deadline: Deadline) {
        metrics.partitions.set(0)
        // First the group: the others wait for it.
        membership.close(by: deadline)
        producer.close(by: deadline)
        reader.close(by: deadline)
    }

    // MARK: Membership; called while the consumer is polled

    func assigned(_ partitions: [TopicPartition], by consumer: Consumer) -> AssignmentPlan {
        hasJoined = true
        let numbers = partitions.map(\.partition).filter { $0 < configuration.partitions }
        schedule.take(over: numbers)
        metrics.rebalances.add()
        metrics.partitions.set(Double(numbers.count))
        logger.info("ticking", ["topic": .string(topic), "partitions": .integer(numbers.count)])
        return .readingNothing
    }

    func revoked(_ partitions: [TopicPartition], by consumer: Consumer) {
        schedule.take(over: [])
        hasJoined = false
        joining = Deadline(after: Self.groupPatience)
        metrics.partitions.set(0)
    }

    func lost(_ partitions: [TopicPartition], by consumer: Consumer) { revoked(partitions, by: consumer) }

    // MARK: Work

    func run(until stop: Latch) throws(TickerFault) {
        let target = try checkedTopic()
        onSuccess(.topicSeen)
        try asking { () throws(KafkaFault) in try membership.subscribe(to: [topic], hooks: self) }
        var nextLook = Deadline(after: .zero)
        var notBefore = Deadline(after: .zero)
        var trouble = Deadline(after: Self.patience)
        let step = min(lookInterval / 2, .milliseconds(50))
        while !stop.isOpen {
            try asking { () throws(KafkaFault) in try serveGroup(step) }
            guard hasJoined else {
                if joining.hasPassed {
                    throw TickerFault(.kafka, "the group \(group) has given no partitions for long")
                }
                continue
            }
            let isTime = nextLook.hasPassed || schedule.hasWork(at: WallClock.milliseconds())
            guard isTime, notBefore.hasPassed else { continue }
            nextLook = Deadline(after: lookInterval)
            do throws(KafkaFault) {
                try look(target)
                trouble = Deadline(after: Self.patience)
            } catch {
                if error.remedy != .retrySameCall || trouble.hasPassed { throw TickerFault(error, topic: topic) }
                logger.debug("asking again", ["topic": .string(topic), "reason": .string(error.words)])
                notBefore = Deadline(after: lookInterval)
            }
        }
    }

    /// Before joining: a member that cannot tick would only take partitions away from those that can.
    private func checkedTopic() throws(TickerFault) -> ProducerTopic {
        let (target, counts) = try asking { () throws(KafkaFault) in
            (try producer.topic(topic), try producer.partitionCounts(by: Deadline(after: Self.answerLimit)))
        }
        // What has come to the topic since it was made is nobody's work, and needs no ticks.
        guard let count = counts.first, Int(count) >= configuration.partitions else {
            let fault = LogFault.partitions(of: topic, are: counts.first ?? 0, not: Int32(configuration.partitions))
            throw TickerFault(.topics, fault.words)
        }
        return target
    }

    private func asking<Answer>(_ body: () throws(KafkaFault) -> Answer) throws(TickerFault) -> Answer {
        do throws(KafkaFault) {
            return try body()
        } catch {
            throw TickerFault(error, topic: topic)
        }
    }

    /// Takes part in rebalances. Records never come: all partitions are paused.
    private func serveGroup(_ wait: Duration) throws(KafkaFault) {
        _ = try membership.poll(wait)
    }

    /// Sees what has been appended, and ticks what has been quiet.
    ///
    /// The ends come first, each time: whoever has lost its partitions without knowing sees the ticks of their new owner in them,
    /// and has nothing due.
    private func look(_ target: ProducerTopic) throws(KafkaFault) {
        guard !schedule.owned.isEmpty else { return onSuccess(.ticked) }
        let begin = ContinuousClock.now
        let ends = try reader.ends(of: schedule.owned, by: Deadline(after: Self.answerLimit))
        let now = WallClock.milliseconds()
        for (partition, end) in ends { schedule.saw(end: end, of: partition, at: now) }
        let unread = schedule.unread(at: now)
        guard unread.isEmpty, schedule.unsearched.isEmpty else {
            try read(unread)
            try searchNotifications()
            // That took time. What is due is found by the next look, which comes at once.
            return onSuccess(.looked)
        }
        // A rebalance may be under way, and take partitions from the schedule.
        try serveGroup(.zero)
        guard begin.duration(to: .now) < Self.lookLife else { return }
        let due = schedule.due(at: now)
        if !due.isEmpty { try tick(due, target) }
        onSuccess(due.isEmpty ? .looked : .ticked)
    }

    private func read(_ unread: [Int32: Int64]) throws(KafkaFault) {
        let found = try reader.lastRecords(before: unread, by: Deadline(after: Self.answerLimit))
        for (partition, record) in found {
            schedule.read(record, before: unread[partition, default: 0], of: partition)
        }
        let ahead = schedule.ahead(of: WallClock.milliseconds())
        guard ahead > Self.strangeLeadMilliseconds else { return }
        logger.warning(
            "the last record of a partition lies ahead of this host's clock, and its ticks wait for that time: check the time "
                + "synchronisation here and where notifications are taken in",
            ["topic": .string(topic), "milliseconds": .integer(ahead)])
    }

    /// Where the last record is a tick: is there a notification that keeps the partition alive?
    private func searchNotifications() throws(KafkaFault) {
        let unsearched = schedule.unsearched
        guard let life = schedule.life, !unsearched.isEmpty else { return }
        let found = try reader.lastNotifications(
            since: WallClock.milliseconds() - life, before: unsearched, by: Deadline(after: Self.answerLimit))
        for (partition, timestamp) in found {
            schedule.found(notification: timestamp, before: unsearched[partition, default: 0], of: partition)
        }
    }

    private func tick(_ due: [(partition: Int32, since: Int64?)], _ target: ProducerTopic) throws(KafkaFault) {
        reports.taken = []
        let time = WallClock.milliseconds()
        let value = TickRecord.value(time)
        for (partition, _) in due {
            try producer.send(
                to: target, partition: partition, key: nil, value: value.span,
                headers: TickRecord.headers(partition: partition, time, app: configuration.app), timestamp: time)
        }
        // Every tick has its report by then: its own time limit is shorter.
        try producer.flush(by: Deadline(after: Self.answerLimit + .seconds(1)))
        let acknowledged = WallClock.milliseconds()
        var failure: KafkaCode?
        for report in reports.taken {
            guard report.failure == nil else {
                failure = report.failure
                continue
            }
            schedule.ticked(report.partition, at: report.offset, timestamp: time)
            metrics.ticks.add()
            if let since = due.first(where: { $0.partition == report.partition })?.since {
                metrics.lateness.observe(.milliseconds(max(0, acknowledged - since)))
            }
        }
        if let fault = producer.fatalFault { throw fault }
        guard let failure else { return }
        let isPassing = [KafkaCode.deliveryTimedOut, .timedOut, .transport].contains(failure)
        throw KafkaFault(isPassing ? .retrySameCall : .rebuildClient, failure, operation: "append a tick to \(topic)")
    }
}
