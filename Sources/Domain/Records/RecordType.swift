// The types of records, and the versions of their schemas.

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
