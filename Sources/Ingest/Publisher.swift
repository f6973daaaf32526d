// The one thread that writes to Kafka.

public import Contract
public import Kafka
import Log
public import Platform
public import Service
import Synchronization
public import Telemetry

/// Takes publications from any thread, writes their records with one idempotent producer, and finishes each when all of its
/// records are acknowledged, when one is refused, or when its deadline passes.
public final class Publisher: RecordSink, ServicePart {
    public struct Configuration: Sendable {
        public var properties: ClientProperties
        public var prefix: TopicPrefix
        public var partitions: Int32
        /// What is written to, in both environments.
        public var topics: [TopicID]
        /// Publications that may wait for the thread, which takes them out within a millisecond or two.
        public var queued = 4096
        /// For librdkafka's own queue: what is beyond it is answered 503.
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
    private let connected = Atomic(false)
    private let trouble = Mutex("no broker has answered yet")
    private let clock = ClockSuspicion()
    private let stopRequested = Latch()
    private let ended = Latch()

    /// With records on their way the thread looks this often for new ones and for acknowledgements, and finds several of each;
    /// without, it sleeps until one comes. Nobody waits for these milliseconds, Apple least of all.
    private static let turn: Duration = .milliseconds(5)
    /// Records gather so long for a request to Kafka: at 1,500 a second over 12 partitions they make three or four of it.
    private static let lingerMilliseconds = 20
    private static let idleInterval: Duration = .milliseconds(250)
    /// What is left at the end has been answered 503 or is anonymous garbage; a Kafka that answers takes it in this time.
    private static let flushLimit: Duration = .seconds(5)

    /// Adds the condition `host-clock` to `health`.
    /// - Parameter topicsTrouble: what is wrong with the topics; nil when nothing is.
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
            "perennial_ingest_publications_waiting", help: "Publications handed to Kafka and not over yet.")
        let clock = clock
        health.condition("host-clock") { clock.reason }
    }

    /// Why nothing can be written now, the topics apart; nil when a producer is at work.
    public var brokerTrouble: String? { connected.load(ordering: .acquiring) ? nil : trouble.withLock { $0 } }

    public func publish(_ publication: Publication) {
        if topicsTrouble() != nil {
            publication.finish(.failed(.wrongTopics))
        } else if stopRequested.isOpen {
            publication.finish(.failed(.stopping))
        } else if !connected.load(ordering: .acquiring) {
            publication.finish(.failed(.notConnected))
        } else if !mailbox.post(publication) {
            publication.finish(.failed(.queueFull))
        }
    }

    public func start(failed: @escaping @Sendable (any Error) -> Void) throws {
        let thread = WorkerThread.start(name) {
            defer { self.ended.open() }
            do {
                while !self.stopRequested.isOpen { try self.work() }
                for publication in self.mailbox.take(waiting: .zero) { publication.finish(.failed(.stopping)) }
            } catch {
                self.mailbox.close()
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

    /// The life of one producer.
    private func work() throws {
        let inFlight = InFlight(tell: hear)
        let logger = logger
        var options = Producer.Configuration(clientID: "perennial-ingest", properties: configuration.properties)
        options.queuedRecords = configuration.queuedRecords
        options.lingerMilliseconds = Self.lingerMilliseconds
        options.onEvent = { event in Self.log(event, logger) }
        let producer = try Producer(options) { inFlight.report($0) }
        var outlets: [Outlet: ProducerTopic] = [:]
        for environment in Contract.Environment.allCases {
            let names = Names(prefix: configuration.prefix, environment: environment)
            for topic in configuration.topics {
                outlets[Outlet(topic: topic, environment: environment)] = try producer.topic(names.topic(topic))
            }
        }
        connect(producer)
        serve(producer, outlets, inFlight)
        connected.store(false, ordering: .releasing)
        let isGone = producer.close(by: Deadline(after: Self.flushLimit))
        inFlight.abandon(stopRequested.isOpen ? .stopping : .notConnected)
        if !isGone { logger.warning("a Kafka producer did not end in time and is left behind") }
    }

    /// Asks for every topic before the first record needs one, which would wait up to a second for it.
    private func connect(_ producer: Producer) {
        while !stopRequested.isOpen {
            do throws(KafkaFault) {
                _ = try producer.partitionCounts(by: Deadline(after: .seconds(1)))
                connected.store(true, ordering: .releasing)
                return
            } catch {
                let words = error.words + newestCause(in: producer.recentFaults)
                trouble.withLock { $0 = words }
                producer.poll()
                stopRequested.wait(for: .milliseconds(500))
            }
        }
    }

    /// Until the stop, or until the producer cannot go on.
    private func serve(_ producer: Producer, _ outlets: [Outlet: ProducerTopic], _ inFlight: InFlight) {
        while true {
            let isStopping = stopRequested.isOpen
            let isIdle = producer.outstanding == 0
            for publication in mailbox.take(waiting: isIdle ? Self.idleInterval : .zero) {
                send(publication, producer, outlets, inFlight)
            }
            producer.poll(.zero)
            inFlight.expire()
            waitingGauge.set(Double(inFlight.count))
            if let fault = producer.fatalFault {
                trouble.withLock { $0 = fault.words }
                logger.error("the Kafka producer is replaced", ["reason": .string(fault.words)])
                return
            }
            // What was posted before the mailbox closed has been sent above.
            if isStopping { return }
            if producer.outstanding > 0 { pause(for: Self.turn) }
        }
    }

    private func send(
        _ publication: Publication, _ producer: Producer, _ outlets: [Outlet: ProducerTopic], _ inFlight: InFlight
    ) {
        guard !publication.deadline.hasPassed else { return _ = publication.finish(.failed(.timedOut)) }
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
                inFlight.withdraw(token)
                if error.code != .queueFull { hear(.refused(error.code)) }
                // Some of its records may be on their way; they become duplicates of those that come again.
                publication.finish(.failed(PublishFailure(error.code)))
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
        case .log, .statistics, .producerReplaced: break
        }
    }
}

private struct Outlet: Hashable {
    let topic: TopicID
    let environment: Contract.Environment
}

/// Whether the brokers have lately refused this host's time.
final class ClockSuspicion: Sendable {
    private let refusal = Mutex<ContinuousClock.Instant?>(nil)
    /// After this without another refusal the clock counts as right again: a process that is not ready is sent nothing, and
    /// it takes a notification to show that the clock was set.
    private static let memory: Duration = .seconds(30)

    var reason: String? {
        refusal.withLock { since in
            guard let since, since.duration(to: .now) < Self.memory else { return nil }
            return KafkaCode.invalidTimestamp.explanation
        }
    }

    /// true: it is news.
    func raise() -> Bool {
        let isNews = reason == nil
        refusal.withLock { $0 = .now }
        return isNews
    }

    func clear() { refusal.withLock { $0 = nil } }
}
