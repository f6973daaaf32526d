// Records for the publisher, and their outcome.

public import Platform
import Synchronization

public enum PublishOutcome: Sendable, Equatable {
    /// Every record is acknowledged by all in-sync replicas.
    case written
    case failed(PublishFailure)
}

/// Why records may not have been written. Some or all of them may have been written all the same, or may still be:
/// sending them again makes duplicates at worst.
public enum PublishFailure: String, Sendable, CaseIterable {
    /// Kafka has not answered since the start, or the client is being replaced.
    case notConnected = "not_connected"
    /// A topic is missing or has another number of partitions.
    case wrongTopics = "wrong_topics"
    /// Too many records wait for Kafka.
    case queueFull = "queue_full"
    /// Kafka did not acknowledge the records in time.
    case timedOut = "timed_out"
    /// The brokers say that this host's clock runs ahead.
    case clockAhead = "clock_ahead"
    /// The brokers refused the record for another reason.
    case refused
    case stopping
}

/// Records that succeed or fail together, and the callbacks for their outcome.
public final class Publication: Sendable {
    public typealias Completion = @Sendable (PublishOutcome) -> Void
    /// `wasSent`: Kafka may have some of the records, whatever the outcome is.
    public typealias Ending = @Sendable (_ wasSent: Bool) -> Void

    let records: [OutgoingRecord]
    let deadline: Deadline
    private let completion: Mutex<Completion?>
    private let ending: Mutex<Ending?>

    /// Neither function blocks, and each is called once, on any thread.
    ///   - completion: receives the outcome, by the deadline.
    ///   - ending: called when none of the records uses memory on its way to Kafka any more. That may be long after the
    ///     outcome: records that were not acknowledged in time are retried.
    public init(
        _ records: [OutgoingRecord], by deadline: Deadline, completion: @escaping Completion,
        ending: @escaping Ending = { _ in }
    ) {
        self.records = records
        self.deadline = deadline
        self.completion = Mutex(completion)
        self.ending = Mutex(ending)
    }

    /// The first call counts. false: it was not this one.
    @discardableResult
    public func finish(_ outcome: PublishOutcome) -> Bool {
        guard let completion = completion.withLock({ $0.take() }) else { return false }
        completion(outcome)
        return true
    }

    var isFinished: Bool { completion.withLock { $0 == nil } }

    /// After `finish`. The first call counts.
    func end(wasSent: Bool) {
        let ending = ending.withLock { $0.take() }
        ending?(wasSent)
    }

    /// For what was not handed to Kafka at all.
    func refuse(_ failure: PublishFailure) {
        finish(.failed(failure))
        end(wasSent: false)
    }
}

/// Where the endpoint hands its records to.
public protocol RecordSink: Sendable {
    /// Does not block. The publication is finished sooner or later, at the latest by its deadline, and ended when nothing of
    /// it is on its way any more.
    func publish(_ publication: Publication)
}
