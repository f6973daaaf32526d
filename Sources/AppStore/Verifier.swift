// From signed bytes to facts that Apple stands for.

public import Contract
public import Crypto

public enum PayloadKind: String, Sendable, CaseIterable {
    case notification, transaction, renewal
    case appTransaction = "app-transaction"
}

/// What a verifier takes.
public struct VerificationPolicy: Sendable {
    /// Apple Root CA - G3 and what the settings add.
    public var anchors: TrustAnchors
    /// nil: neither bundleId nor appAppleId is checked.
    public var apps: [App]?
    public var environments: Set<Contract.Environment> = [.production, .sandbox]
    /// Of the signed text; the body that brings it has its own limit.
    public var maxBytes = 262_144

    public init(anchors: TrustAnchors, apps: [App]?) {
        self.anchors = anchors
        self.apps = apps
    }
}

/// What `verify.ocsp` asks of a chain that holds: nothing, or what somebody who has asked Apple knows.
public enum RevocationStatus: Sendable { case good, revoked, unknown }

/// Leaf and intermediate of a chain that leads to a pinned root.
public struct TrustedChain: Sendable {
    public let leaf: Certificate
    public let intermediate: Certificate
    public let root: Certificate
}

/// Verifies payloads, one at a time; one for each thread. It has no clock: callers tell it the time.
public final class Verifier {
    public init(_ policy: VerificationPolicy) { fatalError("to be written") }

    /// Asked, if set, for every chain that leads to a root and holds its markers and dates; must answer at once, from what
    /// is known. `unknown` passes here: it is the caller's to decide (see `VerifiedNotification.chains`).
    public var revocation: ((TrustedChain) -> RevocationStatus)?

    /// - Parameter now: milliseconds since 1970.
    public func notification(_ jws: [UInt8], now: Int64) throws(Rejection) -> VerifiedNotification {
        fatalError("to be written")
    }

    /// One payload of any kind, nested parts verified too. The outcome is its decoded JSON, nested parts in their places.
    public func decoded(_ jws: [UInt8], as kind: PayloadKind, now: Int64) throws(Rejection) -> [UInt8] {
        fatalError("to be written")
    }
}

/// A notification all of whose signatures hold. Members are nil when absent or null.
public struct VerifiedNotification: Sendable {
    /// Which of the four is there; bytes are JSON as it was signed.
    public enum Content: Sendable {
        case data(transaction: [UInt8]?, renewalInfo: [UInt8]?)
        case summary([UInt8])
        case externalPurchaseToken([UInt8])
        /// `appData` as signed, and its app transaction decoded.
        case appData([UInt8], appTransaction: [UInt8]?)
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
    /// The key of its record in Kafka: see contract 4.
    public let key: String
    /// Of the signed text.
    public let sha256: [UInt8]
    /// Serial of the certificate that signed.
    public let leafSerial: String
    /// Differences that are accepted and counted, in words fit for a metric label: "no_renewal_info".
    public let flags: [String]
    /// Every chain that was relied on whose revocation is unknown; empty without `revocation`.
    public let unknownChains: [TrustedChain]

    public init(
        environment: Contract.Environment, notificationUUID: String, notificationType: String, subtype: String?,
        signedDate: Int64, bundleId: String?, appAppleId: Int64?, bundleVersion: String?, status: Int64?,
        consumptionRequestReason: String?, content: Content, key: String, sha256: [UInt8], leafSerial: String,
        flags: [String], unknownChains: [TrustedChain]
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
        self.unknownChains = unknownChains
    }
}
