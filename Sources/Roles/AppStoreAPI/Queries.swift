// Filters for listings of notifications and transactions.

internal import JSON

/// Apple's history covers the last 180 days (sandbox: 30).
public struct NotificationHistoryQuery: Sendable, Equatable {
    /// Milliseconds since 1970.
    public var startDate: Int64
    /// Milliseconds since 1970.
    public var endDate: Int64
    /// In Apple's spelling. Cannot be combined with `transactionId`.
    public var notificationType: String?
    /// Only together with a type.
    public var notificationSubtype: String?
    /// Any transaction of one customer.
    public var transactionId: String?
    /// Only notifications that were never answered with success, including those that Apple still retries.
    public var onlyFailures: Bool?

    public init(startDate: Int64, endDate: Int64) {
        self.startDate = startDate
        self.endDate = endDate
    }

    /// The same query always gives the same bytes: Apple requires them for each page.
    var json: [UInt8] {
        var json = JSONWriter()
        json.object { json in
            json.member("startDate", startDate)
            json.member("endDate", endDate)
            if let notificationType { json.member("notificationType", notificationType) }
            if let notificationSubtype { json.member("notificationSubtype", notificationSubtype) }
            if let transactionId { json.member("transactionId", transactionId) }
            if let onlyFailures { json.member("onlyFailures", onlyFailures) }
        }
        return json.bytes
    }
}

/// Members that are nil or empty are left out, and Apple does not filter by them.
public struct TransactionHistoryQuery: Sendable, Equatable {
    public enum Order: String, Sendable, CaseIterable {
        case ascending = "ASCENDING"
        case descending = "DESCENDING"
    }

    /// By `purchaseDate`, milliseconds since 1970; included.
    public var startDate: Int64?
    /// By `purchaseDate`, milliseconds since 1970; not included.
    public var endDate: Int64?
    public var productIds: [String] = []
    /// `AUTO_RENEWABLE`, `NON_RENEWABLE`, `CONSUMABLE`, `NON_CONSUMABLE`.
    public var productTypes: [String] = []
    public var subscriptionGroupIdentifiers: [String] = []
    /// `PURCHASED` or `FAMILY_SHARED`.
    public var inAppOwnershipType: String?
    public var revoked: Bool?
    /// By the time of the last change.
    public var order: Order?

    public init() {}

    var parameters: [(name: String, value: String?)] {
        var parameters: [(name: String, value: String?)] = [
            ("startDate", startDate.map { String($0) }), ("endDate", endDate.map { String($0) }),
        ]
        parameters += productIds.map { ("productId", $0) }
        parameters += productTypes.map { ("productType", $0) }
        parameters += subscriptionGroupIdentifiers.map { ("subscriptionGroupIdentifier", $0) }
        parameters += [
            ("inAppOwnershipType", inAppOwnershipType), ("revoked", revoked.map { String($0) }),
            ("sort", order?.rawValue),
        ]
        return parameters
    }
}
