// The worker `entitlements`: notifications in, answers out.

public import Contract
public import Entitlements
import JSON
public import Log
public import Runtime
import Telemetry

/// Keeps the facts of each subscription, and tells the answer whenever it becomes another: by a notification, or by time.
///
/// One timer for each subscription, at the next instant at which its answer changes by itself.
public final class EntitlementsProcessor: Processor {
    public let definition: WorkerDefinition
    private let environment: Contract.Environment
    private let rules: EntitlementRules
    private let metrics: EntitlementsMetrics
    /// Its buffers are used again from record to record; nothing else is.
    private var json = JSONDocument()

    private enum Output {
        static let entitlements = 0
        static let events = 1
        static let accounts = 2
    }
    private static let answerChanges: UInt8 = 0

    /// - Parameter app: `perennial/<version>`.
    public init(
        _ names: Names, rules: EntitlementRules, partitions: Int32, app: String, metrics: EntitlementsMetrics
    ) {
        environment = names.environment
        self.rules = rules
        self.metrics = metrics
        func output(_ id: TopicID, _ type: RecordType) -> OutputTopic {
            OutputTopic(names.topic(id), type: type.rawValue, schema: type.schema)
        }
        let notification = RecordType.notification
        var definition = WorkerDefinition(
            name: Worker.entitlements.rawValue, group: names.group(.entitlements),
            events: InputTopic(
                names.topic(.notifications), kinds: [.init(notification.rawValue, version: notification.version)]),
            outputs: [
                output(.entitlements, .entitlement), output(.entitlementEvents, .entitlementEvent),
                output(.accounts, .account),
            ],
            changelog: names.topic(.changelog(.entitlements)), deadLetters: names.topic(.deadLetters(.entitlements)),
            partitions: partitions, app: app)
        definition.stateFormat = EntitlementsState.format
        definition.rules = rules.fingerprint
        self.definition = definition
    }

    public func process(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {
        guard let key = record.key, let value = record.value else {
            throw ProcessFailure("no_notification", "a notification has a key and a value")
        }
        do throws(JSONFault) { try json.read(value) } catch { throw ProcessFailure("json", "\(error)") }
        guard json.kind(of: json.root) == .object else {
            throw ProcessFailure("json", "the value of a notification is an object")
        }
        let reading = NotificationReading(json)
        if reading.hasUnusableTransaction { metrics.unusable.add() }
        // Much that Apple tells is of no subscription: tests, summaries, tokens of purchases elsewhere.
        guard !reading.facts.isEmpty else { return }

        let place = try turn.state(key)
        let before = try load(place)
        var state = before
        guard state.facts.merge(reading.facts) else { return }
        let timeline = Timeline(state.facts, rules)
        if let timeline { compare(reading, with: state.facts, timeline) }
        try settle(
            place, before, &state, timeline, turn,
            cause: Cause(reading, partition: record.partition, offset: record.offset))
    }

    public func fire(_ timer: TimerName, _ turn: Turn) throws(ProcessFailure) {
        let place = try turn.state(timer.key.span)
        let before = try load(place)
        var state = before
        try settle(place, before, &state, Timeline(state.facts, rules), turn, cause: nil)
    }

    private func load(_ place: KeyState) throws(ProcessFailure) -> EntitlementsState {
        guard let bytes = place.value else { return EntitlementsState() }
        guard let state = EntitlementsState(bytes) else {
            throw ProcessFailure("state", "the \(bytes.count) bytes kept of this subscription are damaged")
        }
        return state
    }

    /// Tells the answer if it is another than the one that was told, and keeps what is known.
    private func settle(
        _ place: KeyState, _ before: EntitlementsState, _ state: inout EntitlementsState, _ timeline: Timeline?,
        _ turn: Turn, cause: Cause?
    ) throws(ProcessFailure) {
        if let timeline {
            let now = timeline.standing(at: turn.clock)
            let told =
                before.sequence == 0 ? nil : Timeline(before.facts, rules)?.standing(at: before.asOf)
            if now.entitlement != told?.entitlement {
                guard let id = String(validating: place.key, as: UTF8.self) else {
                    throw ProcessFailure("key", "the key of a subscription is its originalTransactionId as UTF-8")
                }
                state.sequence += 1
                state.asOf = turn.clock
                tell(
                    EntitlementRecord(
                        originalTransactionId: Text(id), environment: environment, entitlement: now.entitlement,
                        sequence: state.sequence, asOf: turn.clock, cause: cause),
                    now, since: told, turn)
            }
        }
        place.put(state.bytes.span)
        place.setTimer(Self.answerChanges, due: timeline?.nextChange(after: turn.clock))
    }

    private func tell(_ record: EntitlementRecord, _ now: Standing, since told: Standing?, _ turn: Turn) {
        let key = record.originalTransactionId.bytes
        let accountValue = record.accountValue
        turn.emit(Output.entitlements, key: key.span, value: record.value(accountValue: accountValue).span)
        for event in now.events(since: told, told: record.cause?.signedDate ?? record.asOf) {
            let value = event.value(id: turn.nextID, record: record, before: told?.entitlement)
            turn.emit(Output.events, key: key.span, value: value.span)
        }
        let account = now.entitlement.appAccountToken
        if let old = told?.entitlement.appAccountToken, old != account { bind(old, key, nil, turn) }
        if let account { bind(account, key, accountValue, turn) }
    }

    /// nil: the account has the subscription no longer.
    private func bind(_ token: Text, _ originalTransactionId: [UInt8], _ value: [UInt8]?, _ turn: Turn) {
        let bar = UInt8(ascii: "|")
        let key = token.bytes + [bar] + originalTransactionId
        // As the catalogue says: by what stands before the first bar.
        let partition = Partitioner.partition(
            of: Array(key.prefix { $0 != bar }), count: definition.partitions)
        if let value {
            turn.emit(Output.accounts, key: key.span, value: value.span, partition: partition)
        } else {
            turn.emit(Output.accounts, key: key.span, value: nil, partition: partition)
        }
    }

    /// Apple's own word for the state, where it is its newest: it has to be ours.
    private func compare(_ reading: NotificationReading, with facts: Facts, _ timeline: Timeline) {
        guard let status = reading.status, let signed = reading.signedDate,
            let info = reading.facts.renewalInfos.last, facts.renewalInfos.last == info
        else { return }
        if timeline.agrees(withStatus: status, at: signed) == false { metrics.disagreements.add() }
    }
}
