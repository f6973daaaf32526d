// Which of two payloads about one thing is the newer.

internal import Crypto
public import JSON

/// Which of two payloads about one thing counts: Apple's own date decides. Two payloads of one date are rare, and any choice
/// that does not depend on the order of arrival is as good as another: the hash is one that needs no payload to be kept.
public struct Version: Sendable, Hashable, Comparable {
    public var signedDate: Int64
    /// The first 8 bytes of the SHA-256 of the payload, the first one highest.
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
    /// nil when neither the payload nor its notification is dated.
    public init?(
        _ record: borrowing JSONDocument, _ payload: JSONDocument.Value, notificationSigned: Int64?
    ) {
        guard let date = record.integer("signedDate", of: payload) ?? notificationSigned else { return nil }
        self.init(signedDate: date, hash: SHA256.beginning(of: record.raw(payload)))
    }
}
