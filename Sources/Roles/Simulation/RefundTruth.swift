// The truth about a refund request: whether it may be answered, and its outcome.

internal import Contract
internal import JSON

/// One `CONSUMPTION_REQUEST`. A second one for the same purchase is separate.
///
/// As a JSON line of kind `refund_request`: `at`, `deadline`, `subscriber`, `notificationUUID`, `transactionId`,
/// `originalTransactionId`, `appTransactionId`, `environment`, `bundleId`, `productId`, `productType`, `reason`,
/// `family`, `advancedCommerce`, `price`, `currency`, `quantity`, `periodNumber` (of a commitment, or null), `consent`
/// (what the backend reported by the deadline, each entry with `at` and `consented`), `consentAtRequest` and
/// `consentAtDeadline` (null: nothing was reported), `answer` (see `RefundTruth.Answer`), `outcome` (`refunded`,
/// `declined`, `reversed`, or null) and `outcomeAt`.
public struct RefundTruth: Sendable {
    /// How long Apple waits for an answer, in milliseconds.
    public static let timeToAnswer = 12 * hour

    /// Whether a worker that receives everything from the backend answers.
    public enum Answer: String, Sendable {
        /// Consent lasts from the request to the deadline, and Apple does not decide earlier.
        case must
        /// It depends on when the worker decides.
        case may
        /// There was no consent before the deadline, or the purchase is shared by a family.
        case never
    }

    public struct Consent: Sendable, Equatable {
        public let at: Int64
        public let consented: Bool
    }

    public let at: Int64
    public let subscriber: Int
    public let notificationUUID: String
    public let transaction: KnownTransaction
    /// In the order of time, up to the deadline.
    public let consent: [Consent]
    public let outcome: String?
    public let outcomeAt: Int64?
    /// Apple's first outcome that closes the case.
    let settledAt: Int64?
    let row: Transaction
    let reason: String
    let currency: String
    let appTransactionId: String

    public var deadline: Int64 { at + Self.timeToAnswer }
    public var consentAtRequest: Bool? { consent.last { $0.at <= at }?.consented }
    public var consentAtDeadline: Bool? { consent.last?.consented }

    public var answer: Answer {
        if transaction.isFamilyShared { return .never }
        let sinceRequest = consent.filter { $0.at > at }.map(\.consented)
        if consentAtRequest != true, !sinceRequest.contains(true) { return .never }
        let isSettled = settledAt.map { $0 <= deadline } ?? false
        return consentAtRequest == true && !sinceRequest.contains(false) && !isSettled ? .must : .may
    }

    public var line: [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.member("kind", "refund_request")
            json.member("at", at)
            json.member("deadline", deadline)
            json.member("subscriber", subscriber)
            json.member("notificationUUID", notificationUUID)
            json.member("transactionId", transaction.transactionId)
            json.member("originalTransactionId", transaction.originalTransactionId)
            json.member("appTransactionId", appTransactionId)
            json.member("environment", transaction.environment.rawValue)
            json.member("bundleId", transaction.bundleId)
            json.member("productId", row.product.id)
            json.member("productType", transaction.type)
            json.member("reason", reason)
            json.member("family", transaction.isFamilyShared)
            json.member("advancedCommerce", transaction.isAdvancedCommerce)
            json.member("price", row.price)
            json.member("currency", currency)
            json.member("quantity", row.quantity)
            json.member("periodNumber", orNull: row.commitment?.period)
            json.name("consent")
            json.array { json in
                for word in consent {
                    json.object { json in
                        json.member("at", word.at)
                        json.member("consented", word.consented)
                    }
                }
            }
            json.member("consentAtRequest", orNull: consentAtRequest)
            json.member("consentAtDeadline", orNull: consentAtDeadline)
            json.member("answer", answer.rawValue)
            json.member("outcome", outcome)
            json.member("outcomeAt", orNull: outcomeAt)
        }
        return json.bytes
    }
}

extension Simulation {
    /// In the order of time.
    public func refundRequests(of subscriber: Int) -> [RefundTruth] {
        let told = life(of: subscriber).notifications
        let words = told.flatMap(usage(after:)).filter { $0.consented != nil }.sorted { $0.at < $1.at }
        return told.compactMap { request in
            guard case .data(let row?, _, _, let reason?) = request.content, let transaction = request.knownTransaction
            else { return nil }
            let endings = told.filter { other in
                other.at > request.at && other.notificationType.hasPrefix("REFUND")
                    && other.knownTransaction?.transactionId == transaction.transactionId
            }
            let consent = words.filter { word in
                word.originalTransactionId == transaction.originalTransactionId
                    && word.transactionId.map { $0 == transaction.transactionId } ?? true
                    && word.at <= request.at + RefundTruth.timeToAnswer
            }
            return RefundTruth(
                at: request.at, subscriber: subscriber, notificationUUID: request.notificationUUID,
                transaction: transaction,
                consent: consent.compactMap { word in
                    word.consented.map { RefundTruth.Consent(at: word.at, consented: $0) }
                },
                outcome: endings.last.map { Self.outcome($0.notificationType) }, outcomeAt: endings.last?.at,
                settledAt: endings.first?.at, row: row, reason: reason,
                currency: request.customer.storefront.currency,
                appTransactionId: String(request.customer.appTransactionId))
        }
    }

    private static func outcome(_ notificationType: String) -> String {
        switch notificationType {
        case "REFUND_DECLINED": "declined"
        case "REFUND_REVERSED": "reversed"
        default: "refunded"
        }
    }
}
