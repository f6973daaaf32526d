// Records of `consumption`.

internal import Contract
public import JSON
public import Notices
internal import Records

/// One step in the life of a refund request.
public struct ConsumptionRecord: Sendable, Equatable {
    public enum Kind: String, Sendable, CaseIterable {
        case requested, decided, withheld, sent, retrying, failed, expired, outcome, shadow
    }

    /// Why no answer is sent.
    public enum Withholding: String, Sendable, CaseIterable {
        case noTransaction = "no_transaction"
        case foreignApp = "foreign_app"
        case familyShared = "family_shared"
        case assigned
        case settled
        case noConsent = "no_consent"
        case policy
    }

    public struct Policy: Sendable, Equatable {
        public var version: Text
        /// nil: no rule matched.
        public var rule: Text?
    }

    public struct Amount: Sendable, Equatable {
        /// In milliunits.
        public var value: Int64
        public var currency: Text?
    }

    public var id: Text
    public var originalTransactionId: Text
    public var transactionId: Text?
    public var kind: Kind
    public var at: Int64
    public var deadline: Int64
    public var requestReason: Text?
    public var policy: Policy?
    /// The JSON body as it is sent.
    public var body: [UInt8]?
    public var httpStatus: Int64?
    public var errorCode: Int64?
    public var attempt: Int64?
    public var retryAt: Int64?
    public var detail: Text?
    /// JSON.
    public var facts: [UInt8]?
    /// The amount of an outcome, if the transaction shows it.
    public var amount: Amount?

    public static let noPercentage: Text = "no_percentage"
    public static let maybeSent: Text = "maybe_sent"

    init(
        _ kind: Kind, id: Text, originalTransactionId: Text, transactionId: Text?, at: Int64, deadline: Int64,
        reason: Text?
    ) {
        self.id = id
        self.originalTransactionId = originalTransactionId
        self.transactionId = transactionId
        self.kind = kind
        self.at = at
        self.deadline = deadline
        requestReason = reason
    }

    public var value: [UInt8] {
        var json = JSONWriter(capacity: 512 + (body?.count ?? 0) + (facts?.count ?? 0))
        json.object { json in
            json.member("v", RecordType.consumption.version)
            json.member("id", utf8: id.bytes)
            json.member("originalTransactionId", utf8: originalTransactionId.bytes)
            json.member("transactionId", utf8: transactionId?.bytes)
            json.member("kind", kind.rawValue)
            json.member("at", at)
            json.member("deadline", deadline)
            json.member("requestReason", utf8: requestReason?.bytes)
            json.name("policy")
            if let policy {
                json.object { json in
                    json.member("version", utf8: policy.version.bytes)
                    json.member("rule", utf8: policy.rule?.bytes)
                }
            } else {
                json.null()
            }
            if let body { json.member("body", json: body) }
            json.member("httpStatus", orNull: httpStatus)
            json.member("errorCode", orNull: errorCode)
            json.member("attempt", orNull: attempt)
            json.member("retryAt", orNull: retryAt)
            json.member("detail", utf8: detail?.bytes)
            if let amount {
                json.member("amount", amount.value)
                json.member("currency", utf8: amount.currency?.bytes)
            }
            if let facts { json.member("facts", json: facts) }
        }
        return json.bytes
    }
}

// MARK: Reading

extension ConsumptionRecord {
    /// nil if the record has no identity, no dates or no known kind. A kind may be unknown because a later build wrote
    /// it.
    /// - Parameter record: the document with the record's value.
    public init?(_ record: borrowing JSONDocument) {
        let root = record.root
        guard record.kind(of: root) == .object, let id = record.text("id", of: root), !id.bytes.isEmpty,
            let originalTransactionId = record.text("originalTransactionId", of: root),
            let kind = record.text("kind", of: root).flatMap({ Kind(rawValue: $0.description) }),
            let at = record.integer("at", of: root), let deadline = record.integer("deadline", of: root)
        else { return nil }
        self.init(
            kind, id: id, originalTransactionId: originalTransactionId,
            transactionId: record.text("transactionId", of: root), at: at, deadline: deadline,
            reason: record.text("requestReason", of: root))
        policy = record.object("policy", of: root).flatMap { policy in
            record.text("version", of: policy).map { Policy(version: $0, rule: record.text("rule", of: policy)) }
        }
        body = Self.bytes(record, "body")
        httpStatus = record.integer("httpStatus", of: root)
        errorCode = record.integer("errorCode", of: root)
        attempt = record.integer("attempt", of: root)
        retryAt = record.integer("retryAt", of: root)
        detail = record.text("detail", of: root)
        amount = record.integer("amount", of: root).map {
            Amount(value: $0, currency: record.text("currency", of: root))
        }
        facts = Self.bytes(record, "facts")
    }

    /// The bytes as they were written: a retry has to send the same bytes.
    private static func bytes(_ record: borrowing JSONDocument, _ name: StaticString) -> [UInt8]? {
        record.object(name, of: record.root).map { value in
            record.raw(value).withUnsafeBufferPointer { Array($0) }
        }
    }
}
