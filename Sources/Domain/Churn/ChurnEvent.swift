// What one record, or time alone, changed in one cell.

public import JSON
internal import Notices
internal import Records
public import SubscriptionHistory

/// A value of `churn-events`. The sum of all events of a cell is the cell. Its texts stay where they lie.
public struct ChurnEvent {
    /// The notification that changed the cell.
    public struct Cause {
        let notificationUUID: TextPlace?
        let type: TextPlace?
        let subtype: TextPlace?
        let signedDate: Int64?
        let partition: Int32
        let offset: Int64

        public init(_ news: NoticeNews, partition: Int32, offset: Int64) {
            notificationUUID = news.notificationUUID
            type = news.type
            subtype = news.subtype
            signedDate = news.signedDate
            self.partition = partition
            self.offset = offset
        }
    }

    public let originalTransactionId: UnsafeBufferPointer<UInt8>
    /// nil: time alone.
    public let cause: Cause?
    /// The clock of the partition.
    public let clock: Int64

    public init(originalTransactionId: UnsafeBufferPointer<UInt8>, clock: Int64, cause: Cause?) {
        self.originalTransactionId = originalTransactionId
        self.clock = clock
        self.cause = cause
    }

    /// - Parameters:
    ///   - id: the id of the record.
    ///   - cell: its key.
    public func write(
        id: UnsafeBufferPointer<UInt8>, cell: UnsafeBufferPointer<UInt8>, change: UnsafeBufferPointer<Sums.Sum>,
        to json: inout JSONWriter
    ) {
        json.object { json in
            json.member("v", RecordType.churnEvent.version)
            json.member("id", utf8: id)
            json.member("originalTransactionId", utf8: originalTransactionId)
            json.member("cell", utf8: cell)
            change.write(to: &json)
            // Of a timer: the time for which it was set.
            json.member("at", cause?.signedDate ?? clock)
            json.name("cause")
            if let cause { cause.write(to: &json) } else { json.null() }
        }
    }
}

extension ChurnEvent.Cause {
    fileprivate func write(to json: inout JSONWriter) {
        Notices.Cause.write(
            notificationUUID: notificationUUID?.bytes, type: type?.bytes, subtype: subtype?.bytes,
            signedDate: signedDate, partition: partition, offset: offset, to: &json)
    }
}
