// The words of an answer to Apple, and the numbers that its older interface has for them.

public enum DeliveryStatus: String, Sendable, CaseIterable {
    case delivered = "DELIVERED"
    case qualityIssue = "UNDELIVERED_QUALITY_ISSUE"
    case wrongItem = "UNDELIVERED_WRONG_ITEM"
    case serverOutage = "UNDELIVERED_SERVER_OUTAGE"
    case other = "UNDELIVERED_OTHER"

    /// In ConsumptionRequestV1, where 4 is a change of the currency within a game, for which there is no word today.
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

    /// In ConsumptionRequestV1, which knows no share of a price.
    public var numberOfV1: Int64 {
        switch self {
        case .grantFull, .grantProrated: 1
        case .decline: 2
        }
    }
}
