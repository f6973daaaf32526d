import Contract
import Platform
import Synchronization
import Testing

@testable import Ingest
@testable import Kafka

/// The results of publications, in order.
private final class Told: Sendable {
    private let words = Mutex<[String]>([])
    var all: [String] { words.withLock { $0 } }

    func publication(records: Int = 1, within limit: Duration = .seconds(60)) -> Publication {
        Publication(
            Array(repeating: record(), count: records), by: Deadline(after: limit),
            completion: { outcome in
                if case .failed(let failure) = outcome { self.append(failure.rawValue) } else { self.append("written") }
            },
            ending: { wasSent in self.append(wasSent ? "sent" : "unsent") })
    }

    private func append(_ word: String) { words.withLock { $0.append(word) } }
}

@Suite struct `What is in flight` {
    private func ok(_ token: UInt) -> DeliveryReport {
        DeliveryReport(token: token, partition: 0, offset: 7, failure: nil)
    }

    /// A request that waits for a verdict reaches Kafka late, with less time left than earlier ones.
    @Test func `is answered at its deadline whatever the deadline of those before it`() {
        let inFlight = InFlight { _ in }
        let (patient, hasty) = (Told(), Told())
        for publication in [patient.publication(), hasty.publication(within: .zero)] {
            _ = inFlight.token(for: inFlight.begin(publication))
        }
        inFlight.expire()
        #expect(patient.all == [] && hasty.all == ["timed_out"])
    }

    @Test func `ends with its last report, not with its deadline`() {
        let inFlight = InFlight { _ in }
        let told = Told()
        let entry = inFlight.begin(told.publication(records: 2, within: .zero))
        let tokens = [inFlight.token(for: entry), inFlight.token(for: entry)]
        inFlight.expire()
        inFlight.report(ok(tokens[0]))
        #expect(told.all == ["timed_out"] && inFlight.count == 1)
        inFlight.report(ok(tokens[1]))
        #expect(told.all == ["timed_out", "sent"] && inFlight.count == 0)
    }

    @Test func `ends as unsent when no record was taken, and as sent when one was`() {
        let inFlight = InFlight { _ in }
        let (none, one) = (Told(), Told())
        inFlight.withdraw(inFlight.token(for: inFlight.begin(none.publication())), .queueFull)
        #expect(none.all == ["queue_full", "unsent"])
        let entry = inFlight.begin(one.publication(records: 2))
        let token = inFlight.token(for: entry)
        inFlight.withdraw(inFlight.token(for: entry), .queueFull)
        #expect(one.all == ["queue_full"] && inFlight.count == 1)
        inFlight.report(ok(token))
        #expect(one.all.last == "sent" && inFlight.count == 0)
    }

    @Test func `is answered once and ends once when its producer is given up`() {
        let inFlight = InFlight { _ in }
        let told = Told()
        let entry = inFlight.begin(told.publication(records: 2))
        let tokens = [inFlight.token(for: entry), inFlight.token(for: entry)]
        inFlight.answerAll(.notConnected)
        #expect(told.all == ["not_connected"])
        inFlight.abandon(.notConnected)
        for token in tokens { inFlight.report(ok(token)) }
        #expect(told.all == ["not_connected", "sent"] && inFlight.count == 0)
    }
}
