// The worker `entitlements`: it reads notifications and writes answers.

public import Contract
public import Entitlements
import JSON
public import Log
public import NotificationWorker
internal import Records
public import Runtime
internal import SubscriptionHistory
import Telemetry

/// Stores the history of each subscription, and publishes its answer whenever that changes: by a notification, or by
/// time.
///
/// Each subscription has one timer, at the next time when its answer changes without a notification.
public final class EntitlementsProcessor: Processor {
    public let definition: WorkerDefinition
    private let metrics: EntitlementsMetrics
    /// The buffers of these are used again for every record.
    private var json = JSONDocument()
    private var teller: SubscriptionTeller
    private var eventID: [UInt8] = []
    private var accountKey: [UInt8] = []

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
        teller = SubscriptionTeller(rules, names.environment)
        self.metrics = metrics
        var definition = WorkerDefinition(
            .entitlements, names,
            outputs: [
                (.entitlements, .entitlement), (.entitlementEvents, .entitlementEvent), (.accounts, .account),
            ],
            partitions: partitions, app: app)
        definition.stateFormat = SubscriptionTeller.format
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
        teller.read(json)
        if teller.news.hasUnusableTransaction { metrics.unusable.add() }
        // Many notifications are not about a subscription: tests, summaries, tokens of external purchases.
        if teller.news.isEmpty { return }

        let place = try turn.state(key)
        let origin = SubscriptionTeller.Origin(partition: record.partition, offset: record.offset)
        try withKept(place) { () throws(ProcessFailure) in
            guard teller.mergeNews() else { return }
            try settle(place, turn, origin)
        }
    }

    public func fire(_ timer: TimerName, _ turn: Turn) throws(ProcessFailure) {
        let place = try turn.state(timer.key.span)
        try withKept(place) { () throws(ProcessFailure) in try settle(place, turn, nil) }
    }

    /// The kept bytes stay where they are while `body` uses them.
    private func withKept(
        _ place: KeyState, _ body: () throws(ProcessFailure) -> Void
    ) throws(ProcessFailure) {
        guard let kept = place.value else {
            _ = teller.load(nil, format: place.format)
            return try body()
        }
        try kept.withUnsafeBufferPointer { (bytes) throws(ProcessFailure) in
            guard teller.load(bytes, format: place.format) else {
                throw ProcessFailure("state", "the \(bytes.count) bytes stored for this subscription are damaged")
            }
            try body()
        }
    }

    /// Publishes what has changed, and stores the history.
    private func settle(
        _ place: KeyState, _ turn: Turn, _ origin: SubscriptionTeller.Origin?
    ) throws(ProcessFailure) {
        let key = place.key
        let hasAnswer = key.withUnsafeBufferPointer { teller.tell($0, at: turn.clock, origin) }
        if hasAnswer {
            if origin != nil, teller.disagreesWithStatus { metrics.disagreements.add() }
            guard isUTF8(key) else {
                throw ProcessFailure("key", "the key of a subscription must be its originalTransactionId as UTF-8")
            }
            publish(key, turn)
        }
        teller.stateBytes.withSpan { place.put($0) }
        place.setTimer(Self.answerChanges, due: teller.nextStep)
    }

    /// A value if the answer differs from the published one, and the events since then. A purchase that gives the same
    /// answer as before is an event too.
    private func publish(_ key: [UInt8], _ turn: Turn) {
        if teller.hasNewValue {
            let value = teller.value
            turn.emit(Output.entitlements, key: key.span, value: value.span)
        }
        for number in teller.events.indices {
            eventID.removeAll(keepingCapacity: true)
            turn.appendNextID(to: &eventID)
            let value = eventID.withUnsafeBufferPointer { id in
                key.withUnsafeBufferPointer { teller.eventValue(number, id: id, $0) }
            }
            turn.emit(Output.events, key: key.span, value: value.span)
        }
        if let account = teller.accountLeft { bind(account, key, isLeft: true, turn) }
        if let account = teller.accountBound { bind(account, key, isLeft: false, turn) }
    }

    /// - Parameter isLeft: the subscription no longer belongs to the account.
    private func bind(_ account: TextPlace, _ originalTransactionId: [UInt8], isLeft: Bool, _ turn: Turn) {
        var key: [UInt8] = []
        swap(&key, &accountKey)
        key.removeAll(keepingCapacity: true)
        key.append(contentsOf: account.bytes)
        let partition = Partitioner.partition(of: key, count: definition.partitions)
        key.append(UInt8(ascii: "|"))
        key.append(contentsOf: originalTransactionId)
        if isLeft {
            turn.emit(Output.accounts, key: key.span, value: nil, partition: partition)
        } else {
            let value = teller.accountValue
            turn.emit(Output.accounts, key: key.span, value: value.span, partition: partition)
        }
        swap(&key, &accountKey)
    }

    private func isUTF8(_ bytes: [UInt8]) -> Bool {
        do {
            _ = try UTF8Span(validating: bytes.span)
            return true
        } catch {
            return false
        }
    }
}

extension UnsafeBufferPointer<UInt8> {
    fileprivate func withSpan(_ body: (Span<UInt8>) -> Void) { body(Span(_unsafeElements: self)) }
}
