// The topic `rejected`: refused bodies are stored up to a limit, and counted beyond it.

import AppStore
import Contract
import JSON
import Platform
import Records
import Synchronization

final class RejectedKeeper: Sendable {
    /// Byte limit of anonymous garbage in flight to Kafka, even after the deadline of its request; one sixteenth of
    /// what the producer holds. So a flood of garbage cannot fill the queue that notifications need.
    private static let limitUnawaitedBytes = 4 << 20

    private let sink: any RecordSink
    private let metrics: IngestMetrics
    private let records: RecordFactory
    private let room: RejectedRoom
    private let unawaitedBytes = Atomic(0)

    init(sink: any RecordSink, metrics: IngestMetrics, records: RecordFactory, bytesPerHour: Int) {
        self.sink = sink
        self.metrics = metrics
        self.records = records
        room = RejectedRoom(bytesPerHour: bytesPerHour)
    }

    /// No request waits for the outcome.
    func keepIfThereIsRoom(_ arrival: Arrival, _ jws: [UInt8]?, _ rejection: Rejection) {
        let sender: RejectedRoom.Sender = arrival.isFromApple ? .apple : .anybody
        guard room.hasRoom(for: sender, now: arrival.receivedDate) else {
            return metrics.countRejected(rejection.reason, kept: false)
        }
        guard let record = takeRoom(for: arrival, jws, rejection, sender, otherwise: { _ in }) else { return }
        let bytes = record.value.count
        guard unawaitedBytes.add(bytes, ordering: .relaxed).newValue <= Self.limitUnawaitedBytes else {
            unawaitedBytes.subtract(bytes, ordering: .relaxed)
            room.forget(Self.mark(of: record, rejection))
            room.giveBack(bytes, takenAt: arrival.receivedDate)
            return metrics.countRejected(rejection.reason, kept: false)
        }
        write(record, rejection, arrival, completion: { _ in }) {
            self.unawaitedBytes.subtract(bytes, ordering: .relaxed)
        }
    }

    /// `completion` receives whether the body is stored; nil: there is no room, or the same body is in flight.
    func keep(
        _ arrival: Arrival, _ jws: [UInt8]?, _ rejection: Rejection,
        completion: @escaping @Sendable (PublishOutcome?) -> Void
    ) {
        let sender: RejectedRoom.Sender = arrival.isFromApple ? .apple : .signed
        guard let record = takeRoom(for: arrival, jws, rejection, sender, otherwise: completion) else { return }
        write(record, rejection, arrival, completion: completion, ending: {})
    }

    /// nil: the body is not written, and `otherwise` was called with the reason.
    private func takeRoom(
        for arrival: Arrival, _ jws: [UInt8]?, _ rejection: Rejection, _ sender: RejectedRoom.Sender,
        otherwise: (PublishOutcome?) -> Void
    ) -> OutgoingRecord? {
        var place = RejectedRoom.Place.none
        defer { if place != .taken { metrics.countRejected(rejection.reason, kept: place == .kept) } }
        let record = records.record(
            ofRejected: Self.essence(of: arrival.body, jws), rejection, receivedDate: arrival.receivedDate)
        place = room.take(
            record.value.count, hash: Self.mark(of: record, rejection), for: sender, now: arrival.receivedDate)
        guard place == .taken else {
            otherwise(place == .kept ? .written : nil)
            return nil
        }
        return record
    }

    /// Settings may change within the hour. Then the same body is refused for another reason, and must be found under
    /// that one.
    private static func mark(of record: OutgoingRecord, _ rejection: Rejection) -> [UInt8] {
        record.key + Array("|\(rejection.reason.rawValue)|\(record.environment.rawValue)".utf8)
    }

    /// Only the signed part: other members are chosen by the sender, in any size. If there is no signed part, the whole
    /// body.
    private static func essence(of body: [UInt8], _ jws: [UInt8]?) -> [UInt8] {
        guard let jws else { return body }
        var writer = JSONWriter()
        writer.object { $0.member(MemberName.signedPayload.text, utf8: jws) }
        return writer.bytes.count < body.count ? writer.bytes : body
    }

    /// The ending gives the room back, and only if nothing was sent: Kafka usually writes later what it has not
    /// acknowledged in time. Until then the same body counts as in flight and is not sent again.
    private func write(
        _ record: OutgoingRecord, _ rejection: Rejection, _ arrival: Arrival,
        completion: @escaping Publication.Completion, ending: @escaping @Sendable () -> Void
    ) {
        let (metrics, room) = (metrics, room)
        let mark = Self.mark(of: record, rejection)
        sink.publish(
            Publication(
                [record], by: arrival.deadline,
                completion: { outcome in
                    if outcome == .written { room.remember(mark) }
                    metrics.countRejected(rejection.reason, kept: outcome == .written)
                    completion(outcome)
                },
                ending: { wasSent in
                    room.forgetUnlessWritten(mark)
                    if !wasSent { room.giveBack(record.value.count, takenAt: arrival.receivedDate) }
                    ending()
                }))
    }
}
