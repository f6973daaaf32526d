// The state that a worker keeps for the refunds of one subscription or one-time purchase, and its transitions.

internal import Contract
public import Notices

/// Why a notification cannot be processed.
public enum RefundFault: String, Error, Sendable, CaseIterable {
    /// The subscription has more open requests than the limit allows.
    case tooManyRequests = "too_many_requests"
    /// The request has no UUID, which links everything about it.
    case noUUID = "no_uuid"
}

/// Inputs are notices, rows and time; outputs are records. A pure value.
public struct RefundState: Sendable, Equatable {
    /// The version of the encoding; the worker's `stateFormat`.
    public static let format: UInt8 = 1

    static let limitRequests = 256
    static let limitOutcomes = 1_000
    static let limitStandings = 1_000
    static let limitAsked = 1_000
    /// Attempts of requests that are not decided yet; a replay may read the attempt first.
    static let limitEarlyAttempts = 64

    struct KnownOutcome: Sendable, Equatable {
        var id: Text
        var outcome: RefundOutcome
        var transactionId: Text
        var signedDate: Int64
        var amount: ConsumptionRecord.Amount?
    }

    var hadFreeTrial = false
    var usage = UsageTable()
    /// Transactions that some payload called refunded, sorted by id.
    var standings: [RefundStanding] = []
    /// In the order of the log.
    var outcomes: [KnownOutcome] = []
    /// Transactions with refund requests, each once; the number beside it counts those forgotten at the limit.
    var asked: [Text] = []
    var forgottenAsked: Int64 = 0
    /// In the order of the log.
    var requests: [RefundRequest] = []
    var earlyAttempts: [Attempt] = []

    public init() {}

    public var isEmpty: Bool { self == RefundState() }

    /// The next instant at which time alone changes something.
    public func nextDue(_ rules: ConsumptionRules) -> Int64? { requests.compactMap { $0.nextDue(rules) }.min() }

    var refundsGranted: Int64 { Int64(standings.count { $0.isRefunded }) }
}

/// One input of the state: when it happens, and the records that it causes.
public struct RefundStep {
    public let originalTransactionId: Text
    /// The partition's clock.
    public let clock: Int64
    /// The timestamp of the input record.
    public let timestamp: Int64
    public let rules: ConsumptionRules
    public private(set) var records: [ConsumptionRecord] = []
    /// Answers that Apple accepted after the final record of their request was written.
    public internal(set) var lateAcceptances = 0
    /// Attempts that belong to no known request.
    public internal(set) var strayAttempts = 0
    /// Requests that arrived after Apple's deadline.
    public internal(set) var tooLate = 0

    public init(originalTransactionId: Text, clock: Int64, timestamp: Int64, rules: ConsumptionRules) {
        self.originalTransactionId = originalTransactionId
        self.clock = clock
        self.timestamp = timestamp
        self.rules = rules
    }

    mutating func tell(_ record: ConsumptionRecord) { records.append(record) }
}

// MARK: Notifications

extension RefundState {
    public mutating func take(_ notice: RefundNotice, _ step: inout RefundStep) throws(RefundFault) {
        if notice.isFreeTrial { hadFreeTrial = true }
        if let standing = notice.standing { merge(standing) }
        switch notice.kind {
        case .request(let reason): try open(notice, reason, &step)
        case .outcome(let outcome): take(outcome, notice, &step)
        case .other: break
        }
    }

    private mutating func merge(_ standing: RefundStanding) {
        guard let place = standings.firstIndex(where: { $0.transactionId >= standing.transactionId }) else {
            return append(standing, at: standings.count)
        }
        guard standings[place].transactionId == standing.transactionId else { return append(standing, at: place) }
        if standings[place].version < standing.version { standings[place] = standing }
    }

    private mutating func append(_ standing: RefundStanding, at place: Int) {
        standings.insert(standing, at: place)
        if standings.count > Self.limitStandings { standings.removeFirst() }
    }

