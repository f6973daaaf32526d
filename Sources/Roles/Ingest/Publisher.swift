// The thread that writes to Kafka.

public import Contract
public import Kafka
import Log
public import Platform
public import Service
import Synchronization
public import Telemetry

/// Accepts publications from any thread and writes their records with one idempotent producer. A publication is
/// finished when all of its records are acknowledged, when one is refused, or when its deadline passes.
public final class Publisher: RecordSink, ServicePart {
    public struct Configuration: Sendable {
        public var properties: ClientProperties
        public var prefix: TopicPrefix
        public var partitions: Int32
        /// The topics that are written to, in both environments.
        public var topics: [TopicID]
        /// Most publications that wait for the next burst, which comes within 60 ms.
        public var queued = 4096
        /// Most records in librdkafka's own queue; publications beyond this are answered 503.
        public var queuedRecords = 20_000

        public init(properties: ClientProperties, prefix: TopicPrefix, partitions: Int32, topics: [TopicID]) {
            self.properties = properties
            self.prefix = prefix
            self.partitions = partitions
            self.topics = topics
        }
    }

    public let name = "publisher"
    private let configuration: Configuration
    private let logger: Logger
    private let refusals: RefusalLog
    private let topicsTrouble: @Sendable () -> String?
    private let lateCounter: Counter
    private let waitingGauge: Gauge
    private let mailbox: Mailbox<Publication>
    /// nil while a producer is working.
    private let trouble = Mutex<Trouble?>(Trouble(failure: .notConnected, words: "no broker has answered yet"))
    private let clock = ClockSuspicion()
    private let stopRequested = Latch()
    private let ended = Latch()

    /// With records in flight the thread checks this often for new publications and for acknowledgements, and finds
    /// several each time. Otherwise it sleeps until a publication arrives. These milliseconds delay nobody who matters,
    /// least of all Apple.
    private static let turn: Duration = .milliseconds(5)
    /// Only so that all records of a burst (`BurstPace`) are there before librdkafka writes its requests.
    private static let lingerMilliseconds = 2
    private static let idleInterval: Duration = .milliseconds(250)
    /// How often deadlines are checked. Each check goes through all waiting publications: some thousands if Kafka is
    /// slow.
    private static let expiryInterval: Duration = .milliseconds(10)
    /// For all topics together, which are queried one after the other. A stop waits for it.
    private static let topicsLimit: Duration = .seconds(5)
    /// Only the statistics show that the producer has its id. Two a second, also later, cost some tenths of a percent
    /// of one core.
    private static let statisticsInterval: Duration = .milliseconds(500)
    /// What is left at the end has been answered 503, or is anonymous garbage. A working Kafka acknowledges it in this
    /// time.
    private static let flushLimit: Duration = .seconds(5)
    /// For closing a producer with nothing left to wait for.
    private static let closeLimit: Duration = .seconds(2)

    private struct Trouble {
        /// The failure that requests get.
        let failure: PublishFailure
        let words: String
    }

    /// Adds the condition `host-clock` to `health`.
    /// - Parameter topicsTrouble: returns what is wrong with the topics; nil if nothing is.
    public init(
        _ configuration: Configuration, metrics: Metrics, health: Health, logger: Logger, refusals: RefusalLog,
        topicsTrouble: @escaping @Sendable () -> String?
    ) {
        self.configuration = configuration
        self.logger = logger
        self.refusals = refusals
        self.topicsTrouble = topicsTrouble
        mailbox = Mailbox(capacity: configuration.queued)
        lateCounter = metrics.counter(
            "perennial_ingest_written_late_total",
            help: "Publications that Kafka acknowledged after their request had been answered 503.")
        waitingGauge = metrics.gauge(
            "perennial_ingest_publications_waiting", help: "Publications sent to Kafka that are not acknowledged yet.")
        let clock = clock
        health.condition("host-clock") { clock.reason }
    }

    /// Why nothing can be written now; nil while a producer is working.
    public var brokerTrouble: String? { trouble.withLock { $0?.words } }

    public func publish(_ publication: Publication) {
        if topicsTrouble() != nil {
            publication.refuse(.wrongTopics)
        } else if stopRequested.isOpen {
            publication.refuse(.stopping)
        } else if let failure = troubleFailure {
            publication.refuse(failure)
        } else if !mailbox.post(publication) {
            publication.refuse(.queueFull)
        } else if let failure = troubleFailure {
            // The producer has been closed meanwhile, and its thread may have emptied the mailbox before this
            // publication was posted.
            refuseWaiting(failure)
        }
    }

    private var troubleFailure: PublishFailure? { trouble.withLock { $0?.failure } }

    private func refuseWaiting(_ failure: PublishFailure) {
        for publication in mailbox.take(waiting: .zero) { publication.refuse(failure) }
    }

    public func start(failed: @escaping @Sendable (any Error) -> Void) throws {
        let thread = WorkerThread.start(name) {
            defer { self.ended.open() }
            do {
                while !self.stopRequested.isOpen { try self.work() }
                self.mailbox.close()
                self.refuseWaiting(.stopping)
            } catch {
                self.mailbox.close()
                self.refuseWaiting(.notConnected)
                failed(error)
            }
        }
        if case .failure(let error)? = thread.result { throw error }
    }

