// Checks that the topics are as they should be, and that Kafka answers.

import Contract
import Kafka
public import Platform
public import Service
import Synchronization
public import Telemetry

/// Asks every few seconds, with its own client: a query to a slow broker must not delay the delivery reports that
/// requests wait for.
public final class TopicWatch: ServicePart {
    public let name = "topic-watch"
    private let publisher: Publisher.Configuration
    private let logger: Logger
    private let finding = Mutex(Finding())
    private let stopRequested = Latch()
    private let ended = Latch()

    private struct Finding {
        /// Why Kafka does not answer; nil while it does.
        var kafka: String? = "no broker has answered yet"
        /// What was wrong with the topics at the last check.
        var topics: String?
        var hasSeenTopics = false
    }

    /// Short while something is wrong, so that a repair takes effect at once.
    private static let interval = (whenRight: Duration.seconds(10), whenWrong: Duration.seconds(1))
    private static let answerLimit: Duration = .seconds(3)

    /// Adds the condition `topics` to `health`.
    public init(_ publisher: Publisher.Configuration, health: Health, logger: Logger) {
        self.publisher = publisher
        self.logger = logger
        health.condition("topics") { [weak self] in self?.topicsCondition }
    }

    /// What is wrong with the topics; nil if nothing is, or if they have not been checked yet.
    public var topicsTrouble: String? { finding.withLock { $0.topics } }
    public var kafkaTrouble: String? { finding.withLock { $0.kafka } }

    private var topicsCondition: String? {
        finding.withLock { $0.topics ?? ($0.hasSeenTopics ? nil : "not seen yet") }
    }

    public func start(failed: @escaping @Sendable (any Error) -> Void) throws {
        let thread = WorkerThread.start(name) {
            defer { self.ended.open() }
            do {
                try self.watch()
            } catch {
                failed(error)
            }
        }
        if case .failure(let error)? = thread.result { throw error }
    }

    /// The last finding stays, so the parts that still work do not need this one any more.
    public func stopIsNear() { stopRequested.open() }

    public func stop(by deadline: Deadline) throws {
        stopRequested.open()
        guard ended.wait(until: deadline) else { throw ServicePartFault.stillRunning }
    }

    private func watch() throws(PropertyFault) {
        let admin = try Admin(clientID: "perennial-ingest-watch", properties: publisher.properties)
        repeat {
            look(admin)
        } while !stopRequested.wait(for: isRight ? Self.interval.whenRight : Self.interval.whenWrong)
        _ = admin.close(by: Deadline(after: .seconds(2)))
    }

    private var isRight: Bool { finding.withLock { $0.kafka == nil && $0.topics == nil } }

    private func look(_ admin: Admin) {
        let before = finding.withLock { $0 }
        do throws(KafkaFault) {
            let cluster = try admin.cluster(by: Deadline(after: Self.answerLimit))
            let counts = cluster.topics.map { ($0.name, $0.partitions.count) }
            let trouble = publisher.trouble(with: Dictionary(counts) { first, _ in first })
            finding.withLock { $0 = Finding(kafka: nil, topics: trouble, hasSeenTopics: true) }
            if let trouble, trouble != before.topics {
                logger.error("notifications are refused until the topics are right", ["reason": .string(trouble)])
            } else if trouble == nil, before.topics != nil {
                logger.info("the topics are right")
            }
            if before.kafka != nil { logger.info("Kafka answers") }
        } catch {
            let cause = newestCause(in: admin.recentFaults)
            // The last finding about the topics stays: they do not change because Kafka does not answer.
            finding.withLock { $0.kafka = "no broker answers\(cause) (\(error.code.name))" }
            if before.kafka == nil { logger.error("no broker answers", ["reason": .string(error.words + cause)]) }
        }
    }
}

/// The last error that a client met, to append to a message. "All brokers are down" is not a cause but a consequence.
func newestCause(in faults: [(code: KafkaCode, detail: String)]) -> String {
    faults.last { $0.code != .allBrokersDown }.map { ": \($0.detail)" } ?? ""
}
