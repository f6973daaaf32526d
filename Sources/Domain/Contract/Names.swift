// Names that are visible outside: environments, workers, prefix, groups, identities.

/// Apple's two environments. Their records never share a topic.
public enum Environment: String, Sendable, CaseIterable {
    case production, sandbox

    /// As in Apple's payloads and in our records.
    public var nameOfApple: String {
        switch self {
        case .production: "Production"
        case .sandbox: "Sandbox"
        }
    }
}

/// A consumer of `notifications` that keeps state.
public enum WorkerName: String, Sendable, CaseIterable {
    case entitlements, churn, consumption

    /// The topics that it reads: the events that move its clock, then its tables.
    public var inputs: [TopicID] {
        self == .consumption ? [.notifications, .usage, .consumptionAttempts] : [.notifications]
    }
}

/// The first part of every topic and group name: it separates installations in one cluster.
public struct TopicPrefix: Sendable, Hashable, CustomStringConvertible {
    /// Kafka's limit for the name of a topic; it becomes a directory name with a few characters more.
    static let limitTopicNameBytes = 249
    /// Reserved for the suffix of a shadow topic, `.replay-<name>`, with a name of up to 32 bytes.
    static let reservedForShadowBytes = ShadowName.separator.utf8.count + ShadowName.limitBytes

    /// Limit with which Kafka accepts the longest name of the catalogue with the suffix of a shadow.
    public static var limitBytes: Int {
        let longestName = TopicID.allCases.map(\.name.utf8.count).max() ?? 0
        let longestEnvironment = Environment.allCases.map(\.rawValue.utf8.count).max() ?? 0
        return limitTopicNameBytes - reservedForShadowBytes - longestName - longestEnvironment - 2
    }

    public let description: String

    /// nil if Kafka would not accept the names made with it.
    public init?(_ text: String) {
        guard !text.isEmpty, text.utf8.count <= Self.limitBytes, text.utf8.allSatisfy(isTopicNameByte) else {
            return nil
        }
        description = text
    }
}

func isTopicNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
        true
    default: false
    }
}

/// The names of one installation in one environment. Access control lists use them.
public struct Names: Sendable, Hashable {
    public let prefix: TopicPrefix
    public let environment: Environment

    public init(prefix: TopicPrefix, environment: Environment) {
        self.prefix = prefix
        self.environment = environment
    }

    public func topic(_ id: TopicID) -> String { "\(prefix).\(environment.rawValue).\(id.name)" }

    /// The consumer group of a worker.
    public func group(_ worker: WorkerName) -> String { "\(prefix).\(environment.rawValue).\(worker.rawValue)" }

    /// The group whose members divide the partitions to tick. Its members are dynamic: they have no instance ids.
    public var clockGroup: String { "\(prefix).\(environment.rawValue).clock" }

    /// The group name of the read API, which Kafka only looks up, and the name of its subdirectory of
    /// `state.directory`.
    public var apiGroup: String { "\(prefix).\(environment.rawValue).api" }
}
