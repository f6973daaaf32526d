// Combines the client properties that the user sets (`kafka.*`) with those that this layer requires.

internal import CRDKafka
import Glibc
internal import Platform

/// The kind of client a property is for.
public enum ClientKind: String, Sendable, CaseIterable {
    case consumer, producer, admin
}

/// librdkafka's properties as the user set them. They are passed on verbatim, except the few on which correctness
/// depends.
public struct ClientProperties: Sendable {
    public struct Property: Sendable, Equatable {
        /// nil: the property is for every kind of client.
        public var kind: ClientKind?
        public var name: String
        public var value: String

        public init(kind: ClientKind? = nil, name: String, value: String) {
            self.kind = kind
            self.name = name
            self.value = value
        }
    }

    public private(set) var properties: [Property]
    /// Receives, for every client created with these properties, the events of its own handler, on any thread, and the
    /// statistics of clients that report them. It is called with nil when a client is created.
    public var watch: (@Sendable (_ client: String, _ event: ClientEvent?) -> Void)?
    /// The thread that polls parses the statistics, so they are rare.
    static let watchedStatisticsMilliseconds = 15_000

    public init(_ properties: [Property] = []) {
        self.properties = properties
    }

    /// A later value replaces an earlier one for the same kind.
    public mutating func set(_ name: String, _ value: String, for kind: ClientKind? = nil) {
        properties.append(Property(kind: kind, name: name, value: value))
    }

    public init(bootstrapServers: String) {
        self.init([Property(name: "bootstrap.servers", value: bootstrapServers)])
    }

    /// Addresses of the first brokers to contact; nil if not set.
    public var bootstrapServers: String? {
        properties.last { Self.canonical($0.name) == "bootstrap.servers" && !$0.value.isEmpty }?.value
    }

    /// The user as which clients authenticate; nil: they use no user and password.
    public var userName: String? { properties.last { $0.name == "sasl.username" && !$0.value.isEmpty }?.value }

    /// A handler that calls the client's own handler and `watch`.
    func watching(_ client: String, _ events: @escaping ClientEventHandler) -> ClientEventHandler {
        guard let watch else { return events }
        watch(client, nil)
        return { event in
            events(event)
            watch(client, event)
        }
    }

    /// The properties for clients of `kind`: general ones first, so that those for the kind win.
    func values(for kind: ClientKind) -> [(name: String, value: String)] {
        (properties.filter { $0.kind == nil } + properties.filter { $0.kind == kind }).map { ($0.name, $0.value) }
    }

    /// Why the user may not set a property; nil if the user may.
    public static func refusal(of name: String) -> String? {
        refused[canonical(name)]
    }

    /// librdkafka has two names for some properties.
    private static func canonical(_ name: String) -> String {
        switch name {
        case "metadata.broker.list": "bootstrap.servers"
        case "request.required.acks": "acks"
        case "delivery.timeout.ms": "message.timeout.ms"
        default: name
        }
    }

    private static let refused: [String: String] = [
        "enable.auto.commit": "offsets are committed in the transaction that carries the outputs, never on a timer",
        "auto.commit.enable": "offsets are committed in the transaction that carries the outputs, never on a timer",
        "auto.commit.interval.ms":
            "offsets are committed in the transaction that carries the outputs, never on a timer",
        "enable.auto.offset.store":
            "offsets are committed in the transaction that carries the outputs, never on a timer",
        "offset.store.method": "offsets belong to the group on the broker, nowhere else",
        "offset.store.path": "offsets belong to the group on the broker, nowhere else",
        "isolation.level": "readers must see committed records only; tools that need more choose it themselves",
        "partition.assignment.strategy":
            "equal partition numbers of a worker's topics must have one owner, which only `range` gives",
        "group.protocol": "equal partition numbers of a worker's topics must have one owner, which only `range` gives",
        "group.remote.assignor":
            "equal partition numbers of a worker's topics must have one owner, which only `range` gives",
        "group.id": "the group is named by topic.prefix, environment and worker, so that rights can be given to it",
        "group.instance.id": "the identity of a worker comes from worker.slot; set that instead",
        "transaction.timeout.ms": "the worker sets how long an open transaction of a dead worker may block readers",
        "message.timeout.ms": "it is derived from the time limit of a transaction or a request",
        "transactional.id": "the identity of a worker comes from worker.slot; set that instead",
        "enable.idempotence": "without it a retry may write a record twice or out of order",
        "enable.gapless.guarantee": "it makes errors fatal that otherwise only abort a transaction",
        "acks": "acknowledged records must be on every in-sync replica (acks=all)",
        "partitioner": "the partition is computed by Perennial (murmur2) and passed explicitly",
        "auto.offset.reset": "a new group starts at the beginning; starting at the end would lose records",
        "allow.auto.create.topics":
            "a topic created by accident has the wrong number of partitions; use `perennial topics apply`",
        "enable.partition.eof": "positions depend on the end-of-partition events",
        "delivery.report.only.error": "each record's offset comes from its delivery report",
        "enabled_events": "callbacks belong to Perennial",
        "dr_cb": "callbacks belong to Perennial",
        "dr_msg_cb": "callbacks belong to Perennial",
        "log.queue": "log lines tell of late requests and must come at once; use log.level for what is shown",
        "log_level": "log lines tell of late requests and must come at once; use log.level for what is shown",
        "log.connection.close": "a lost connection makes a transactional producer suspect and must be reported",
        "plugin.library.paths": "plug-ins crash librdkafka before 2.13 when a client cannot be created",
    ]

