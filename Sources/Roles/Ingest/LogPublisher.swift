// Writes publications into any log through its writer: the demo uses it instead of a Kafka producer.

import Contract
import Log
import Platform
import Service
import Synchronization

/// Accepts publications from any thread and appends their records on its own thread. All that wait go in one call, so
/// that even a log with slow calls accepts many. All publications of a batch succeed or fail together.
final class LogPublisher: RecordSink, ServicePart {
    let name = "publisher"
    private let log: any RecordLog
    private let partitions: Int32
    /// Names of the writer's topics, in the order of its indices.
    private let names: [String]
    private let indices: [Outlet: Int]
    private let mailbox: Mailbox<Publication>
    private let stopRequested = Latch()
    private let ended = Latch()

    /// As many as the server can hold.
    private static let capacity = 4096
    /// How long the thread sleeps without work before it checks whether it should end.
    private static let idleInterval: Duration = .milliseconds(250)
    private static let closeLimit: Duration = .seconds(2)

    init(_ log: any RecordLog, _ destination: IngestService.Destination) {
        self.log = log
        partitions = destination.partitions
        var names: [String] = []
        var indices: [Outlet: Int] = [:]
        for environment in Environment.allCases {
            let all = Names(prefix: destination.prefix, environment: environment)
            for topic in destination.topics {
                indices[Outlet(topic: topic, environment: environment)] = names.count
                names.append(all.topic(topic))
            }
        }
        self.names = names
        self.indices = indices
        mailbox = Mailbox(capacity: Self.capacity)
    }

    func publish(_ publication: Publication) {
        if stopRequested.isOpen {
            publication.refuse(.stopping)
        } else if !mailbox.post(publication) {
            publication.refuse(stopRequested.isOpen ? .stopping : .queueFull)
        }
    }

    func start(failed: @escaping @Sendable (any Error) -> Void) throws {
        let thread = WorkerThread.start(name) {
            defer { self.ended.open() }
            do throws(LogFault) {
                try self.work()
            } catch {
                failed(error)
            }
            self.mailbox.close()
            for publication in self.mailbox.take(waiting: .zero) {
                publication.refuse(self.stopRequested.isOpen ? .stopping : .notConnected)
            }
        }
        if case .failure(let error)? = thread.result { throw error }
    }

    func stop(by deadline: Deadline) throws {
        stopRequested.open()
        mailbox.close()
        guard ended.wait(until: deadline) else { throw ServicePartFault.stillRunning }
    }

    // MARK: On the thread

    private func work() throws(LogFault) {
        let writer = try log.openWriter(WriterOptions(name: "perennial-ingest", topics: names))
        defer { writer.close(by: Deadline(after: Self.closeLimit)) }
        let batch = OutputBatch()
        while true {
            let isStopping = stopRequested.isOpen
            let waiting = mailbox.take(waiting: isStopping ? .zero : Self.idleInterval)
            if !waiting.isEmpty { try append(waiting, batch, with: writer) }
            // Everything posted before the mailbox closed has been appended above.
            if isStopping { return }
        }
    }

    private func append(
        _ publications: [Publication], _ batch: OutputBatch, with writer: any LogWriter
    ) throws(LogFault) {
        batch.removeAll()
        var taken: [Publication] = []
        for publication in publications {
            if publication.deadline.hasPassed {
                publication.refuse(.timedOut)
            } else {
                for record in publication.records { add(record, to: batch) }
                taken.append(publication)
            }
        }
        // The earliest deadline counts: all are answered together.
        guard let patience = taken.map(\.deadline.remaining).min() else { return }
        do throws(LogFault) {
            _ = try writer.append(batch, by: Deadline(after: patience))
            for publication in taken { end(publication, .written) }
        } catch {
            for publication in taken { end(publication, .failed(PublishFailure(error))) }
            // Other errors may be temporary: the next batch tries again.
            if error.cause == .misuse || error.cause == .unknownTopic { throw error }
        }
    }

    private func add(_ record: OutgoingRecord, to batch: OutputBatch) {
        guard let index = indices[Outlet(topic: record.topic, environment: record.environment)] else {
            preconditionFailure("\(record.topic.name) is not among the topics of this publisher")
        }
        batch.append(
            topic: index, partition: Partitioner.partition(of: record.key, count: partitions),
            timestamp: record.timestamp, key: record.key, value: record.value, headers: record.headers)
    }

    /// `wasSent` is true for failures too: the log may have accepted the records all the same.
    private func end(_ publication: Publication, _ outcome: PublishOutcome) {
        publication.finish(outcome)
        publication.end(wasSent: true)
    }
}

extension PublishFailure {
    fileprivate init(_ fault: LogFault) {
        self =
            switch fault.cause {
            case .timedOut: .timedOut
            case .timestampAhead: .clockAhead
            case .unknownTopic: .wrongTopics
            default: .refused
            }
    }
}
