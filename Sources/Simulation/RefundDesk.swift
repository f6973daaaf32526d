// Where the make-believe Apple learns what a developer has said of a refund.

/// Asked when a decision is due, again and again, because stories are told anew: what it once said it says for ever.
public protocol RefundDesk: Sendable {
    /// - Parameter decidedAt: the time of the decision, in the simulation's time.
    /// - Returns: nil when that time has not come.
    func answer(to transactionId: String, decidedAt: Int64) -> RefundAnswer?
}

extension RefundAnswer {
    /// How many of a thousand requests end in a refund. Apple decides as it likes, and mostly as it is asked to.
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
