// One refund request, from Apple's notification to its final record.

internal import Contract
internal import Notices
internal import Records

/// The stored state of a request. The UUID of the notification identifies it: Apple may ask about one purchase several
/// times.
struct RefundRequest: Sendable, Equatable {
    enum Stage: Sendable, Equatable {
        /// More usage may still arrive.
        case waiting
        case decided
        /// A request that lacks consent may still become `decided`; all other reasons are final.
        case withheld(ConsumptionRecord.Withholding)
        case sent
        case failed
        case expired

        /// Only outcomes are recorded after this.
        var isFinal: Bool { self == .sent || self == .failed || self == .expired }
    }

    /// The first decision permanently fixes what is sent.
    struct Decision: Sendable, Equatable {
        var policy: ConsumptionRecord.Policy?
        var body: [UInt8]
        var facts: [UInt8]
        var detail: Text?
    }

    let id: Text
    let signedDate: Int64
    /// The timestamp of its record; the wait for usage starts here.
    let timestamp: Int64
    let reason: Text?
    let transactionId: Text?
    /// nil: the request has no transaction that can be answered, or it is over and the purchase is no longer needed.
    var purchase: Purchase?
    /// How many purchases of this subscription had refund requests so far, including this one.
    let refundsRequested: Int64
    var stage = Stage.waiting
    /// Kept until the request is over.
    var decision: Decision?
    /// The attempt numbers that already have a `retrying` record, sorted.
    var toldAttempts: [Int64] = []
    /// The number of the first attempt without a response: Apple may have received its answer.
    var firstUnanswered: Int64?

    var deadline: Int64 { adding(signedDate, ConsumptionRules.timeToAnswer) }

    func record(
        _ kind: ConsumptionRecord.Kind, at instant: Int64, of originalTransactionId: Text
    ) -> ConsumptionRecord {
        ConsumptionRecord(
            kind, id: id, originalTransactionId: originalTransactionId, transactionId: transactionId, at: instant,
            deadline: deadline, reason: reason)
    }

    /// A reason that rules out every answer from the beginning.
    func obstacle(_ rules: ConsumptionRules) -> ConsumptionRecord.Withholding? {
        guard let purchase else { return .noTransaction }
        if !rules.knows(purchase.bundleId) { return .foreignApp }
        switch purchase.ownership {
        case nil, .purchased?: return nil
        case .familyShared?: return .familyShared
        default: return .assigned
        }
    }

    /// True if everything that the answer contains is known: waiting longer would only lose time.
    func isAnswered(by usage: Usage) -> Bool {
        guard let purchase, let delivery = usage.deliveryStatus else { return false }
        return delivery != .delivered || purchase.isAutoRenewable || usage.consumptionPercentage != nil
    }

    /// nil: time alone changes nothing.
    func nextDue(_ rules: ConsumptionRules) -> Int64? {
        switch stage {
        case .waiting: rules.decisionDue(requestedAt: timestamp, deadline: deadline)
        case .decided: adding(deadline, ConsumptionRules.timeToSettle)
        case .withheld, .sent, .failed, .expired: nil
        }
    }

    /// Drops what a finished request no longer needs. The rest is enough to recognise it and to link outcomes to it.
    mutating func reduce() {
        purchase = nil
        decision = nil
        toldAttempts = []
        firstUnanswered = nil
    }
}
