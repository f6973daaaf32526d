// One refund request, from Apple's question to the last word on it.

internal import Contract
internal import Notices

/// What is kept of a request. Its identity is the notification's UUID: Apple may ask about one purchase several times.
struct RefundRequest: Sendable, Equatable {
    enum Stage: Sendable, Equatable {
        /// Usage may still come.
        case waiting
        case decided
        /// For want of consent it may still become `decided`; all other reasons are final.
        case withheld(ConsumptionRecord.Withholding)
        case sent
        case failed
        case expired

        /// Whatever comes, nothing more is decided or told but outcomes.
        var isFinal: Bool { self == .sent || self == .failed || self == .expired }
    }

    /// The first decision fixes what is sent, for ever.
    struct Decision: Sendable, Equatable {
        var policy: ConsumptionRecord.Policy?
        var body: [UInt8]
        var facts: [UInt8]
        var detail: Text?
    }

    let id: Text
    let signedDate: Int64
    /// Of its record: what the wait for usage counts from.
    let timestamp: Int64
    let reason: Text?
    let transactionId: Text?
    /// nil: it came without one that can be answered, or it is over and no longer needed.
    var purchase: Purchase?
    /// How many purchases of this subscription were asked about, this one included.
    let refundsRequested: Int64
    var stage = Stage.waiting
    /// Kept until the request is over.
    var decision: Decision?
    /// Numbers of attempts that `retrying` was told of, in order.
    var toldAttempts: [Int64] = []
    /// Of those that nothing came back from the first: Apple may have it.
    var firstUnanswered: Int64?

    var deadline: Int64 { adding(signedDate, ConsumptionRules.timeToAnswer) }

    func record(
        _ kind: ConsumptionRecord.Kind, at instant: Int64, of originalTransactionId: Text
    ) -> ConsumptionRecord {
        ConsumptionRecord(
            kind, id: id, originalTransactionId: originalTransactionId, transactionId: transactionId, at: instant,
            deadline: deadline, reason: reason)
    }

    /// What stands in the way of every answer, from the first moment on.
    func obstacle(_ rules: ConsumptionRules) -> ConsumptionRecord.Withholding? {
        guard let purchase else { return .noTransaction }
        if !rules.knows(purchase.bundleId) { return .foreignApp }
        switch purchase.ownership {
        case nil, .purchased?: return nil
        case .familyShared?: return .familyShared
        default: return .assigned
        }
    }

    /// Everything that the answer asks about is known: to wait for more would only lose time.
    func isAnswered(by usage: Usage) -> Bool {
        guard let purchase, let delivery = usage.deliveryStatus else { return false }
        return delivery != .delivered || purchase.isAutoRenewable || usage.consumptionPercentage != nil
    }

    /// nil: nothing happens by time alone.
    func nextDue(_ rules: ConsumptionRules) -> Int64? {
        switch stage {
        case .waiting: rules.decisionDue(requestedAt: timestamp, deadline: deadline)
        case .decided: adding(deadline, ConsumptionRules.timeToSettle)
        case .withheld, .sent, .failed, .expired: nil
        }
    }

    /// It is over: what is left is enough to know it again, and to link an outcome to it.
    mutating func reduce() {
        purchase = nil
        decision = nil
        toldAttempts = []
        firstUnanswered = nil
    }
}
