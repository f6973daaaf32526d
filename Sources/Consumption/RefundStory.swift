// One refund request as its records tell it.

internal import Contract
public import Notices

/// What is known of a request by now. Records are added in the order of their partition.
public struct RefundStory: Sendable, Equatable {
    /// What has become of it.
    public enum Standing: String, Sendable, CaseIterable {
        /// Usage may still come.
        case waiting
        case decided, retrying, withheld, sent, failed, expired

        /// Nothing more is sent, whatever comes.
        public var isFinal: Bool { self == .sent || self == .failed || self == .expired }
    }

    /// Tries of a whole deadline, made as seldom as they are after some minutes. Of more the first and the newest are kept.
    public static let limitSteps = 200
    private static let keptFirst = 50
    /// Apple has a handful of words for one purchase.
    static let limitOutcomes = 20

    public let id: Text
    public let originalTransactionId: Text
    public let deadline: Int64
    public private(set) var transactionId: Text?
    public private(set) var requestReason: Text?
    public private(set) var standing = Standing.waiting
    /// The first one: it fixes what is sent, for ever.
    public private(set) var decision: ConsumptionRecord?
    /// The newest one.
    public private(set) var withheld: ConsumptionRecord?
    /// The answer of the second policy.
    public private(set) var shadow: ConsumptionRecord?
    /// The last word: `sent`, `failed` or `expired`.
    public private(set) var ending: ConsumptionRecord?
    /// In the order of Apple's dates.
    public private(set) var outcomes: [ConsumptionRecord] = []
    /// Every record but outcomes and shadow, without facts and bodies.
    public private(set) var steps: [ConsumptionRecord] = []
    public private(set) var droppedSteps = 0

    /// Of the first record that is known of it, which `add` takes too.
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

    /// Steps that whoever kept the records has left out.
    public mutating func leaveOut(_ count: Int) { droppedSteps += count }

    // MARK: What follows from it

    /// What the answer rests on: of the decision, or of a policy that has withheld it. JSON.
    public var facts: [UInt8]? { decision?.facts ?? withheld?.facts }
    public var policy: ConsumptionRecord.Policy? { decision?.policy ?? withheld?.policy }
    /// Why nothing is sent; nil while that is not so.
    public var withholding: Text? { standing == .withheld ? withheld?.detail : nil }
    /// Between the moment Apple took the answer and the deadline.
    public var margin: Int64? {
        guard standing == .sent, let sent = ending?.at else { return nil }
        return adding(deadline, sent == .min ? .max : -sent)
    }
    /// What Apple did last.
    public var outcome: Text? { outcomes.last?.detail }
    /// Attempts that were made, as far as their numbers tell.
    public var attempts: [ConsumptionRecord] { steps.filter { $0.attempt != nil } }
}
