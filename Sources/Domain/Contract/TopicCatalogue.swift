// All topics: their contents, keys and retention.

public enum TopicID: Sendable, Hashable, CaseIterable {
    case notifications, signed, rejected
    case entitlements, entitlementEvents, accounts
    case churnCells, churnEvents
    case usage, consumption, consumptionAttempts
    case changelog(WorkerName), deadLetters(WorkerName)

    public static var allCases: [TopicID] {
        [
            .notifications, .signed, .rejected, .entitlements, .entitlementEvents, .accounts, .churnCells, .churnEvents,
            .usage, .consumption, .consumptionAttempts,
        ] + WorkerName.allCases.flatMap { [.changelog($0), .deadLetters($0)] }
    }

    /// The part after prefix and environment.
    public var name: String {
        switch self {
        case .notifications: "notifications"
        case .signed: "signed"
        case .rejected: "rejected"
        case .entitlements: "entitlements"
        case .entitlementEvents: "entitlement-events"
        case .accounts: "accounts"
        case .churnCells: "churn-cells"
        case .churnEvents: "churn-events"
        case .usage: "usage"
        case .consumption: "consumption"
        case .consumptionAttempts: "consumption-attempts"
        case .changelog(let worker): "\(worker.rawValue).changelog"
        case .deadLetters(let worker): "\(worker.rawValue).dead-letters"
        }
    }
}

/// How a record's partition is determined. We always compute it: librdkafka's default differs from Java's.
public enum PartitionRule: Sendable, Hashable {
    /// murmur2 of the whole key.
    case key
    /// murmur2 of the key up to the first `|`: all records of one account are in one partition.
    case keyBeforeBar
    /// The partition of the record that caused this one.
    case input
}

public enum Retention: Sendable, Hashable {
    /// Records are deleted after this many days.
    case days(Int)
    /// Records stay until a person deletes them.
    case forEver
    /// The last record of each key stays.
    case lastOfKey
}

public enum TimestampType: String, Sendable {
    /// The time that the writer sets: workers' clocks and replays depend on it.
    case createTime = "CreateTime"
    /// The time of arrival: retention counts from it, whatever time the record contains.
    case logAppendTime = "LogAppendTime"
}

public struct TopicDefinition: Sendable {
    public let id: TopicID
    public let content: String
    /// In words, for people who write their own readers.
    public let key: String
    public let partitionRule: PartitionRule
    public let retention: Retention
    public let timestamps: TimestampType
    /// The broker refuses records further in the future than this. nil: the broker's default applies.
    public let limitTimestampAheadMilliseconds: Int?
    /// nil: records stay as the writer compressed them.
    public let compression: String?

    init(
        _ id: TopicID, _ content: String, key: String = TopicDefinition.subscriptionKey,
        partition: PartitionRule = .key,
        _ retention: Retention, timestamps: TimestampType = .createTime, limitAhead: Int? = nil,
        compression: String? = nil
    ) {
        self.id = id
        self.content = content
        self.key = key
        self.partitionRule = partition
        self.retention = retention
        self.timestamps = timestamps
        self.limitTimestampAheadMilliseconds = limitAhead
        self.compression = compression
    }

    static let subscriptionKey = "originalTransactionId"
}

public enum TopicCatalogue {
    public static let definitions: [TopicDefinition] =
        inputs + outputs + WorkerName.allCases.flatMap { [changelog(of: $0), deadLetters(of: $0)] }

    public static func definition(_ id: TopicID) -> TopicDefinition {
        // ContractTests checks every id.
        definitions.first { $0.id == id }!
    }

    /// A year and the time needed to close its books.
    private static let days = 400
    /// A quarter of a year: long enough to notice and redrive what was refused.
    private static let refusedDays = 90

    private static let inputs: [TopicDefinition] = [
        TopicDefinition(
            .notifications, "verified notifications and ticks",
            key: "originalTransactionId, else appTransactionId, externalPurchaseId, notificationUUID; ticks have none",
            .forEver,
            // A host whose clock runs ahead would move a partition's clock, which never goes back.
            limitAhead: 60_000),
        TopicDefinition(
            .signed, "signed payloads as received", key: "as in notifications", .days(days), compression: "zstd"),
        TopicDefinition(
            .rejected, "bodies that were refused, the reason in a header", key: "hex SHA-256 of the body",
            .days(refusedDays), timestamps: .logAppendTime),
        TopicDefinition(
            .usage, "consent, delivery and consumption of purchases, written by the app's own backend", .days(days)),
    ]

    private static let outputs: [TopicDefinition] = [
        TopicDefinition(.entitlements, "current state of each subscription", .lastOfKey),
        TopicDefinition(.entitlementEvents, "one record per change of state", .days(days)),
        TopicDefinition(
            .accounts, "who owns what", key: "<appAccountToken>|<originalTransactionId>", partition: .keyBeforeBar,
            .lastOfKey),
        TopicDefinition(.churnCells, "metric cells", key: "the cell", partition: .input, .lastOfKey),
        TopicDefinition(.churnEvents, "one record per fact that churn counts", .days(days)),
        TopicDefinition(.consumption, "requests, decisions, attempts, outcomes", .days(days)),
        TopicDefinition(
            .consumptionAttempts, "what Apple answered to each attempt to answer a refund request; internal",
            .days(days)),
    ]

    private static func changelog(of worker: WorkerName) -> TopicDefinition {
        TopicDefinition(
            .changelog(worker), "state of the worker \(worker.rawValue); internal", key: "internal", partition: .input,
            .lastOfKey)
    }

    private static func deadLetters(of worker: WorkerName) -> TopicDefinition {
        TopicDefinition(
            .deadLetters(worker), "records that the worker \(worker.rawValue) could not process, bytes unchanged",
            key: "as it was", partition: .input, .days(refusedDays), timestamps: .logAppendTime)
    }
}
