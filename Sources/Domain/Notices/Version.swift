// Decides which of two payloads about one thing is newer.

internal import Crypto
public import JSON
internal import Records

/// Decides which of two payloads about one thing applies: the one with the later date of Apple. Two payloads with the
/// same date are rare, and any choice that does not depend on the order of arrival is right: with the hash no payload
/// must be stored.
public struct Version: Sendable, Hashable, Comparable, BitwiseCopyable {
    public var signedDate: Int64
    /// The first 8 bytes of the payload's SHA-256, in big-endian order.
    public var hash: UInt64

    public init(signedDate: Int64, hash: UInt64) {
        self.signedDate = signedDate
        self.hash = hash
    }

    public static func < (left: Version, right: Version) -> Bool {
        (left.signedDate, left.hash) < (right.signedDate, right.hash)
    }
}

extension Version {
    /// nil if neither the payload nor its notification has a date.
    public init?(
        _ record: borrowing JSONDocument, _ payload: JSONDocument.Value, notificationSigned: Int64?
    ) {
        guard let date = record.integer(.signedDate, of: payload) ?? notificationSigned else { return nil }
        self.init(signedDate: date, hash: SHA256.beginning(of: record.raw(payload)))
    }
}
