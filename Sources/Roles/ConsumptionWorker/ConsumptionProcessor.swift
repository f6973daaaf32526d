// The worker `consumption`: it reads refund requests and usage and writes decisions.

public import Consumption
public import Contract
internal import JSON
public import Log
internal import Notices
public import NotificationWorker
internal import Records
public import Runtime
internal import Telemetry

/// Decides the answer to each refund request, and publishes its outcome.
///
/// `notifications` moves the clock. Its tables are `usage`, which the app's backend writes, and `consumption-attempts`,
/// which the sender writes. So everything from outside of the log enters as records.
public final class ConsumptionProcessor: Processor {
    public let definition: WorkerDefinition
    private let rules: ConsumptionRules
    private let metrics: ConsumptionMetrics
    /// Its buffers are reused for every record.
    private var json = JSONDocument()
    /// The row whose identity was requested last.
    private var row = JSONValue.null

    private enum Input {
        static let notifications = 0
        static let usage = 1
    }

    private static let output = 0
    private static let somethingIsDue: UInt8 = 0

    /// - Parameters:
    ///   - app: `perennial/<version>`.
    ///   - shadow: the replay that the worker runs for, if any.
    public init(
        _ names: Names, rules: ConsumptionRules, partitions: Int32, app: String, metrics: ConsumptionMetrics,
        shadow: Shadow? = nil
    ) {
        self.rules = rules
        self.metrics = metrics
        var definition = WorkerDefinition(
            .consumption, names, outputs: [(.consumption, .consumption)], partitions: partitions, app: app)
        let usage = InputTopic.Kind(RecordType.usage.rawValue, version: RecordType.usage.version)
        var usageTopic = InputTopic(names.topic(.usage), kinds: [usage], withoutHeader: usage)
        usageTopic.isFromOutside = true
        let attempt = RecordType.consumptionAttempt
        definition.tables = [
            usageTopic,
            InputTopic(
                names.topic(.consumptionAttempts), kinds: [.init(attempt.rawValue, version: attempt.version)]),
        ]
        definition.stateFormat = RefundState.format
        definition.rules = rules.fingerprint
        definition.failureReasons =
            ["attempt", "json", "key", "no_attempt", "no_notification", "state", "usage"]
            + RefundFault.allCases.map(\.rawValue)
        self.definition = definition.shadow(shadow)
    }

    public func process(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {
        switch record.topic {
        case Input.notifications: try takeNotification(record, turn)
        case Input.usage: try takeUsage(record, turn)
        default: try takeAttempt(record, turn)
        }
    }

    // MARK: Notifications

    private func takeNotification(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {
        guard let key = record.key, let value = record.value else {
            throw ProcessFailure("no_notification", "a notification must have a key and a value")
        }
        try read(value)
        let notice = RefundNotice(json)
        guard !notice.isSilent else { return }
        try change(key, turn, timestamp: record.timestamp) { state, step throws(ProcessFailure) in
            do throws(RefundFault) {
                try state.take(notice, &step)
            } catch {
                throw ProcessFailure(error.rawValue, "the request cannot be answered")
            }
        }
    }

    private func read(_ value: Span<UInt8>) throws(ProcessFailure) {
        do throws(JSONFault) { try json.read(value) } catch { throw ProcessFailure("json", "\(error)") }
        guard json.kind(of: json.root) == .object else { throw ProcessFailure("json", "the value must be an object") }
    }

    // MARK: Usage

    public func identity(ofRow record: borrowing RecordView) throws(ProcessFailure) -> [UInt8] {
        guard let value = record.copyOfValue() else { throw ProcessFailure("usage", "a usage record needs a value") }
        let read: JSONValue
        do throws(JSONFault) { read = try JSONValue.read(value) } catch { throw ProcessFailure("json", "\(error)") }
        let usage: UsageRecord
        do throws(UsageRecord.Fault) {
            usage = try UsageRecord(read)
        } catch {
            throw ProcessFailure("usage", error.reason)
        }
        let identity = Array(usage.originalTransactionId.utf8)
        guard identity.count <= Text.limitBytes else {
            throw ProcessFailure("usage", "originalTransactionId is longer than \(Text.limitBytes) bytes")
        }
        row = read
        return identity
    }

    private func takeUsage(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {
        let identity = try identity(ofRow: record)
        let usage = UsageRow(row, timestamp: record.timestamp)
        metrics.usageRows.add()
        try change(identity.span, turn, timestamp: record.timestamp) { state, step throws(ProcessFailure) in
            state.take(usage, &step)
        }
    }

    // MARK: Attempts and time

    private func takeAttempt(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {
        guard let key = record.key, let value = record.value else {
            throw ProcessFailure("no_attempt", "an attempt row must have a key and a value")
        }
        try read(value)
        guard let attempt = Attempt(json) else {
            throw ProcessFailure("attempt", "an attempt row must have v, id, attempt and at")
        }
        try change(key, turn, timestamp: record.timestamp) { state, step throws(ProcessFailure) in
            state.take(attempt, &step)
        }
    }

    public func fire(_ timer: TimerName, _ turn: Turn) throws(ProcessFailure) {
        try change(timer.key.span, turn, timestamp: turn.clock) { state, step throws(ProcessFailure) in
            state.wake(&step)
        }
    }

    // MARK: State

    private func change(
        _ key: Span<UInt8>, _ turn: Turn, timestamp: Int64,
        _ body: (inout RefundState, inout RefundStep) throws(ProcessFailure) -> Void
    ) throws(ProcessFailure) {
        let place = try turn.state(key)
        let before = place.value
        var state = RefundState()
        if let before {
            guard let kept = RefundState(before, format: place.format) else {
                throw ProcessFailure("state", "the \(before.count) bytes stored for this subscription are damaged")
            }
            state = kept
        }
        guard String(validating: place.key, as: UTF8.self) != nil else {
            throw ProcessFailure("key", "the key of a subscription must be its originalTransactionId as UTF-8")
        }
        var step = RefundStep(
            originalTransactionId: Text(place.key), clock: turn.clock, timestamp: timestamp, rules: rules)
        try body(&state, &step)
        for record in step.records {
            turn.emit(Self.output, key: place.key.span, value: record.value.span)
            metrics.count(record)
        }
        metrics.lateAcceptances.add(UInt64(step.lateAcceptances))
        metrics.strayAttempts.add(UInt64(step.strayAttempts))
        metrics.tooLate.add(UInt64(step.tooLate))
        if before == nil, state.isEmpty { return }
        let after = state.bytes
        if after != before { place.put(after.span) }
        place.setTimer(Self.somethingIsDue, due: state.nextDue(rules))
    }
}
