// The domain of entitlements as it was before its rows became plain values, as an oracle: what it wrote must be written.

public import Contract
internal import JSON
internal import Notices

/// Everything that is written for one notification or timer of a subscription.
public struct FormerOutput: Equatable, Sendable {
    /// nil: the answer is the published one.
    public var value: [UInt8]?
    public var events: [[UInt8]] = []
    /// The account that no longer has the subscription.
    public var left: [UInt8]?
    /// The account that has it, and its record.
    public var bound: [UInt8]?
    public var account: [UInt8]?
    public var state: [UInt8] = []
    public var due: Int64?
    public var disagrees = false

    public init() {}
}

public enum FormerOutcome: Equatable, Sendable {
    case notJSON
    /// The notification is not about a subscription.
    case nothing(isUnusable: Bool)
    case damagedState
    case nothingNew(isUnusable: Bool)
    case written(FormerOutput, isUnusable: Bool)
}

public struct FormerTeller: ~Copyable {
    private let rules: EntitlementRules
    private let environment: Contract.Environment
    private var json = JSONDocument()

    public init(apps: [App], leeway: Int64, _ environment: Contract.Environment) {
        rules = EntitlementRules(apps: apps, leeway: leeway, environment: environment)
        self.environment = environment
    }

    public var fingerprint: String { rules.fingerprint }

    public mutating func hear(
        _ value: [UInt8], key: [UInt8], kept: [UInt8]?, clock: Int64, partition: Int32, offset: Int64
    ) -> FormerOutcome {
        guard (try? json.read(value.span)) != nil, json.kind(of: json.root) == .object else { return .notJSON }
        let reading = NotificationReading(json)
        let isUnusable = reading.hasUnusableTransaction
        guard !reading.facts.isEmpty else { return .nothing(isUnusable: isUnusable) }
        guard var state = load(kept) else { return .damagedState }
        guard state.facts.merge(reading.facts) else { return .nothingNew(isUnusable: isUnusable) }
        let timeline = Timeline(state.facts, rules)
        var output = settle(
            &state, timeline, key, clock, Cause(reading, partition: partition, offset: offset))
        output.disagrees = timeline.map { disagrees(reading, with: state.facts, $0) } ?? false
        return .written(output, isUnusable: isUnusable)
    }

    public func fire(key: [UInt8], kept: [UInt8]?, clock: Int64) -> FormerOutcome {
        guard var state = load(kept) else { return .damagedState }
        return .written(settle(&state, Timeline(state.facts, rules), key, clock, nil), isUnusable: false)
    }

    private func load(_ kept: [UInt8]?) -> SubscriptionState? {
        kept.map { SubscriptionState($0) } ?? SubscriptionState()
    }

    private func settle(
        _ state: inout SubscriptionState, _ timeline: Timeline?, _ key: [UInt8], _ clock: Int64, _ cause: Cause?
    ) -> FormerOutput {
        var output = FormerOutput()
        if let timeline {
            tell(timeline.standing(at: clock), &state, key, clock, cause, &output)
        }
        output.state = state.bytes
        output.due = timeline?.nextStep(after: clock)
        return output
    }

    private func tell(
        _ now: Standing, _ state: inout SubscriptionState, _ key: [UInt8], _ clock: Int64, _ cause: Cause?,
        _ output: inout FormerOutput
    ) {
        var record = EntitlementRecord(
            originalTransactionId: Text(key), environment: environment, entitlement: now.entitlement,
            sequence: state.sequence + 1, asOf: clock, cause: cause)
        let before = state.told
        let answer = record.answer
        if answer == before?.answer {
            record.sequence = state.sequence
        } else {
            state.sequence = record.sequence
            output.value = record.value
        }
        let events = now.events(since: before, told: cause?.signedDate ?? clock)
        for (number, event) in events.enumerated() {
            output.events.append(event.value(id: "id-\(number)", record: record, before: before))
        }
        state.told = now.told(after: before, events, answer: answer)
        let account = now.entitlement.appAccountToken
        if let old = before?.account, old != account { output.left = old.bytes }
        if let account, answer != before?.answer {
            output.bound = account.bytes
            output.account = record.accountValue
        }
    }

    private func disagrees(_ reading: NotificationReading, with facts: Facts, _ timeline: Timeline) -> Bool {
        guard let status = reading.status, let signed = reading.signedDate,
            let info = reading.facts.renewalInfos.last, facts.renewalInfos.last == info
        else { return false }
        return timeline.agrees(withStatus: status, at: signed) == false
    }
}
