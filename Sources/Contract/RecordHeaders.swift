// Headers of records, and the values they may have.

public enum HeaderName {
    /// Stable over retries and replays.
    public static let id = "id"
    /// A `RecordType`.
    public static let type = "type"
    /// `<type>/<version>`.
    public static let schema = "schema"
    /// `topic:partition:offset` of the record it was made from.
    public static let source = "source"
    /// `perennial/<version>`.
    public static let app = "app"
    /// Hash of the settings that decide the content.
    public static let rules = "rules"
    /// Why a record is in `rejected` or among the dead letters.
    public static let reason = "reason"
    /// On a dead letter: more about the reason, where there is more to say.
    public static let detail = "detail"
    /// On the dead letter of a timer that could not fire: its kind.
    public static let timer = "timer"
    /// On the dead letter of a key that could not be settled: empty.
    public static let settle = "settle"
    /// On the dead letter of a gap that was accepted: `<first offset that is gone>-<offset read on from>`.
    public static let gap = "gap"
    /// On a redriven record: how often it was, from 1.
    public static let attempt = "attempt"
    /// When a dead letter was first written, before its broker's time replaced that: milliseconds as text.
    public static let firstTimestamp = "first-timestamp"
    /// On a record of `usage` that was moved to its right partition.
    public static let rerouted = "rerouted"
}

public enum RecordType: String, Sendable, CaseIterable {
    case notification, tick, entitlement
    case entitlementEvent = "entitlement-event"
    case account
    case churnCell = "churn-cell"
    case churnEvent = "churn-event"
    case usage, consumption
    case consumptionAttempt = "consumption-attempt"

    /// Readers read every version up to theirs; a greater one pauses them.
    public var version: Int { 1 }
    public var schema: String { "\(rawValue)/\(version)" }
}
