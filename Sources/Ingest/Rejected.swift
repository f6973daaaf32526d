// The topic `rejected`: what was refused is kept up to a bound, and counted beyond it.

import AppStore
import Platform
import Synchronization

final class RejectedKeeper: Sendable {
    /// Anonymous garbage on its way to Kafka, also beyond the deadline of its request; one sixteenth of what the producer
    /// holds. So a flood of it cannot fill the queue that notifications need.
    private static let limitUnawaitedBytes = 4 << 20

    private let sink: any RecordSink
    private let metrics: IngestMetrics
    private let records: RecordFactory
    private let anonymous: RejectedRoom
    /// For what only Apple can have sent: more room, and not shared with anybody else.
    private let genuine: RejectedRoom
    private let unawaitedBytes = Atomic(0)

    init(sink: any RecordSink, metrics: IngestMetrics, records: RecordFactory, bytesPerHour: Int) {
        self.sink = sink
        self.metrics = metrics
        self.records = records
        anonymous = RejectedRoom(bytesPerHour: bytesPerHour)
        genuine = RejectedRoom(bytesPerHour: 10 * bytesPerHour)
    }

    /// Nobody waits for it.
    func keepIfThereIsRoom(_ body: [UInt8], _ rejection: Rejection, now: Int64, by deadline: Deadline) {
        let bytes = body.count
        guard anonymous.take(bytes, now: now) else { return metrics.countRejected(rejection.reason, kept: false) }
        guard unawaitedBytes.add(bytes, ordering: .relaxed).newValue <= Self.limitUnawaitedBytes else {
            unawaitedBytes.subtract(bytes, ordering: .relaxed)
            anonymous.giveBack(bytes)
            return metrics.countRejected(rejection.reason, kept: false)
        }
        write(body, rejection, now: now, by: deadline, completion: { _ in }) { wasSent in
            self.unawaitedBytes.subtract(bytes, ordering: .relaxed)
            if !wasSent { self.anonymous.giveBack(bytes) }
        }
    }

    /// `completion` hears whether it is kept; nil: there is no room.
    func keep(
        _ body: [UInt8], _ rejection: Rejection, now: Int64, by deadline: Deadline,
        completion: @escaping @Sendable (PublishOutcome?) -> Void
    ) {
        guard genuine.take(body.count, now: now) else {
            metrics.countRejected(rejection.reason, kept: false)
            return completion(nil)
        }
        write(body, rejection, now: now, by: deadline, completion: completion) { wasSent in
            if !wasSent { self.genuine.giveBack(body.count) }
        }
    }

    /// Room is given back in `ending`, and only for what was never sent: what Kafka has not acknowledged in time it usually
    /// writes later.
    private func write(
        _ body: [UInt8], _ rejection: Rejection, now: Int64, by deadline: Deadline,
        completion: @escaping Publication.Completion, ending: @escaping Publication.Ending
    ) {
        let record = records.record(ofRejected: body, rejection, receivedDate: now)
        let metrics = metrics
        sink.publish(
            Publication(
                [record], by: deadline,
                completion: { outcome in
                    metrics.countRejected(rejection.reason, kept: outcome == .written)
                    completion(outcome)
                }, ending: ending))
    }
}