    private mutating func open(_ notice: RefundNotice, _ reason: Text?, _ step: inout RefundStep) throws(RefundFault) {
        guard let id = notice.notificationUUID, !id.bytes.isEmpty else { throw .noUUID }
        guard !requests.contains(where: { $0.id == id }) else { return }
        if requests.count >= Self.limitRequests { try forgetRequest(at: step.clock) }
        if let transactionId = notice.purchase?.transactionId, !asked.contains(transactionId) {
            asked.append(transactionId)
            if asked.count > Self.limitAsked {
                asked.removeFirst()
                forgottenAsked = adding(forgottenAsked, 1)
            }
        }
        let request = RefundRequest(
            id: id, signedDate: notice.signedDate ?? step.timestamp, timestamp: step.timestamp, reason: reason,
            transactionId: notice.purchase?.transactionId, purchase: notice.purchase,
            refundsRequested: adding(forgottenAsked, Int64(asked.count)))
        requests.append(request)
        let place = requests.count - 1
        step.tell(request.record(.requested, at: request.signedDate, of: step.originalTransactionId))
        if step.clock >= request.deadline {
            step.tooLate += 1
            expire(place, &step)
        } else {
            judge(place, &step)
        }
        for known in outcomes where requests[place].isMeant(by: known) { tell(known, place, &step) }
    }

    /// Forgets the oldest finished request. If Apple sent it again, it would count as new, but its deadline would have
    /// passed.
    private mutating func forgetRequest(at clock: Int64) throws(RefundFault) {
        guard let place = requests.firstIndex(where: { adding($0.deadline, ConsumptionRules.timeToSettle) <= clock })
        else {
            throw .tooManyRequests
        }
        requests.remove(at: place)
    }

    private mutating func take(_ outcome: RefundOutcome, _ notice: RefundNotice, _ step: inout RefundStep) {
        guard let id = notice.notificationUUID, let transactionId = notice.purchase?.transactionId,
            let signedDate = notice.signedDate, !outcomes.contains(where: { $0.id == id })
        else { return }
        let known = KnownOutcome(
            id: id, outcome: outcome, transactionId: transactionId, signedDate: signedDate,
            amount: notice.amount(of: outcome))
        outcomes.append(known)
        if outcomes.count > Self.limitOutcomes { outcomes.removeFirst() }
        for place in requests.indices where requests[place].isMeant(by: known) {
            tell(known, place, &step)
            judge(place, &step)
        }
    }

    private func tell(_ known: KnownOutcome, _ place: Int, _ step: inout RefundStep) {
        var record = requests[place].record(.outcome, at: known.signedDate, of: step.originalTransactionId)
        record.detail = known.outcome.word
        record.amount = known.amount
        step.tell(record)
    }
}

extension RefundRequest {
    fileprivate func isMeant(by known: RefundState.KnownOutcome) -> Bool {
        transactionId == known.transactionId && signedDate <= known.signedDate
    }
}

extension RefundNotice {
    fileprivate func amount(of outcome: RefundOutcome) -> ConsumptionRecord.Amount? {
        guard let price = purchase?.price else { return nil }
        switch outcome {
        case .refunded:
            return ConsumptionRecord.Amount(
                value: rounded(price, times: refundedShare ?? 100_000, over: 100_000), currency: purchase?.currency)
        // The transaction does not say how much a reversal returns. A declined request moves no money.
        case .declined, .reversed: return nil
        }
    }
}

// MARK: Usage and time

extension RefundState {
    public mutating func take(_ row: UsageRow, _ step: inout RefundStep) {
        usage.merge(row)
        for place in requests.indices
        where row.transactionId == nil || requests[place].transactionId == row.transactionId {
            judge(place, &step)
        }
    }

    /// To be called when the clock has reached `nextDue`.
    public mutating func wake(_ step: inout RefundStep) {
        for place in requests.indices {
            guard let due = requests[place].nextDue(step.rules), due <= step.clock else { continue }
            if requests[place].stage == .decided { expire(place, &step) } else { judge(place, &step) }
        }
    }

