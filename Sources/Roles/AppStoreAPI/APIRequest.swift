// The requests to Apple: method, path and body of each, and how its answer is read.

internal import JSON

/// One request with the type of its answer. Made by the functions below.
public struct APIRequest<Value: Sendable>: Sendable, CustomStringConvertible, CustomReflectable {
    /// For logs and metric labels; from a closed set.
    public let name: String
    let method: String
    /// Path from the root; nil if an argument cannot be part of it.
    let target: String?
    let body: [UInt8]
    let successStatus: Int
    let read: @Sendable ([UInt8]) throws(UnreadableAnswer) -> Value

    /// Only the name: paths contain ids, and bodies contain data of customers, so neither belongs in a log.
    public var description: String { name }
    public var customMirror: Mirror { Mirror(self, children: ["name": name]) }
}

// MARK: Consumption

/// Apple has accepted the answer, and returns nothing else.
public struct ConsumptionAccepted: Sendable, Equatable {
    public init() {}
}

extension APIRequest where Value == ConsumptionAccepted {
    /// - Parameters:
    ///   - transactionId: the id in the notification, not the original one.
    ///   - body: JSON, sent unchanged.
    public static func consumptionV2(transactionId: String, body: [UInt8]) -> APIRequest {
        consumption("consumption_v2", "/inApps/v2/transactions/consumption/", transactionId, body)
    }

    /// For transactions that V2 refuses (Advanced Commerce).
    public static func consumptionV1(transactionId: String, body: [UInt8]) -> APIRequest {
        consumption("consumption_v1", "/inApps/v1/transactions/consumption/", transactionId, body)
    }

    private static func consumption(
        _ name: String, _ path: String, _ transactionId: String, _ body: [UInt8]
    ) -> APIRequest {
        APIRequest(
            name: name, method: "PUT", target: PathPart.transactionId(transactionId).map { path + $0 }, body: body,
            successStatus: 202, read: { _ in ConsumptionAccepted() })
    }
}

// MARK: Notifications

extension APIRequest where Value == TestNotificationRequested {
    /// Apple will send a TEST notification to the app's notification URL.
    public static func testNotification() -> APIRequest {
        .reading("test_notification", "POST", "/inApps/v1/notifications/test")
    }
}

extension APIRequest where Value == TestNotificationStatus {
    public static func testNotificationStatus(token: String) -> APIRequest {
        .reading(
            "test_notification_status", "GET",
            PathPart.token(token).map { "/inApps/v1/notifications/test/\($0)" })
    }
}

extension APIRequest where Value == NotificationHistoryPage {
    /// - Parameter paginationToken: the token of the previous page. All pages are requested with the same query.
    public static func notificationHistory(
        _ query: NotificationHistoryQuery, paginationToken: String? = nil
    ) -> APIRequest {
        .reading(
            "notification_history", "POST",
            "/inApps/v1/notifications/history" + queryText([("paginationToken", paginationToken)]), body: query.json)
    }
}

// MARK: Transactions

extension APIRequest where Value == TransactionHistoryPage {
    /// - Parameters:
    ///   - transactionId: any transaction of the customer.
    ///   - revision: the revision of the previous page; of the last page, to get what has changed since. All pages are
    ///     requested with the same query.
    public static func transactionHistory(
        of transactionId: String, _ query: TransactionHistoryQuery = TransactionHistoryQuery(), revision: String? = nil
    ) -> APIRequest {
        let parameters = [("revision", revision)] + query.parameters
        return .reading(
            "transaction_history", "GET",
            PathPart.transactionId(transactionId).map { "/inApps/v2/history/\($0)" + queryText(parameters) })
    }
}

extension APIRequest where Value == SubscriptionStatuses {
    /// - Parameters:
    ///   - transactionId: any transaction of the customer.
    ///   - statuses: Apple's numbers (1 active, 2 expired, 3 billing retry, 4 grace, 5 revoked). If empty, all.
    public static func subscriptionStatuses(of transactionId: String, statuses: [Int] = []) -> APIRequest {
        let parameters = statuses.map { ("status", String($0) as String?) }
        return .reading(
            "subscription_statuses", "GET",
            PathPart.transactionId(transactionId).map { "/inApps/v1/subscriptions/\($0)" + queryText(parameters) })
    }
}

extension APIRequest where Value == TransactionInfo {
    public static func transactionInfo(_ transactionId: String) -> APIRequest {
        .reading(
            "transaction_info", "GET",
            PathPart.transactionId(transactionId).map { "/inApps/v1/transactions/\($0)" })
    }
}

extension APIRequest where Value: ReadableAnswer {
    fileprivate static func reading(
        _ name: String, _ method: String, _ target: String?, body: [UInt8] = []
    ) -> APIRequest {
        APIRequest(
            name: name, method: method, target: target, body: body, successStatus: 200,
            read: { (body: [UInt8]) throws(UnreadableAnswer) in try Value(AnswerObject(body)) })
    }
}

// MARK: Parts of addresses

/// Values from outside that become part of a path. Characters that could change the path are refused, not escaped: none
/// of Apple's ids contains them.
enum PathPart {
    /// Apple's ids have 15 to 25 digits.
    static let maxIdBytes = 64
    /// Enough for a UUID and a time.
    static let maxTokenBytes = 256

    /// Digits and letters; nil: the text is not a valid id.
    static func transactionId(_ text: String) -> String? {
        (1...maxIdBytes).contains(text.utf8.count) && text.utf8.allSatisfy(isAlphanumeric) ? text : nil
    }

    /// Digits, letters, `-` and `_`; nil: the text is not a valid token.
    static func token(_ text: String) -> String? {
        let dashes = [UInt8(ascii: "-"), UInt8(ascii: "_")]
        return (1...maxTokenBytes).contains(text.utf8.count)
            && text.utf8.allSatisfy { isAlphanumeric($0) || dashes.contains($0) } ? text : nil
    }
}

/// Parameters whose value is nil are left out.
func queryText(_ parameters: [(name: String, value: String?)]) -> String {
    let pairs = parameters.compactMap { name, value in value.map { "\(name)=\(percentEncoded($0))" } }
    return pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&")
}

/// Escapes everything except the unreserved characters of RFC 3986.
private func percentEncoded(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var encoded: [UInt8] = []
    for byte in text.utf8 {
        if isAlphanumeric(byte) || "-._~".utf8.contains(byte) {
            encoded.append(byte)
        } else {
            encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }
    return String(decoding: encoded, as: UTF8.self)
}

private func isAlphanumeric(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "a")...UInt8(ascii: "z"):
        true
    default: false
    }
}
