// An answer that was decided and has no known last step.

internal import Consumption
internal import Notices
import Synchronization

/// Identifies one answer within a process.
struct AnswerName: Hashable, Sendable {
    let partition: Int32
    /// `notificationUUID` of the request.
    let id: Text
}

struct OpenAnswer {
    let name: AnswerName
    let originalTransactionId: Text
    let transactionId: String
    let bundleId: Text
    let body: [UInt8]
    /// Apple's V2 endpoint refuses the transaction.
    let isV1: Bool
    /// By Apple's clock, in milliseconds since 1970.
    let deadline: Int64
    /// false: the answer was withheld after it was decided.
    var isWanted = true
    /// The greatest known attempt number.
    var attempts: Int64 = 0 {
        didSet { attempts = min(attempts, Self.limitAttempts) }
    }
    /// When the next attempt may begin, by the host's clock.
    var dueAt: Int64

    /// Half a day is too short for more. A greater number comes from a damaged row.
    private static let limitAttempts: Int64 = 1_000_000_000
    /// Far from overflow, so that times can be added to it.
    private static let deadlines: ClosedRange<Int64> = 0...(1 << 60)

    /// nil: the record lacks a member that an attempt needs.
    init?(_ record: ConsumptionRecord, partition: Int32, isV1: Bool, bundleId: Text?, dueAt: Int64) {
        guard let body = record.body, let transactionId = record.transactionId, let bundleId,
            Self.deadlines.contains(record.deadline)
        else { return nil }
        name = AnswerName(partition: partition, id: record.id)
        originalTransactionId = record.originalTransactionId
        self.transactionId = transactionId.description
        self.bundleId = bundleId
        self.body = body
        self.isV1 = isV1
        deadline = record.deadline
        self.dueAt = dueAt
    }
}

/// Shared with the client's thread while an attempt is in flight.
final class Permit: Sendable {
    private let isWithdrawn = Mutex(false)

    /// From now on only bytes that are being sent already may be sent.
    func withdraw() { isWithdrawn.withLock { $0 = true } }
    var stands: Bool { isWithdrawn.withLock { !$0 } }
}
