// Where the simulated Apple gets a developer's answer to a refund request.

/// Asked when a decision is due, and repeatedly, because stories are run again: the same question must always get the
/// same answer.
public protocol RefundDesk: Sendable {
    /// - Parameter decidedAt: the time of the decision, in simulated time.
    /// - Returns: nil if that time has not come.
    func answer(to transactionId: String, decidedAt: Int64) -> RefundAnswer?
}

extension RefundAnswer {
    /// How many of a thousand requests end in a refund. Apple decides freely, but usually follows the preference.
    var refundsPerMille: Int {
        switch self {
        case .grantFull: 950
        case .grantProrated: 900
        case .none: 650
        case .unknown, .noPreference: 550
        case .decline: 100
        }
    }
}
