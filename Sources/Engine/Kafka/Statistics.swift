// The part of librdkafka's statistics that an operator needs.

public import JSON
public import Log

/// One report of a client's statistics, which `statistics.interval.ms` turns on.
///
/// It contains no lag: a consumer whose offsets are committed by a transaction never learns them.
public struct Statistics: Sendable {
    public struct Broker: Sendable {
        public var name: String
        public var isUp: Bool
        /// A broker of the cluster, and neither a bootstrap address nor a logical broker such as a coordinator.
        public var isMember: Bool
        /// Microseconds from a request to its answer.
        public var roundTripMicroseconds: Percentiles
        /// Microseconds that a request waited in the client.
        public var queueMicroseconds: Percentiles
        public var retries: Int64
        public var timeouts: Int64
    }

    /// Brokers of the cluster to which the client is connected. It connects only to those that it needs.
    public var connectedBrokers: Int { brokers.count { $0.isUp && $0.isMember } }

    public struct Percentiles: Sendable, Equatable {
        public var p50: Int64
        public var p99: Int64
    }

    public struct Partition: Sendable {
        public var partition: TopicPartition
        /// Records fetched and not delivered to the application yet.
        public var fetchedRecords: Int64
        /// The end of all records; nil if unknown.
        public var end: NextOffset?
        /// The end of the committed records.
        public var stableEnd: NextOffset?
    }

    /// Name of the handle: two clients with one id have different names.
    public var client: String
    /// Records that wait in a producer.
    public var queuedRecords: Int64
    public var queuedBytes: Int64
    public var brokers: [Broker]
    public var partitions: [Partition]
    /// The state of the group in the client, such as `up`; nil for producers.
    public var groupState: String?
    public var rebalances: Int64
    /// The transactional producer's state, such as `Ready` or `InTransaction`; nil for others.
    public var transactionState: String?
    /// The idempotent producer's state: `Assigned` when a broker has assigned its producer id; nil for others.
    public var idempotenceState: String?

    /// The document has about 50 KB with twelve partitions; with a thousand partitions it stays below the limit.
    private static let limits: JSONLimits = {
        var limits = JSONLimits()
        limits.bytes = 16 << 20
        return limits
    }()

    public init(json: [UInt8]) throws(JSONFault) {
        let root = try JSONValue.read(json, limits: Self.limits)
        client = root["name"]?.string ?? ""
        queuedRecords = root["msg_cnt"]?.integer ?? 0
        queuedBytes = root["msg_size"]?.integer ?? 0
        brokers = (root["brokers"]?.object?.members ?? []).map { Broker($0.value) }.sorted { $0.name < $1.name }
        partitions = (root["topics"]?.object?.members ?? []).flatMap { topic in
            (topic.value["partitions"]?.object?.members ?? []).compactMap { Partition(topic: topic.name, $0.value) }
        }.sorted { $0.partition < $1.partition }
        groupState = root["cgrp"]?["state"]?.string
        rebalances = root["cgrp"]?["rebalance_cnt"]?.integer ?? 0
        transactionState = root["eos"]?["txn_state"]?.string
        idempotenceState = root["eos"]?["idemp_state"]?.string
    }
}

extension Statistics.Broker {
    fileprivate init(_ value: JSONValue) {
        name = value["name"]?.string ?? ""
        isUp = value["state"]?.string == "UP"
        isMember = (value["nodeid"]?.integer ?? -1) >= 0
        roundTripMicroseconds = Statistics.Percentiles(value["rtt"])
        queueMicroseconds = Statistics.Percentiles(value["outbuf_latency"])
        retries = value["txretries"]?.integer ?? 0
        timeouts = value["req_timeouts"]?.integer ?? 0
    }
}

extension Statistics.Percentiles {
    fileprivate init(_ value: JSONValue?) {
        p50 = value?["p50"]?.integer ?? 0
        p99 = value?["p99"]?.integer ?? 0
    }
}

extension Statistics.Partition {
    /// nil for the entry -1, in which librdkafka counts records without a partition.
    fileprivate init?(topic: String, _ value: JSONValue) {
        guard let number = value["partition"]?.integer, let id = Int32(exactly: number), id >= 0 else { return nil }
        func offset(_ name: String) -> NextOffset? {
            guard let offset = value[name]?.integer, offset >= 0 else { return nil }
            return NextOffset(offset)
        }
        partition = TopicPartition(topic, id)
        fetchedRecords = value["fetchq_cnt"]?.integer ?? 0
        end = offset("hi_offset")
        stableEnd = offset("ls_offset")
    }
}
