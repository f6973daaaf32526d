// Records in flight to Kafka, and the publications that they belong to.

import Contract
import Kafka
import Platform

/// Owned by the publisher's thread.
final class InFlight {
    final class Entry {
        let publication: Publication
        /// Records sent to Kafka that have no delivery report yet.
        fileprivate var underway = 0
        fileprivate var acknowledged = 0

        fileprivate init(_ publication: Publication) {
            self.publication = publication
        }
    }

    /// What else the publisher learns from a report, besides the outcome of the publication.
    enum News {
        /// Kafka accepted a record that carries this host's time.
        case clockIsRight
        case clockIsAhead
        /// Acknowledged after its deadline.
        case writtenLate
        case refused(KafkaCode)
    }

    private let tell: (News) -> Void
    private var entries: [UInt: Entry] = [:]
    private var nextToken: UInt = 1
    /// Publications without an outcome, and some that have received one since the last `expire`.
    private var waiting: [Entry] = []

    init(tell: @escaping (News) -> Void) {
        self.tell = tell
    }

    /// Publications with records whose reports are still missing.
    private(set) var count = 0

    func begin(_ publication: Publication) -> Entry {
        let entry = Entry(publication)
        waiting.append(entry)
        return entry
    }

    func token(for entry: Entry) -> UInt {
        defer { nextToken &+= 1 }
        entries[nextToken] = entry
        if entry.underway == 0 { count += 1 }
        entry.underway += 1
        return nextToken
    }

    /// The record was not accepted after all, so there will be no report. Its publication fails as a whole. Some of its
    /// other records may be in flight; when the request is retried, they become duplicates.
    func withdraw(_ token: UInt, _ failure: PublishFailure) {
        guard let entry = entries.removeValue(forKey: token) else { return }
        entry.publication.finish(.failed(failure))
        entry.underway -= 1
        if entry.underway == 0 { end(entry, wasSent: false) }
    }

    /// Reports arrive only while the library is polled, never while the records of a publication are being sent. So
    /// when none of its records is in flight, all reports have arrived.
    func report(_ report: DeliveryReport) {
        guard let entry = entries.removeValue(forKey: report.token) else { return }
        judge(report, entry)
        entry.underway -= 1
        if entry.underway == 0 { end(entry, wasSent: true) }
    }

    private func end(_ entry: Entry, wasSent: Bool) {
        count -= 1
        entry.publication.end(wasSent: wasSent)
    }

    private func judge(_ report: DeliveryReport, _ entry: Entry) {
        guard let code = report.failure else {
            entry.acknowledged += 1
            guard entry.acknowledged == entry.publication.records.count else { return }
            if entry.publication.records.first?.topic == .notifications { tell(.clockIsRight) }
            if !entry.publication.finish(.written) { tell(.writtenLate) }
            return
        }
        entry.publication.finish(.failed(PublishFailure(code)))
        if code == .invalidTimestamp {
            tell(.clockIsAhead)
        } else if !code.isPurge, code != .deliveryTimedOut {
            tell(.refused(code))
        }
    }

    /// Answers the publications whose deadline has passed. Checks all of them: a request that waited for a verdict
    /// comes late, and has an earlier deadline than those before it.
    func expire() {
        waiting.removeAll { entry in
            if !entry.publication.isFinished, entry.publication.deadline.hasPassed {
                entry.publication.finish(.failed(.timedOut))
            }
            return entry.publication.isFinished
        }
    }

    /// Nobody should wait for anything that this producer may still do.
    func answerAll(_ failure: PublishFailure) {
        for entry in waiting { entry.publication.finish(.failed(failure)) }
        waiting = []
    }

    /// The producer is closed; there will be no more reports.
    func abandon(_ failure: PublishFailure) {
        answerAll(failure)
        let open = entries.values
        entries = [:]
        for entry in open where entry.underway > 0 {
            // The publication may be in the table once for each of its records.
            entry.underway = 0
            end(entry, wasSent: true)
        }
    }
}

extension PublishFailure {
    init(_ code: KafkaCode) {
        self =
            switch code {
            case .queueFull: .queueFull
            case .invalidTimestamp: .clockAhead
            case .deliveryTimedOut, .unconfirmed: .timedOut
            // Purged by a producer that is being replaced or closed.
            case .purgedInQueue, .purgedInFlight: .notConnected
            default: .refused
            }
    }
}
