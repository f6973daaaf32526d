// Notifications made from short texts.

public let hour: Int64 = 3_600_000
public let day = 24 * hour
/// Midnight UTC, this many days after the 1st of January 2026. Periods of these tests last 30 days.
public func d(_ number: Int64) -> Int64 { 1_767_225_600_000 + number * day }

/// A transaction of the monthly product `pro`. A member in `more` replaces the usual one.
public func bought(
    _ id: String, from: Int64, to: Int64?, signed: Int64, token: String? = nil, bundle: String = "com.example.one",
    _ more: [String: String] = [:]
) -> String {
    var members = [
        "transactionId": "\"\(id)\"", "purchaseDate": "\(from)", "signedDate": "\(signed)",
        "bundleId": "\"\(bundle)\"", "productId": "\"pro\"", "type": "\"Auto-Renewable Subscription\"",
        "inAppOwnershipType": "\"PURCHASED\"", "price": "9990", "currency": "\"USD\"",
    ]
    members["expiresDate"] = to.map { "\($0)" }
    members["appAccountToken"] = token.map { "\"\($0)\"" }
    members.merge(more) { _, new in new }
    return object(members)
}

public func renewal(_ status: Int, at renewalDate: Int64, signed: Int64, _ more: [String: String] = [:]) -> String {
    object(
        ["autoRenewStatus": "\(status)", "renewalDate": "\(renewalDate)", "signedDate": "\(signed)"]
            .merging(more) { _, new in new })
}

private func object(_ members: [String: String]) -> String {
    "{" + members.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",") + "}"
}

public struct Told: Sendable {
    public var type: String
    public var subtype: String?
    public var signed: Int64
    public var transaction: String?
    public var info: String?
    public var status: Int?

    public init(
        _ type: String, _ subtype: String? = nil, at signed: Int64, _ transaction: String? = nil,
        _ info: String? = nil, status: Int? = nil
    ) {
        self.type = type
        self.subtype = subtype
        self.signed = signed
        self.transaction = transaction
        self.info = info
        self.status = status
    }

    public var value: [UInt8] {
        Array(
            ("{\"v\":1,\"notificationUUID\":\"u-\(signed)\",\"notificationType\":\"\(type)\","
                + "\"subtype\":\(subtype.map { "\"\($0)\"" } ?? "null"),\"signedDate\":\(signed),"
                + "\"status\":\(status.map { "\($0)" } ?? "null"),\"transaction\":\(transaction ?? "null"),"
                + "\"renewalInfo\":\(info ?? "null")}").utf8)
    }
}
