// The numbers of the words of an answer in Apple's older V1 interface.

public import Records

extension DeliveryStatus {
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

extension RefundPreference {
    /// The number in ConsumptionRequestV1, which has no partial refund.
    public var numberOfV1: Int64 {
        switch self {
        case .grantFull, .grantProrated: 1
        case .decline: 2
        }
    }
}
