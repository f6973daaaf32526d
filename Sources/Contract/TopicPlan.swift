// What a topic has to look like in Kafka: the settings that the promises rest on, spelled as Kafka spells them.

public struct TopicSetting: Sendable, Hashable {
    public let name: String
    public let value: String

    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// A topic as it is to be.
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
    /// Of every topic: a worker writes to the partition number it reads from, and keyed topics are read side by side.
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

    /// What a promise rests on is named even where it is Kafka's default: a cluster may have defaults of its own.
    public func settings(of definition: TopicDefinition) -> [TopicSetting] {
        var settings = cleanup(definition) + timestamps(definition)
        if let compression = definition.compression { settings.append(TopicSetting("compression.type", compression)) }
        settings += [
            TopicSetting("min.insync.replicas", String(minimumInSyncReplicas)),
            // A replica that missed records must not lead: what was answered 200 would be gone, and readers of
            // librdkafka before 2.1 do not notice that a log became shorter.
            TopicSetting("unclean.leader.election.enable", "false"),
            TopicSetting("max.message.bytes", String(Self.limitBatchBytes)),
        ]
        return settings
    }

    /// Kafka's own default, named because a smaller one would refuse whole batches: librdkafka fills them up to 1,000,000
    /// bytes. A body of twice the default limit (`ingest.max.body.bytes`, at most 524,288) fits as well.
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
            // Time alone decides; a size would delete early under load.
            TopicSetting("retention.bytes", "-1"),
        ]
    }

    private func compaction(isChangelog: Bool) -> [TopicSetting] {
        let week = String(7 * 86_400_000)
        let forAll = [
            TopicSetting("cleanup.policy", "compact"),
            // A reader that was away for longer than this misses deletions and has to read everything again. A week
            // outlasts a long weekend, and is when Kafka forgets the offsets of a group that is away.
            TopicSetting("delete.retention.ms", week),
        ]
        guard isChangelog else { return forAll }
        return forAll + [
            // A restore reads the newest records; compacting them at once would only move bytes.
            TopicSetting("min.compaction.lag.ms", "3600000"),
            // The open segment is never compacted: with Kafka's 1 GiB a small state would be restored from a long history.
            TopicSetting("segment.bytes", String(64 << 20)),
        ]
    }

    private func timestamps(_ definition: TopicDefinition) -> [TopicSetting] {
        var settings = [TopicSetting("message.timestamp.type", definition.timestamps.rawValue)]
        guard definition.timestamps == .createTime else { return settings }
        // Records of a backfill and of a replay are as old as what they tell.
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