    private mutating func expire(_ place: Int, _ step: inout RefundStep) {
        requests[place].stage = .expired
        requests[place].reduce()
        step.tell(requests[place].record(.expired, at: step.clock, of: step.originalTransactionId))
    }

    /// Decides the request if possible, and withholds an answer that may no longer be sent.
    private mutating func judge(_ place: Int, _ step: inout RefundStep) {
        let request = requests[place]
        guard step.clock < request.deadline else { return }
        switch request.stage {
        case .sent, .failed, .expired: return
        case .withheld(let cause) where cause != .noConsent: return
        case .waiting, .decided, .withheld: break
        }
        if let obstacle = request.obstacle(step.rules) { return withhold(place, obstacle, &step) }
        if isSettled(request) { return withhold(place, .settled, &step) }
        guard let transactionId = request.transactionId else { return }
        let usage = usage.usage(of: transactionId)
        let isDue = step.clock >= step.rules.decisionDue(requestedAt: request.timestamp, deadline: request.deadline)
        guard usage.consent?.isGiven == true else {
            if isDue || request.stage == .decided { withhold(place, .noConsent, &step) }
            return
        }
        if request.decision != nil {
            if request.stage != .decided { tellDecision(place, &step) }
        } else if isDue || request.isAnswered(by: usage) {
            decide(place, usage, &step)
        }
    }

    /// Apple has closed the case: an answer would come too late.
    private func isSettled(_ request: RefundRequest) -> Bool {
        outcomes.contains {
            $0.outcome != .reversed && $0.transactionId == request.transactionId && $0.signedDate > request.signedDate
        }
    }

    private mutating func withhold(
        _ place: Int, _ cause: ConsumptionRecord.Withholding, _ step: inout RefundStep
    ) {
        guard requests[place].stage != .withheld(cause) else { return }
        requests[place].stage = .withheld(cause)
        var record = requests[place].record(.withheld, at: step.clock, of: step.originalTransactionId)
        record.detail = Text(cause.rawValue)
        step.tell(record)
    }

    // MARK: Decisions

    private mutating func decide(_ place: Int, _ usage: Usage, _ step: inout RefundStep) {
        guard let facts = facts(of: requests[place], usage, step.rules) else { return }
        let policy = step.rules.policy
        let verdict = facts.verdict(of: policy)
        let named = policy.map {
            ConsumptionRecord.Policy(version: Text($0.version), rule: verdict.rule.map { Text($0) })
        }
        if verdict.isWithheld {
            requests[place].stage = .withheld(.policy)
            var record = requests[place].record(.withheld, at: step.clock, of: step.originalTransactionId)
            record.detail = Text(ConsumptionRecord.Withholding.policy.rawValue)
            record.policy = named
            record.facts = facts.json(verdict)
            step.tell(record)
        } else {
            requests[place].decision = RefundRequest.Decision(
                policy: named, body: facts.body(verdict, at: step.clock), facts: facts.json(verdict),
                detail: verdict.lacksPercentage ? ConsumptionRecord.noPercentage : nil)
            tellDecision(place, &step)
        }
        tellShadow(place, facts, &step)
        // A withheld request was never attempted: such attempts belong to another policy.
        if requests[place].decision != nil { takeEarlyAttempts(place, &step) }
    }

    private func facts(of request: RefundRequest, _ usage: Usage, _ rules: ConsumptionRules) -> KnownFacts? {
        guard let purchase = request.purchase else { return nil }
        return KnownFacts(
            purchase: purchase, reason: request.reason, usage: usage,
            elapsedShare: rules.elapsedShare(of: purchase, at: request.signedDate),
            daysSincePurchase: purchase.days(until: request.signedDate), refundsRequested: request.refundsRequested,
            refundsGranted: refundsGranted, hadFreeTrial: hadFreeTrial)
    }

