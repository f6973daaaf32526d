// The records that ingest writes, each with its topic and environment.

import AppStore
public import Contract
import Crypto
public import Log
public import Records

/// One record on its way to Kafka.
public struct OutgoingRecord: Sendable, Equatable {
    public var topic: TopicID
    public var environment: Contract.Environment
    public var key: [UInt8]
    public var value: [UInt8]
    public var headers: [RecordHeader]
    /// Milliseconds since 1970.
    public var timestamp: Int64

    public init(
        topic: TopicID, environment: Contract.Environment, key: [UInt8], value: [UInt8], headers: [RecordHeader],
        timestamp: Int64
    ) {
        self.topic = topic
        self.environment = environment
        self.key = key
        self.value = value
        self.headers = headers
        self.timestamp = timestamp
    }
}

/// Makes the records of ingest.
public struct RecordFactory: Sendable {
    private let app: String
    private let archivesSignedPayloads: Bool

    /// - Parameter app: the header `app`: `perennial/<version>`.
    public init(app: String, archivesSignedPayloads: Bool) {
        self.app = app
        self.archivesSignedPayloads = archivesSignedPayloads
    }

    /// The record of `notifications` and, if payloads are archived, that of `signed`.
    public func records(of notification: VerifiedNotification, jws: [UInt8], receivedDate: Int64) -> [OutgoingRecord] {
        let key = Array(notification.key.utf8)
        var records = [
            OutgoingRecord(
                topic: .notifications, environment: notification.environment, key: key,
                value: NotificationRecord.value(notification, receivedDate: receivedDate, source: .push),
                headers: headers(.notification, id: notification.notificationUUID), timestamp: receivedDate)
        ]
        if archivesSignedPayloads {
            records.append(
                OutgoingRecord(
                    topic: .signed, environment: notification.environment, key: key, value: jws,
                    headers: headers(id: notification.notificationUUID), timestamp: receivedDate))
        }
        return records
    }

    /// - Parameter environment: of a record that names none itself.
    public func record(
        of usage: UsageRecord, orIn environment: Contract.Environment, receivedDate: Int64
    ) -> OutgoingRecord {
        OutgoingRecord(
            topic: .usage, environment: usage.environment ?? environment, key: Array(usage.originalTransactionId.utf8),
            value: usage.value,
            // A usage record that is sent again with the same bytes gets the same id.
            headers: headers(.usage, id: hexadecimal(SHA256.digest(usage.value.span))), timestamp: receivedDate)
    }

    func record(ofRejected body: [UInt8], _ rejection: Rejection, receivedDate: Int64) -> OutgoingRecord {
        let digest = hexadecimal(SHA256.digest(body.span))
        return OutgoingRecord(
            topic: .rejected, environment: rejection.environment ?? .production, key: Array(digest.utf8), value: body,
            headers: headers(id: digest) + [
                RecordHeader(HeaderName.reason, rejection.reason.rawValue),
                // The broker sets the timestamp of this topic itself, and a redrive would get a new one.
                RecordHeader(HeaderName.firstTimestamp, String(receivedDate)),
            ], timestamp: receivedDate)
    }

    private func headers(_ type: RecordType, id: String) -> [RecordHeader] {
        RecordHeader.all(id: id, schema: type.schema, app: app)
    }

    /// For bytes that somebody else wrote: they follow no schema of ours.
    private func headers(id: String) -> [RecordHeader] {
        [RecordHeader(HeaderName.id, id), RecordHeader(HeaderName.app, app)]
    }
}
