// Headers of records, and their possible values.

public enum HeaderName {
    /// The same after retries and replays.
    public static let id = "id"
    /// A `RecordType`.
    public static let type = "type"
    /// `<type>/<version>`.
    public static let schema = "schema"
    /// `topic:partition:offset` of the record that caused this one.
    public static let source = "source"
    /// `perennial/<version>`.
    public static let app = "app"
    /// Hash of the settings that determine the contents.
    public static let rules = "rules"
    /// Why a record is in `rejected` or in the dead letters.
    public static let reason = "reason"
    /// In a dead letter: more about the reason, if there is more.
    public static let detail = "detail"
    /// In the dead letter of a timer that could not fire: its kind.
    public static let timer = "timer"
    /// In the dead letter of a key that could not be settled: empty.
    public static let settle = "settle"
    /// In the dead letter of an accepted gap: `<first missing offset>-<offset at which reading continues>`.
    public static let gap = "gap"
    /// In a redriven record: how often it was redriven, from 1.
    public static let attempt = "attempt"
    /// When a dead letter was first written, before the broker's time replaced that: milliseconds as text.
    public static let firstTimestamp = "first-timestamp"
}

public enum RecordType: String, Sendable, CaseIterable {
    case notification, tick, entitlement
    case entitlementEvent = "entitlement-event"
    case account
    case churnCell = "churn-cell"
    case churnEvent = "churn-event"
    case usage, consumption
    case consumptionAttempt = "consumption-attempt"

    /// Readers read every version up to their own; a greater one pauses them.
    public var version: Int { 1 }
    public var schema: String { "\(rawValue)/\(version)" }
}