    private mutating func tellDecision(_ place: Int, _ step: inout RefundStep) {
        requests[place].stage = .decided
        guard let decision = requests[place].decision else { return }
        var record = requests[place].record(.decided, at: step.clock, of: step.originalTransactionId)
        record.policy = decision.policy
        record.body = decision.body
        record.detail = decision.detail
        record.facts = decision.facts
        step.tell(record)
    }

    /// Records what the shadow policy would have decided.
    private func tellShadow(_ place: Int, _ facts: KnownFacts, _ step: inout RefundStep) {
        guard let shadow = step.rules.policy?.shadow else { return }
        let verdict = facts.verdict(of: shadow)
        var record = requests[place].record(.shadow, at: step.clock, of: step.originalTransactionId)
        record.policy = ConsumptionRecord.Policy(
            version: Text(shadow.version), rule: verdict.rule.map { Text($0) })
        if verdict.isWithheld {
            record.detail = Text(ConsumptionRecord.Withholding.policy.rawValue)
        } else {
            record.body = facts.body(verdict, at: step.clock)
        }
        step.tell(record)
    }
}

// MARK: Attempts

extension RefundState {
    public mutating func take(_ attempt: Attempt, _ step: inout RefundStep) {
        guard let place = requests.firstIndex(where: { $0.id == attempt.id }),
            requests[place].decision != nil || requests[place].stage.isFinal
        else {
            // A replay may read the attempt before the request.
            guard earlyAttempts.count < Self.limitEarlyAttempts else { return step.strayAttempts += 1 }
            if !earlyAttempts.contains(attempt) { earlyAttempts.append(attempt) }
            return
        }
        apply(attempt, place, &step)
    }

    private mutating func takeEarlyAttempts(_ place: Int, _ step: inout RefundStep) {
        let id = requests[place].id
        let early = earlyAttempts.filter { $0.id == id }
        earlyAttempts.removeAll { $0.id == id }
        for attempt in early { apply(attempt, place, &step) }
    }

    /// A 202 in any attempt counts, whatever the stage is; after a final stage no record follows.
    private mutating func apply(_ attempt: Attempt, _ place: Int, _ step: inout RefundStep) {
        let verdict = attempt.verdict
        guard !requests[place].stage.isFinal else {
            if verdict == .sent, requests[place].stage != .sent { step.lateAcceptances += 1 }
            return
        }
        var record: ConsumptionRecord
        switch verdict {
        case .sent:
            record = requests[place].record(.sent, at: attempt.at, of: step.originalTransactionId)
            requests[place].stage = .sent
        case .failed:
            record = requests[place].record(.failed, at: attempt.at, of: step.originalTransactionId)
            requests[place].stage = .failed
            if let first = requests[place].firstUnanswered, first < attempt.number {
                record.detail = ConsumptionRecord.maybeSent
            }
        case .retry, .unauthorized:
            if attempt.httpStatus == nil {
                let first = requests[place].firstUnanswered ?? attempt.number
                requests[place].firstUnanswered = min(first, attempt.number)
            }
            guard requests[place].isNew(attempt.number) else { return }
            record = requests[place].record(.retrying, at: attempt.at, of: step.originalTransactionId)
            // A request that was withheld during the attempt is not retried.
            record.retryAt = requests[place].stage == .decided ? attempt.retryAt : nil
        }
        record.httpStatus = attempt.httpStatus
        record.errorCode = attempt.errorCode
        record.attempt = attempt.number
        step.tell(record)
        if requests[place].stage.isFinal { requests[place].reduce() }
    }
}

extension RefundRequest {
    /// Each attempt number gets one `retrying` record, even if two processes made that attempt.
    fileprivate mutating func isNew(_ number: Int64) -> Bool {
        let place = toldAttempts.firstIndex { $0 >= number } ?? toldAttempts.count
        if place < toldAttempts.count, toldAttempts[place] == number { return false }
        toldAttempts.insert(number, at: place)
        return true
    }
}
