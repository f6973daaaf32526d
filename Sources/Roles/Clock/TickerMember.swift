// One member of the group that divides the partitions.

import Contract
import Kafka
import Log
import Platform
import Records
import Telemetry

/// Owns partitions as long as the group assigns them, and ticks them. For use by one thread, and for one join.
final class TickerMember: RebalanceHooks {
    /// A tick that follows notifications is late by at most this part of the interval: the next look sees their end.
    private static let looksPerInterval = 10
    /// Below this range the looks themselves would be the load; above it someone who waits for a tick would notice.
    private static let lookBounds: ClosedRange<Duration> = .milliseconds(50)...(.seconds(3))
    /// If a member crashes without leaving, its partitions get no ticks for this long: a third of the default interval.
    /// A shorter time would take partitions away from hosts that only paused for a moment.
    private static let sessionTimeout: Duration = .seconds(10)
    /// Long enough to replace one broker of three.
    private static let patience: Duration = .seconds(15)
    /// Longer than a hanging member can block the others (`max.poll.interval.ms`, two minutes).
    private static let groupPatience: Duration = .seconds(150)
    /// For one request to the brokers, and for a tick's acknowledgement.
    private static let answerLimit: Duration = .seconds(5)
    /// A process may have been paused between its look and its tick, while others took over.
    private static let lookLife: Duration = .seconds(1)
    /// Clocks of synchronised hosts differ by less.
    private static let strangeLeadMilliseconds: Int64 = 5_000

    /// What succeeded.
    enum Success {
        /// The topic is right. Joining may take as long as the session of a crashed member, which does no harm.
        case topicSeen
        case looked
        /// Ticks were acknowledged, or no tick is due that could be refused.
        case ticked
    }

    var onSuccess: (Success) -> Void = { _ in }
    /// Brokers refused the time of this host. If no tick is due, one is written all the same, so that a clock that was
    /// set is noticed now and not one interval later.
    var isTimeInDoubt = false

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
    /// Whether the group has assigned partitions, perhaps none.
    private var hasJoined = false
    /// The deadline for that.
    private var joining = Deadline(after: TickerMember.groupPatience)
    private let lookInterval: Duration

    /// The producer delivers reports while it is polled, on the same thread.
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
        // No instance id: a member that leaves is replaced at once.
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
        // The group comes first: the other members wait for it.
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
                    throw TickerFault(.kafka, "the group \(group) has assigned no partitions for too long")
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
                logger.debug("retrying a request", ["topic": .string(topic), "reason": .string(error.words)])
                notBefore = Deadline(after: lookInterval)
            }
        }
    }

    /// Called before joining: a member that cannot tick would only take partitions away from those that can.
    private func checkedTopic() throws(TickerFault) -> ProducerTopic {
        let (target, counts) = try asking { () throws(KafkaFault) in
            (try producer.topic(topic), try producer.partitionCounts(by: Deadline(after: Self.answerLimit)))
        }
        // Partitions that were added to the topic later are not used, and need no ticks.
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

    /// Takes part in rebalances. It gets no records: all partitions are paused.
    private func serveGroup(_ wait: Duration) throws(KafkaFault) {
        _ = try membership.poll(wait)
    }

    /// Finds what was appended, and ticks the silent partitions.
    ///
    /// The ends are always read first: a member that has lost its partitions without knowing sees the ticks of their
    /// new owner, and has nothing due.
    private func look(_ target: ProducerTopic) throws(KafkaFault) {
        guard !schedule.owned.isEmpty else { return onSuccess(.ticked) }
        let begin = ContinuousClock.now
        // Read before the ends: until this time, they show every record. Of a later silence they show nothing.
        let now = WallClock.milliseconds()
        let ends = try reader.ends(of: schedule.owned, by: Deadline(after: Self.answerLimit))
        for (partition, end) in ends { schedule.saw(end: end, of: partition, at: now) }
        let unread = schedule.unread(at: now)
        guard unread.isEmpty, schedule.unsearched.isEmpty else {
            try read(unread)
            try searchNotifications()
            // That took time. The next look, which follows at once, finds what is due.
            return onSuccess(.looked)
        }
        // A rebalance may be in progress, and remove partitions from the schedule.
        try serveGroup(.zero)
        guard begin.duration(to: .now) < Self.lookLife else { return }
        var due = schedule.due(at: now)
        if due.isEmpty, isTimeInDoubt {
            // Without a partition that gets ticks, no tick can be refused.
            guard schedule.hasLiving(at: now) else { return onSuccess(.ticked) }
            due = schedule.trial(at: now).map { [($0, nil)] } ?? []
        }
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
            "the last record of a partition is ahead of this host's clock, and its ticks wait until then: check the "
                + "time synchronisation here and on the hosts of ingest",
            ["topic": .string(topic), "milliseconds": .integer(ahead)])
    }

    /// If the last record is a tick: finds out whether a notification keeps the partition alive.
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
        // By then every tick has its report: its own time limit is shorter.
        try producer.flush(by: Deadline(after: Self.answerLimit + .seconds(1)))
        let acknowledged = WallClock.milliseconds()
        var failure: KafkaCode?
        for report in reports.taken {
            guard report.failure == nil else {
                failure = report.failure
                continue
            }
            isTimeInDoubt = false
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
