// The names of what is counted.

/// One value of a cell. The raw values are stored in states: a new counter needs a new number.
public enum ChurnCounter: UInt8, Sendable, CaseIterable, BitwiseCopyable {
    // How rows were entered: each row counts once in these eight.
    case started = 0, adopted, renewed, switched, resubscribed
    case earlyRecovered, graceRecovered, retryRecovered
    // Payments.
    case charged = 10, unpriced, chargedRefunded
    // Plans.
    case upgraded = 15, downgraded, crossgraded
    // Trials, on their first day.
    case trials = 20, trialsConverted, trialsEnded, trialsOpen
    // Failed payments, on the day of the first attempt.
    case failed = 25, graceEntered, failedOpen
    case recoveredWithin1 = 30, recoveredWithin3, recoveredWithin7, recoveredWithin16, recoveredWithin28
    case recoveredWithin60, recoveredWithin90
    // Retries.
    case retryEntered = 40, retryOpen, retryLost, retryCancelled, retryOther
    // Payment stops and starts again.
    case lapsedVoluntary = 50, lapsedBilling, lapsedPrice, lapsedUnavailable, lapsedRefund, lapsedOther, regained
    // Requests of customers.
    case renewalTurnedOff = 60, renewalTurnedOn
    case refunded = 65, refundReversed, refundRequested, refundDeclined, oneTimeRefunded
    // Commitments, on their first day.
    case commitmentsStarted = 75, commitmentsRefunded, commitmentsCompleted, commitmentsSwitched
    case commitmentsDefaulted, commitmentsOpen
    // The running sums of these are the stocks.
    case activeDelta = 85, trialDelta, graceDelta, retryDelta
    case unpaidGrace = 90

    // Money, in thousandths of the currency's unit.
    case revenue = 128, recoveredRevenue, refundedAmount, refundReversedAmount, chargedRefundedAmount
    case oneTimeRefundedAmount, upgradeRefundedAmount
    case atRiskDelta = 140
    case mrrNew = 145, mrrAdopted, mrrExpansion, mrrContraction, mrrMoved, mrrVoluntary, mrrBilling, mrrPrice
    case mrrRefund, mrrOther, mrrRecovery, mrrReactivation

    public var isMoney: Bool { rawValue >= ChurnCounter.revenue.rawValue }

    /// The name in the output topics.
    public var name: String { Self.names[Int(rawValue)] }

    public init?(name: String) {
        guard let counter = Self.byName[name] else { return nil }
        self = counter
    }

    private static let names: [String] = {
        var names = [String](repeating: "", count: Int(UInt8.max) + 1)
        for counter in allCases { names[Int(counter.rawValue)] = "\(counter)" }
        return names
    }()
    private static let byName = Dictionary(uniqueKeysWithValues: allCases.map { ($0.name, $0) })
}
