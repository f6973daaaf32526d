// The notification that caused a record.

public import JSON
internal import Records

/// The notification that changed something.
public struct Cause: Sendable, Equatable {
    public var notificationUUID: Text?
    public var type: Text?
    public var subtype: Text?
    public var signedDate: Int64?
    public var partition: Int32
    public var offset: Int64

    public init(
        notificationUUID: Text?, type: Text?, subtype: Text?, signedDate: Int64?, partition: Int32, offset: Int64
    ) {
        self.notificationUUID = notificationUUID
        self.type = type
        self.subtype = subtype
        self.signedDate = signedDate
        self.partition = partition
        self.offset = offset
    }

    public init(_ record: borrowing JSONDocument, partition: Int32, offset: Int64) {
        self.init(
            notificationUUID: record.text(.notificationUUID, of: record.root),
            type: record.text(.notificationType, of: record.root),
            subtype: record.text(.subtype, of: record.root),
            signedDate: record.integer(.signedDate, of: record.root), partition: partition, offset: offset)
    }

    public func write(to json: inout JSONWriter) {
        func place(_ text: Text?, _ body: (UnsafeBufferPointer<UInt8>?) -> Void) {
            if let text { text.bytes.withUnsafeBufferPointer { body($0) } } else { body(nil) }
        }
        place(notificationUUID) { notificationUUID in
            place(type) { type in
                place(subtype) { subtype in
                    Self.write(
                        notificationUUID: notificationUUID, type: type, subtype: subtype, signedDate: signedDate,
                        partition: partition, offset: offset, to: &json)
                }
            }
        }
    }

    /// The same with the texts where they lie.
    public static func write(
        notificationUUID: UnsafeBufferPointer<UInt8>?, type: UnsafeBufferPointer<UInt8>?,
        subtype: UnsafeBufferPointer<UInt8>?, signedDate: Int64?, partition: Int32, offset: Int64,
        to json: inout JSONWriter
    ) {
        json.object { json in
            json.member("notificationUUID", utf8: notificationUUID)
            json.member("type", utf8: type)
            json.member("subtype", utf8: subtype)
            json.member("signedDate", orNull: signedDate)
            json.member("partition", partition)
            json.member("offset", offset)
        }
    }
}