    public func stop(by deadline: Deadline) throws {
        stopRequested.open()
        mailbox.close()
        guard ended.wait(until: deadline) else { throw ServicePartFault.stillRunning }
    }

    // MARK: On the thread of the publisher

    /// Runs one producer from start to end.
    private func work() throws {
        let inFlight = InFlight(tell: hear)
        let logger = logger
        var options = Producer.Configuration(clientID: "perennial-ingest", properties: configuration.properties)
        options.queuedRecords = configuration.queuedRecords
        options.lingerMilliseconds = Self.lingerMilliseconds
        options.statisticsInterval = Self.statisticsInterval
        let hasID = Latch()
        options.onEvent = { event in
            if case .statistics(let json) = event {
                if !hasID.isOpen, Self.showsID(json) { hasID.open() }
            } else {
                Self.log(event, logger)
            }
        }
        let producer = try Producer(options) { inFlight.report($0) }
        var outlets: [Outlet: ProducerTopic] = [:]
        let places = configuration.places
        for place in places { outlets[place.outlet] = try producer.topic(place.name) }
        connect(producer, places.map(\.name), hasID)
        serve(producer, outlets, inFlight)
        end(producer, inFlight)
    }

    /// In this order, so that no request waits longer for the end of a producer than it would for Kafka:
    ///
    /// 1. The mailbox accepts nothing more, and the publications in it are answered.
    /// 2. At a stop, records in flight may still be acknowledged, each until its deadline. For a producer that is being
    ///    replaced nobody waits: no acknowledgement can be expected.
    /// 3. The producer is closed; everything that it still held, such as room, is given back.
    private func end(_ producer: Producer, _ inFlight: InFlight) {
        let failure: PublishFailure = stopRequested.isOpen ? .stopping : .notConnected
        trouble.withLock { trouble in
            if trouble == nil { trouble = Trouble(failure: failure, words: "the Kafka producer is being closed") }
        }
        refuseWaiting(failure)
        if stopRequested.isOpen {
            let limit = Deadline(after: Self.flushLimit)
            while producer.outstanding > 0, producer.fatalFault == nil, !limit.hasPassed {
                producer.poll(Self.turn)
                inFlight.expire()
            }
        }
        inFlight.answerAll(failure)
        let isGone = producer.close(by: Deadline(after: Self.closeLimit))
        inFlight.abandon(failure)
        waitingGauge.set(0)
        if !isGone { logger.warning("a Kafka producer did not close in time and was abandoned") }
    }

    /// Returns when the producer can write. Then every topic exists with its number of partitions, and is known to the
    /// producer, so that the first record does not wait up to a second for it. Kafka has also given the producer its
    /// id, without which it sends nothing. Also returns at the stop, and when the producer cannot continue.
    private func connect(_ producer: Producer, _ topics: [String], _ hasID: Latch) {
        while !stopRequested.isOpen, producer.fatalFault == nil {
            let found = look(producer, topics, hasID)
            trouble.withLock { $0 = found }
            if found == nil { return }
            stopRequested.wait(for: .milliseconds(500))
        }
    }

    private func look(_ producer: Producer, _ topics: [String], _ hasID: Latch) -> Trouble? {
        do throws(KafkaFault) {
            let counts = try producer.partitionCounts(by: Deadline(after: Self.topicsLimit))
            let found = Dictionary(zip(topics, counts.map { Int($0) })) { first, _ in first }
            if let words = configuration.trouble(with: found) { return Trouble(failure: .wrongTopics, words: words) }
        } catch {
            producer.poll()
            return Trouble(
                failure: error.code == .unknownTopicOrPartition ? .wrongTopics : .notConnected,
                words: error.words + newestCause(in: producer.recentFaults))
        }
        let limit = Deadline(after: Self.statisticsInterval * 2)
        while !hasID.isOpen {
            if limit.hasPassed || stopRequested.isOpen {
                return Trouble(
                    failure: .notConnected,
                    words: "Kafka has not given this producer an id yet" + newestCause(in: producer.recentFaults))
            }
            producer.poll(.milliseconds(20))
        }
        return nil
    }

    private static func showsID(_ statistics: [UInt8]) -> Bool {
        (try? Statistics(json: statistics))?.idempotenceState == "Assigned"
    }

