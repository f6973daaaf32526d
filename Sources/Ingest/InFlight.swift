// Records on their way to Kafka, and the publications they belong to.

import Contract
import Kafka
import Platform

/// Owned by the publisher's thread.
final class InFlight {
    final class Entry {
        let publication: Publication
        fileprivate var reportsLeft: Int

        fileprivate init(_ publication: Publication) {
            self.publication = publication
            reportsLeft = publication.records.count
        }
    }

    /// What the publisher learns from a report besides the fate of the publication.
    enum News {
        /// A record that carries this host's time was taken.
        case clockIsRight
        case clockIsAhead
        /// Acknowledged after its deadline.
        case writtenLate
        case refused(KafkaCode)
    }

    private let tell: (News) -> Void
    private var entries: [UInt: Entry] = [:]
    private var nextToken: UInt = 1
    /// In the order in which they came, which is that of their deadlines but for milliseconds.
    private var line: [Entry] = []
    private var first = 0

    init(tell: @escaping (News) -> Void) {
        self.tell = tell
    }

    /// Publications that have no outcome yet, and those whose late reports are still to come.
    var count: Int { line.count - first }

    func begin(_ publication: Publication) -> Entry {
        let entry = Entry(publication)
        line.append(entry)
        return entry
    }

    func token(for entry: Entry) -> UInt {
        defer { nextToken &+= 1 }
        entries[nextToken] = entry
        return nextToken
    }

    /// The record was not taken after all: there will be no report.
    func withdraw(_ token: UInt) { entries[token] = nil }

    func report(_ report: DeliveryReport) {
        guard let entry = entries.removeValue(forKey: report.token) else { return }
        guard let code = report.failure else {
            entry.reportsLeft -= 1
            guard entry.reportsLeft == 0 else { return }
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

    /// Answers for those whose time is over.
    func expire() {
        while first < line.count {
            let publication = line[first].publication
            if !publication.isFinished {
                guard publication.deadline.hasPassed else { break }
                publication.finish(.failed(.timedOut))
            }
            first += 1
        }
        // Seldom enough to cost nothing, often enough that a long run does not keep what is over.
        if first > 1024 || first == line.count {
            line.removeFirst(first)
            first = 0
        }
    }

    /// The producer is gone; no report will come any more.
    func abandon(_ failure: PublishFailure) {
        for entry in line[first...] { entry.publication.finish(.failed(failure)) }
        line = []
        first = 0
        entries = [:]
    }
}

extension PublishFailure {
    init(_ code: KafkaCode) {
        self =
            switch code {
            case .queueFull: .queueFull
            case .invalidTimestamp: .clockAhead
            case .deliveryTimedOut: .timedOut
            // Purged with a producer that is replaced or closed.
            case .purgedInQueue, .purgedInFlight: .notConnected
            default: .refused
            }
    }
}