    /// Below this a retry cannot be distinguished from a normal commit (3 to 12 ms, sometimes tens of ms).
    static let smallestRetryBackoffMilliseconds = 50
}

/// A wrong property of a client, reported before anything connects.
public struct PropertyFault: Error, Equatable, CustomStringConvertible {
    public var property: String
    public var reason: String
    /// The most similar property that librdkafka knows, if the name is unknown.
    public var suggestion: String?

    public var description: String {
        if property == "*" { return reason }
        return "kafka.\(property) \(reason)" + (suggestion.map { "; the nearest is kafka.\($0)" } ?? "")
    }
}

/// Owns an `rd_kafka_conf_t` until a client is created with it.
struct ClientConf: ~Copyable {
    private(set) var raw: OpaquePointer

    /// The properties of every client; the user's properties are added to these.
    init(clientID: String) throws(PropertyFault) {
        raw = rd_kafka_conf_new()
        try set("client.id", clientID)
        // Nagle's algorithm adds the delay of delayed acknowledgements to every small request.
        try set("socket.nagle.disable", "true")
        // Instead of 30 s: one broker that does not answer delays the lookup of a coordinator by this time.
        try set("socket.connection.setup.timeout.ms", "5000")
        try set("allow.auto.create.topics", "false")
    }

    init(owning raw: OpaquePointer) { self.raw = raw }

    deinit { rd_kafka_conf_destroy(raw) }

    /// Only this layer sets the properties that the user may not change.
    mutating func apply(_ properties: ClientProperties, to kind: ClientKind) throws(PropertyFault) {
        for (name, value) in properties.values(for: kind) {
            if let reason = ClientProperties.refusal(of: name) {
                throw PropertyFault(property: name, reason: "cannot be set: \(reason)")
            }
            if let reason = unreadableFile(name, value) { throw PropertyFault(property: name, reason: reason) }
            // Both kinds of property are in one configuration object, and librdkafka ignores one for the other kind, so
            // `kafka.*` can go to every client.
            try set(name, value)
        }
        guard let backoff = Int(get("retry.backoff.ms") ?? ""),
            backoff >= ClientProperties.smallestRetryBackoffMilliseconds
        else {
            throw PropertyFault(
                property: "retry.backoff.ms",
                reason: "must be at least \(ClientProperties.smallestRetryBackoffMilliseconds): a shorter pause hides "
                    + "that a request was sent twice")
        }
    }

    mutating func set(_ name: String, _ value: String) throws(PropertyFault) {
        var message = [CChar](repeating: 0, count: 512)
        let result = rd_kafka_conf_set(raw, name, value, &message, message.count)
        switch result {
        case RD_KAFKA_CONF_OK: return
        case RD_KAFKA_CONF_UNKNOWN:
            throw PropertyFault(
                property: name, reason: "is unknown to librdkafka \(Librdkafka.version)",
                suggestion: nearest(to: name))
        default:
            throw PropertyFault(
                property: name,
                reason: "has an invalid value"
                    + (isSecret(name) ? "" : ": \(text(of: message))"))
        }
    }

    func get(_ name: String) -> String? {
        var size = 0
        guard rd_kafka_conf_get(raw, name, nil, &size) == RD_KAFKA_CONF_OK, size > 0 else { return nil }
        var value = [CChar](repeating: 0, count: size)
        guard rd_kafka_conf_get(raw, name, &value, &size) == RD_KAFKA_CONF_OK else { return nil }
        return text(of: value)
    }

    func duplicate() -> OpaquePointer { rd_kafka_conf_dup(raw) }

    /// librdkafka opens its files when a client is created, and then only reports "system lib".
    private func unreadableFile(_ name: String, _ value: String) -> String? {
        let isPath = name.hasPrefix("ssl.") && name.hasSuffix(".location") || name == "sasl.kerberos.keytab"
        guard isPath, value != "probe", access(value, R_OK) != 0 else { return nil }
        return "names \(value), which cannot be read: \(SystemFailure.last(name).reason)"
    }

    private func isSecret(_ name: String) -> Bool {
        ["password", "secret", "token", "pem", "key"].contains { name.contains($0) }
    }

    private func nearest(to name: String) -> String? {
        guard let table = perennial_rdkafka_properties() else { return nil }
        defer { free(table) }
        // One row per property: its name, then columns between bars.
        let names = String(cString: table).split(separator: "\n").filter { $0.contains("|") }
            .map { String($0.prefix { $0 != " " }) }
        return nearestName(to: name, among: names)
    }
}

/// Text that C wrote into our buffer.
func text(of buffer: [CChar]) -> String {
    String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

extension ClientProperties {
    /// Finds wrong properties without creating a client: tries each one on a configuration of the kinds to which it
    /// applies.
    public func faults() -> [PropertyFault] {
        var faults: [PropertyFault] = []
        for kind in ClientKind.allCases {
            for property in properties where property.kind == nil || property.kind == kind {
                do {
                    var conf = try ClientConf(clientID: "check")
                    try conf.apply(ClientProperties([property]), to: kind)
                } catch  where !faults.contains(error) {
                    faults.append(error)
                } catch {}
            }
        }
        return faults
    }
}
