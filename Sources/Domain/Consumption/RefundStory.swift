// One refund request, put together from its records.

internal import Contract
public import Notices

/// The current knowledge about a request. Records are added in the order of their partition.
public struct RefundStory: Sendable, Equatable {
    /// The current stage of the request.
    public enum Standing: String, Sendable, CaseIterable {
        /// More usage may still arrive.
        case waiting
        case decided, retrying, withheld, sent, failed, expired

        /// No answer is sent any more.
        public var isFinal: Bool { self == .sent || self == .failed || self == .expired }
    }

    /// Enough for retries over the whole period at the slow rate they reach after some minutes. Beyond the limit the
    /// first and the newest are kept.
    public static let limitSteps = 200
    private static let keptFirst = 50
    /// Apple sends only a few outcomes for one purchase.
    static let limitOutcomes = 20

    public let id: Text
    public let originalTransactionId: Text
    public let deadline: Int64
    public private(set) var transactionId: Text?
    public private(set) var requestReason: Text?
    public private(set) var standing = Standing.waiting
    /// The first decision: it permanently fixes what is sent.
    public private(set) var decision: ConsumptionRecord?
    /// The newest record of this kind.
    public private(set) var withheld: ConsumptionRecord?
    /// The answer of the shadow policy.
    public private(set) var shadow: ConsumptionRecord?
    /// The final record: `sent`, `failed` or `expired`.
    public private(set) var ending: ConsumptionRecord?
    /// In the order of Apple's dates.
    public private(set) var outcomes: [ConsumptionRecord] = []
    /// All records except outcomes and shadow, without facts and bodies.
    public private(set) var steps: [ConsumptionRecord] = []
    public private(set) var droppedSteps = 0

    /// Starts with the first known record, which must also be passed to `add`.
    public init(of record: ConsumptionRecord) {
        id = record.id
        originalTransactionId = record.originalTransactionId
        deadline = record.deadline
    }

    /// When Apple signed the request.
    public var requestedAt: Int64 { adding(deadline, -ConsumptionRules.timeToAnswer) }

    public mutating func add(_ record: ConsumptionRecord) {
        transactionId = transactionId ?? record.transactionId
        requestReason = requestReason ?? record.requestReason
        switch record.kind {
        case .requested: break
        case .decided:
            decision = decision ?? record
            move(to: .decided)
        case .withheld:
            withheld = record
            move(to: .withheld)
        case .retrying: if standing == .decided { move(to: .retrying) }
        case .sent: end(.sent, record)
        case .failed: end(.failed, record)
        case .expired: end(.expired, record)
        case .outcome: return note(outcome: record)
        case .shadow: return shadow = shadow ?? record
        }
        var step = record
        step.facts = nil
        step.body = nil
        steps.append(step)
        guard steps.count > Self.limitSteps else { return }
        steps.remove(at: Self.keptFirst)
        droppedSteps += 1
    }

    private mutating func move(to next: Standing) {
        if !standing.isFinal { standing = next }
    }

    private mutating func end(_ word: Standing, _ record: ConsumptionRecord) {
        guard !standing.isFinal else { return }
        standing = word
        ending = record
    }

    private mutating func note(outcome: ConsumptionRecord) {
        let place = outcomes.firstIndex { $0.at > outcome.at } ?? outcomes.count
        outcomes.insert(outcome, at: place)
        if outcomes.count > Self.limitOutcomes { outcomes.removeFirst() }
    }

    /// Adds the number of steps that the stored records already left out.
    public mutating func leaveOut(_ count: Int) { droppedSteps += count }

    // MARK: What follows from it

    /// The basis of the answer as JSON: from the decision, or from the policy's decision to withhold.
    public var facts: [UInt8]? { decision?.facts ?? withheld?.facts }
    public var policy: ConsumptionRecord.Policy? { decision?.policy ?? withheld?.policy }
    /// Why no answer is sent; nil if the request is not withheld.
    public var withholding: Text? { standing == .withheld ? withheld?.detail : nil }
    /// The time between Apple's acceptance of the answer and the deadline.
    public var margin: Int64? {
        guard standing == .sent, let sent = ending?.at else { return nil }
        return adding(deadline, sent == .min ? .max : -sent)
    }
    /// Apple's latest outcome.
    public var outcome: Text? { outcomes.last?.detail }
    /// The attempts that were made and are still kept.
    public var attempts: [ConsumptionRecord] { steps.filter { $0.attempt != nil } }
}