    /// Returns at the stop, or when the producer cannot continue.
    private func serve(_ producer: Producer, _ outlets: [Outlet: ProducerTopic], _ inFlight: InFlight) {
        var lastExpiry = ContinuousClock.now
        var pace = BurstPace()
        while true {
            let isStopping = stopRequested.isOpen
            let isIdle = producer.outstanding == 0
            let isDue = isStopping || pace.isDue(at: .now, awaitsKafka: !isIdle)
            if isDue {
                let burst = mailbox.take(waiting: isIdle ? Self.idleInterval : .zero)
                for publication in burst { send(publication, producer, outlets, inFlight) }
                if !burst.isEmpty { pace.sent(at: .now) }
            }
            producer.poll(.zero)
            if lastExpiry.duration(to: .now) >= Self.expiryInterval {
                inFlight.expire()
                lastExpiry = .now
            }
            waitingGauge.set(Double(inFlight.count))
            if let fault = producer.fatalFault {
                trouble.withLock { $0 = Trouble(failure: .notConnected, words: fault.words) }
                logger.error("the Kafka producer is being replaced", ["reason": .string(fault.words)])
                return
            }
            // Everything posted before the mailbox closed has been sent above.
            if isStopping { return }
            if producer.outstanding > 0 || !isDue { pause(for: Self.turn) }
        }
    }

    private func send(
        _ publication: Publication, _ producer: Producer, _ outlets: [Outlet: ProducerTopic], _ inFlight: InFlight
    ) {
        guard !publication.deadline.hasPassed else { return publication.refuse(.timedOut) }
        let entry = inFlight.begin(publication)
        for record in publication.records {
            guard let outlet = outlets[Outlet(topic: record.topic, environment: record.environment)] else {
                preconditionFailure("\(record.topic.name) is not among the topics of this publisher")
            }
            let token = inFlight.token(for: entry)
            do throws(KafkaFault) {
                try producer.send(
                    to: outlet, partition: Partitioner.partition(of: record.key, count: configuration.partitions),
                    key: record.key.span, value: record.value.span, headers: record.headers,
                    timestamp: record.timestamp, token: token)
            } catch {
                inFlight.withdraw(token, PublishFailure(error.code))
                if error.code != .queueFull { hear(.refused(error.code)) }
                return
            }
        }
    }

    private func hear(_ news: InFlight.News) {
        switch news {
        case .clockIsRight: clock.clear()
        case .clockIsAhead:
            if clock.raise() {
                logger.error(
                    "Kafka refuses notifications", ["reason": .string(KafkaCode.invalidTimestamp.explanation)])
            }
        case .writtenLate: lateCounter.add()
        case .refused(let code): refusals.note("kafka_\(code.name)")
        }
    }

    private static func log(_ event: ClientEvent, _ logger: Logger) {
        switch event {
        case .log(.error, let facility, let message), .log(.warning, let facility, let message):
            logger.warning("librdkafka", ["facility": .string(facility), "detail": .string(message)])
        case .error(let code, let detail):
            logger.debug("librdkafka", ["code": .string(code.name), "detail": .string(detail)])
        case .log, .statistics, .producerReplaced, .advice: break
        }
    }
}

struct Outlet: Hashable {
    let topic: TopicID
    let environment: Contract.Environment
}

extension Publisher.Configuration {
    /// All topics that are written to, with their names in Kafka.
    var places: [(outlet: Outlet, name: String)] {
        Contract.Environment.allCases.flatMap { environment in
            let names = Names(prefix: prefix, environment: environment)
            return topics.map { (Outlet(topic: $0, environment: environment), names.topic($0)) }
        }
    }

    /// What is wrong with the topics, given the partition counts of those that exist; nil if nothing is.
    func trouble(with partitionCounts: [String: Int]) -> String? {
        var missing: [String] = []
        var different: [String] = []
        // If one topic has as many partitions as the setting says, the others were enlarged after they were made. Keys
        // stay where they are: the setting counts.
        let isProven = places.contains { partitionCounts[$0.name] == Int(partitions) }
        for name in places.map(\.name) {
            switch partitionCounts[name] {
            case nil: missing.append(name)
            case .some(let count) where count < Int(partitions) || (count > Int(partitions) && !isProven):
                different.append("\(name) has \(count)")
            case .some: break
            }
        }
        var words: [String] = []
        if !missing.isEmpty {
            words.append(
                "missing, or this user cannot describe it: \(missing.joined(separator: ", ")); perennial topics apply "
                    + "creates what is missing")
        }
        if !different.isEmpty {
            words.append(
                "the setting partitions says \(partitions), and \(different.joined(separator: ", ")): keys would "
                    + "be in other partitions. The setting stays the number that the topics were made with: put it back if it was "
                    + "changed, or use another topic.prefix"
            )
        }
        return words.isEmpty ? nil : words.joined(separator: "; ")
    }
}

/// Whether the brokers have recently refused records because of this host's clock.
final class ClockSuspicion: Sendable {
    private let refusal = Mutex<ContinuousClock.Instant?>(nil)
    /// After this time without another refusal the clock counts as right again: a process that is not ready receives no
    /// requests, and only a notification can show that the clock was set.
    private static let memory: Duration = .seconds(30)

    var reason: String? {
        refusal.withLock { since in
            guard let since, since.duration(to: .now) < Self.memory else { return nil }
            return KafkaCode.invalidTimestamp.explanation
        }
    }

    /// true: the clock was not suspected before.
    func raise() -> Bool {
        let isNews = reason == nil
        refusal.withLock { $0 = .now }
        return isNews
    }

    func clear() { refusal.withLock { $0 = nil } }
}
