// The worker `entitlements`: it reads notifications and writes answers.

public import Contract
public import Entitlements
import JSON
public import Log
internal import Notices
public import NotificationWorker
internal import Records
public import Runtime
import Telemetry

/// Stores the facts of each subscription, and publishes its answer whenever that changes: by a notification, or by
/// time.
///
/// Each subscription has one timer, at the next time when its answer changes without a notification.
public final class EntitlementsProcessor: Processor {
    public let definition: WorkerDefinition
    private let environment: Contract.Environment
    private let rules: EntitlementRules
    private let metrics: EntitlementsMetrics
    /// Its buffers are reused for every record; nothing else is.
    private var json = JSONDocument()

    private enum Output {
        static let entitlements = 0
        static let events = 1
        static let accounts = 2
    }
    private static let answerChanges: UInt8 = 0

    /// - Parameters:
    ///   - app: `perennial/<version>`.
    ///   - shadow: the replay that the worker runs for, if any.
    public init(
        _ names: Names, rules: EntitlementRules, partitions: Int32, app: String, metrics: EntitlementsMetrics,
        shadow: Shadow? = nil
    ) {
        environment = names.environment
        self.rules = rules
        self.metrics = metrics
        var definition = WorkerDefinition(
            .entitlements, names,
            outputs: [
                (.entitlements, .entitlement), (.entitlementEvents, .entitlementEvent), (.accounts, .account),
            ],
            partitions: partitions, app: app)
        definition.stateFormat = SubscriptionState.format
        definition.rules = rules.fingerprint
        definition.failureReasons = ["json", "key", "no_notification", "state"]
        self.definition = definition.shadow(shadow)
    }

    public func process(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {
        guard let key = record.key, let value = record.value else {
            throw ProcessFailure("no_notification", "a notification must have a key and a value")
        }
        do throws(JSONFault) { try json.read(value) } catch { throw ProcessFailure("json", "\(error)") }
        guard json.kind(of: json.root) == .object else {
            throw ProcessFailure("json", "the value of a notification must be an object")
        }
        let reading = NotificationReading(json)
        if reading.hasUnusableTransaction { metrics.unusable.add() }
        // Many notifications are not about a subscription: tests, summaries, tokens of external purchases.
        guard !reading.facts.isEmpty else { return }

        let place = try turn.state(key)
        var state = try load(place)
        guard state.facts.merge(reading.facts) else { return }
        let timeline = Timeline(state.facts, rules)
        if let timeline { compare(reading, with: state.facts, timeline) }
        try settle(
            place, &state, timeline, turn, cause: Cause(reading, partition: record.partition, offset: record.offset))
    }

    public func fire(_ timer: TimerName, _ turn: Turn) throws(ProcessFailure) {
        let place = try turn.state(timer.key.span)
        var state = try load(place)
        try settle(place, &state, Timeline(state.facts, rules), turn, cause: nil)
    }

    private func load(_ place: KeyState) throws(ProcessFailure) -> SubscriptionState {
        guard let bytes = place.value else { return SubscriptionState() }
        guard let state = SubscriptionState(bytes, format: place.format) else {
            throw ProcessFailure("state", "the \(bytes.count) bytes stored for this subscription are damaged")
        }
        return state
    }

    /// Publishes what has changed, and stores the facts.
    private func settle(
        _ place: KeyState, _ state: inout SubscriptionState, _ timeline: Timeline?, _ turn: Turn, cause: Cause?
    ) throws(ProcessFailure) {
        if let timeline { try tell(timeline.standing(at: turn.clock), &state, place.key, turn, cause: cause) }
        place.put(state.bytes.span)
        place.setTimer(Self.answerChanges, due: timeline?.nextStep(after: turn.clock))
    }

    /// A value if the answer differs from the published one, and the events since then. A purchase that gives the same
    /// answer as before is an event too.
    private func tell(
        _ now: Standing, _ state: inout SubscriptionState, _ key: [UInt8], _ turn: Turn, cause: Cause?
    ) throws(ProcessFailure) {
        guard let id = String(validating: key, as: UTF8.self) else {
            throw ProcessFailure("key", "the key of a subscription must be its originalTransactionId as UTF-8")
        }
        var record = EntitlementRecord(
            originalTransactionId: Text(id), environment: environment, entitlement: now.entitlement,
            sequence: state.sequence + 1, asOf: turn.clock, cause: cause)
        let before = state.told
        let answer = record.answer
        if answer == before?.answer {
            record.sequence = state.sequence
        } else {
            state.sequence = record.sequence
            turn.emit(Output.entitlements, key: key.span, value: record.value.span)
        }
        let events = now.events(since: before, told: cause?.signedDate ?? turn.clock)
        for event in events {
            let value = event.value(id: turn.nextID, record: record, before: before)
            turn.emit(Output.events, key: key.span, value: value.span)
        }
        state.told = now.told(after: before, events, answer: answer)
        let account = now.entitlement.appAccountToken
        if let old = before?.account, old != account { bind(old, key, nil, turn) }
        if let account, answer != before?.answer { bind(account, key, record.accountValue, turn) }
    }

    /// nil: the subscription no longer belongs to the account.
    private func bind(_ token: Text, _ originalTransactionId: [UInt8], _ value: [UInt8]?, _ turn: Turn) {
        let key = token.bytes + [UInt8(ascii: "|")] + originalTransactionId
        let partition = Partitioner.partition(of: token.bytes, count: definition.partitions)
        if let value {
            turn.emit(Output.accounts, key: key.span, value: value.span, partition: partition)
        } else {
            turn.emit(Output.accounts, key: key.span, value: nil, partition: partition)
        }
    }

    /// Compares Apple's own status with ours; they should be equal if Apple's is the newest.
    private func compare(_ reading: NotificationReading, with facts: Facts, _ timeline: Timeline) {
        guard let status = reading.status, let signed = reading.signedDate,
            let info = reading.facts.renewalInfos.last, facts.renewalInfos.last == info
        else { return }
        if timeline.agrees(withStatus: status, at: signed) == false { metrics.disagreements.add() }
    }
}
