// The words of an answer to Apple, and their numbers in the older V1 interface.

public enum DeliveryStatus: String, Sendable, CaseIterable {
    case delivered = "DELIVERED"
    case qualityIssue = "UNDELIVERED_QUALITY_ISSUE"
    case wrongItem = "UNDELIVERED_WRONG_ITEM"
    case serverOutage = "UNDELIVERED_SERVER_OUTAGE"
    case other = "UNDELIVERED_OTHER"

    /// The number in ConsumptionRequestV1. Its value 4, a currency change within a game, has no word today.
    public var numberOfV1: Int64 {
        switch self {
        case .delivered: 0
        case .qualityIssue: 1
        case .wrongItem: 2
        case .serverOutage: 3
        case .other: 5
        }
    }
}

public enum RefundPreference: String, Sendable, CaseIterable {
    case decline = "DECLINE"
    case grantFull = "GRANT_FULL"
    case grantProrated = "GRANT_PRORATED"

    /// The number in ConsumptionRequestV1, which has no partial refund.
    public var numberOfV1: Int64 {
        switch self {
        case .grantFull, .grantProrated: 1
        case .decline: 2
        }
    }
}
