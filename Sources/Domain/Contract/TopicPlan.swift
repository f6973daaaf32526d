// The required settings of topics in Kafka: those that the guarantees depend on, with Kafka's names.

public struct TopicSetting: Sendable, Hashable {
    public let name: String
    public let value: String

    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// A topic as it should be.
public struct PlannedTopic: Sendable, Hashable {
    public let id: TopicID
    public let name: String
    public let partitions: Int
    public let replicationFactor: Int
    public let settings: [TopicSetting]
}

/// What an installation decides about its topics.
public struct TopicPlan: Sendable {
    public let prefix: TopicPrefix
    /// For every topic: a worker writes to the same partition number that it reads, and keyed topics are read together.
    public let partitions: Int
    public let replicationFactor: Int
    public let minimumInSyncReplicas: Int

    public init(prefix: TopicPrefix, partitions: Int, replicationFactor: Int, minimumInSyncReplicas: Int) {
        self.prefix = prefix
        self.partitions = partitions
        self.replicationFactor = replicationFactor
        self.minimumInSyncReplicas = minimumInSyncReplicas
    }

    /// In the order of the catalogue.
    public func topics(in environment: Environment) -> [PlannedTopic] {
        let names = Names(prefix: prefix, environment: environment)
        return TopicCatalogue.definitions.map { definition in
            PlannedTopic(
                id: definition.id, name: names.topic(definition.id), partitions: partitions,
                replicationFactor: replicationFactor, settings: settings(of: definition))
        }
    }

    /// A setting on which a guarantee depends is set even if it is Kafka's default: a cluster may have other defaults.
    public func settings(of definition: TopicDefinition) -> [TopicSetting] {
        var settings = cleanup(definition) + timestamps(definition)
        if let compression = definition.compression { settings.append(TopicSetting("compression.type", compression)) }
        settings += [
            TopicSetting("min.insync.replicas", String(minimumInSyncReplicas)),
            // A replica that missed records must not become leader: records that were answered with 200 would be lost,
            // and readers with librdkafka before 2.1 do not notice that a log became shorter.
            TopicSetting("unclean.leader.election.enable", "false"),
            TopicSetting("max.message.bytes", String(Self.limitBatchBytes)),
        ]
        return settings
    }

    /// Kafka's own default. It is set because a smaller one would refuse whole batches: librdkafka fills them up to
    /// 1,000,000 bytes. A body of twice the default limit (`ingest.max.body.bytes`, at most 524,288) also fits.
    public static let limitBatchBytes = 1_048_588

    private func cleanup(_ definition: TopicDefinition) -> [TopicSetting] {
        switch definition.retention {
        case .days(let days): deletion(afterMilliseconds: String(days * 86_400_000))
        case .forEver: deletion(afterMilliseconds: "-1")
        case .lastOfKey: compaction(isChangelog: definition.isChangelog)
        }
    }

    private func deletion(afterMilliseconds milliseconds: String) -> [TopicSetting] {
        [
            TopicSetting("cleanup.policy", "delete"),
            TopicSetting("retention.ms", milliseconds),
            // Only time decides; a limit of size would delete early under load.
            TopicSetting("retention.bytes", "-1"),
        ]
    }

    private func compaction(isChangelog: Bool) -> [TopicSetting] {
        let week = String(7 * 86_400_000)
        let forAll = [
            TopicSetting("cleanup.policy", "compact"),
            // A reader that was away for longer than this misses deletions and must read everything again. A week is
            // longer than a long weekend, and Kafka also deletes the offsets of an inactive group after a week.
            TopicSetting("delete.retention.ms", week),
        ]
        guard isChangelog else { return forAll }
        return forAll + [
            // A restore reads the newest records; compacting them at once would only move bytes.
            TopicSetting("min.compaction.lag.ms", "3600000"),
            // The open segment is never compacted: with Kafka's 1 GiB, restoring a small state would read a long
            // history.
            TopicSetting("segment.bytes", String(64 << 20)),
        ]
    }

    private func timestamps(_ definition: TopicDefinition) -> [TopicSetting] {
        var settings = [TopicSetting("message.timestamp.type", definition.timestamps.rawValue)]
        guard definition.timestamps == .createTime else { return settings }
        // Records of a backfill or a replay are as old as the events that they describe.
        settings.append(TopicSetting("message.timestamp.before.max.ms", String(Int64.max)))
        if let limit = definition.limitTimestampAheadMilliseconds {
            settings.append(TopicSetting("message.timestamp.after.max.ms", String(limit)))
        }
        return settings
    }
}

extension TopicDefinition {
    var isChangelog: Bool { if case .changelog = id { true } else { false } }
}
