// The contents of a notification that other modules need.

public import Contract

/// A notification whose signatures are all valid. Members are nil if absent or null.
public struct VerifiedNotification: Sendable {
    /// Which of the four is present; the bytes are one JSON object as it was signed.
    public enum Content: Sendable {
        case data(transaction: [UInt8]?, renewalInfo: [UInt8]?)
        case summary([UInt8])
        case externalPurchaseToken([UInt8])
        /// As it was signed, except that `signedAppTransactionInfo` is replaced by `appTransaction`, the decoded JSON
        /// of that part.
        case appData([UInt8])
    }

    public let environment: Contract.Environment
    public let notificationUUID: String
    public let notificationType: String
    public let subtype: String?
    public let signedDate: Int64
    public let bundleId: String?
    public let appAppleId: Int64?
    public let bundleVersion: String?
    public let status: Int64?
    public let consumptionRequestReason: String?
    public let content: Content
    /// The key of its record in Kafka: the first id that exists, as docs/reference/topics.md lists them.
    public let key: String
    /// Hash of the signed text.
    public let sha256: [UInt8]
    /// Serial number of the certificate that signed the text.
    public let leafSerial: String
    /// Accepted differences from Apple's documentation, in words for a metric label: "no_renewal_info".
    public let flags: [String]

    public init(
        environment: Contract.Environment, notificationUUID: String, notificationType: String, subtype: String?,
        signedDate: Int64, bundleId: String?, appAppleId: Int64?, bundleVersion: String?, status: Int64?,
        consumptionRequestReason: String?, content: Content, key: String, sha256: [UInt8], leafSerial: String,
        flags: [String]
    ) {
        self.environment = environment
        self.notificationUUID = notificationUUID
        self.notificationType = notificationType
        self.subtype = subtype
        self.signedDate = signedDate
        self.bundleId = bundleId
        self.appAppleId = appAppleId
        self.bundleVersion = bundleVersion
        self.status = status
        self.consumptionRequestReason = consumptionRequestReason
        self.content = content
        self.key = key
        self.sha256 = sha256
        self.leafSerial = leafSerial
        self.flags = flags
    }
}
