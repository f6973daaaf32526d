// What is handed to the publisher, and what comes back.

public import Platform
import Synchronization

public enum PublishOutcome: Sendable, Equatable {
    /// Every record is acknowledged by all in-sync replicas.
    case written
    case failed(PublishFailure)
}

/// Why records are not known to be written. Some or all of them may be there all the same, or come to be: whoever sends
/// again makes duplicates at worst.
public enum PublishFailure: String, Sendable, CaseIterable {
    /// Kafka has not answered yet since the start, or a new client is being made.
    case notConnected = "not_connected"
    /// A topic is missing or has another number of partitions.
    case wrongTopics = "wrong_topics"
    /// Too much waits for Kafka.
    case queueFull = "queue_full"
    /// No acknowledgement in time.
    case timedOut = "timed_out"
    /// The brokers say that this host's clock runs ahead.
    case clockAhead = "clock_ahead"
    /// The brokers refuse the record for another reason.
    case refused
    case stopping
}

/// Records that count as written together, and who wants to know.
public final class Publication: Sendable {
    public typealias Completion = @Sendable (PublishOutcome) -> Void

    let records: [OutgoingRecord]
    let deadline: Deadline
    private let completion: Mutex<Completion?>

    /// - Parameter completion: called once, on any thread; does not block.
    public init(_ records: [OutgoingRecord], by deadline: Deadline, completion: @escaping Completion) {
        self.records = records
        self.deadline = deadline
        self.completion = Mutex(completion)
    }

    /// The first call counts. false: it was not this one.
    @discardableResult
    public func finish(_ outcome: PublishOutcome) -> Bool {
        guard let completion = completion.withLock({ $0.take() }) else { return false }
        completion(outcome)
        return true
    }

    var isFinished: Bool { completion.withLock { $0 == nil } }
}

/// Where the endpoint hands its records to.
public protocol RecordSink: Sendable {
    /// Does not block. The publication is finished sooner or later, at the latest by its deadline.
    func publish(_ publication: Publication)
}
