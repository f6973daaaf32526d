// What the user says about clients (`kafka.*`), what the layer relies on, and how the two meet.

internal import CRDKafka
import Glibc
internal import Platform

/// The kind of client a property is for.
public enum ClientKind: String, Sendable, CaseIterable {
    case consumer, producer, admin
}

/// Properties of librdkafka as the user gave them: passed on verbatim, but for the few that correctness depends on.
public struct ClientProperties: Sendable {
    public struct Property: Sendable, Equatable {
        /// nil: every kind of client.
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
    /// Hears of every client that is made with these what its own handler hears, on whatever thread that is, and the statistics of
    /// those that tell them. nil: one is made.
    public var watch: (@Sendable (_ client: String, _ event: ClientEvent?) -> Void)?
    /// They are read on the thread that polls: seldom.
    static let watchedStatisticsMilliseconds = 15_000

    public init(_ properties: [Property] = []) {
        self.properties = properties
    }

    /// Later ones win over earlier ones of the same reach.
    public mutating func set(_ name: String, _ value: String, for kind: ClientKind? = nil) {
        properties.append(Property(kind: kind, name: name, value: value))
    }

    public init(bootstrapServers: String) {
        self.init([Property(name: "bootstrap.servers", value: bootstrapServers)])
    }

    /// Where clients begin to look for brokers; nil when nobody said.
    public var bootstrapServers: String? {
        properties.last { Self.canonical($0.name) == "bootstrap.servers" && !$0.value.isEmpty }?.value
    }

    /// Who clients sign in as; nil: not by a user and a password.
    public var userName: String? { properties.last { $0.name == "sasl.username" && !$0.value.isEmpty }?.value }

    /// The handler of a client, and whoever watches.
    func watching(_ client: String, _ events: @escaping ClientEventHandler) -> ClientEventHandler {
        guard let watch else { return events }
        watch(client, nil)
        return { event in
            events(event)
            watch(client, event)
        }
    }

    /// What goes to clients of `kind`: general properties first, so that those for the kind win.
    func values(for kind: ClientKind) -> [(name: String, value: String)] {
        (properties.filter { $0.kind == nil } + properties.filter { $0.kind == kind }).map { ($0.name, $0.value) }
    }

    /// Why a property may not be set; nil when it is the user's to choose.
    public static func refusal(of name: String) -> String? {
        refused[canonical(name)]
    }

    /// librdkafka knows some properties by two names.
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
        "transaction.timeout.ms": "how long a dead worker may hold its readers back belongs to the worker",
        "message.timeout.ms": "it follows from the time a transaction or a request may take",
        "transactional.id": "the identity of a worker comes from worker.slot; set that instead",
        "enable.idempotence": "without it a retry may write a record twice or out of order",
        "enable.gapless.guarantee": "it stops a producer for good where a transaction is only aborted",
        "acks": "what was answered with success must be on every in-sync replica (acks=all)",
        "partitioner": "the partition is computed by Perennial (murmur2) and passed explicitly",
        "auto.offset.reset": "a new group starts at the beginning; starting at the end would lose records",
        "allow.auto.create.topics":
            "a topic made by accident has the wrong partition count; use `perennial topics apply`",
        "enable.partition.eof": "positions rest on the end-of-partition events",
        "delivery.report.only.error": "each record's offset comes from its delivery report",
        "enabled_events": "callbacks belong to Perennial",
        "dr_cb": "callbacks belong to Perennial",
        "dr_msg_cb": "callbacks belong to Perennial",
        "log.queue": "log lines tell of late requests and must come at once; use log.level for what is shown",
        "log_level": "log lines tell of late requests and must come at once; use log.level for what is shown",
        "log.connection.close": "a lost connection makes a transactional producer suspect and must be told",
        "plugin.library.paths": "plug-ins crash librdkafka before 2.13 when a client cannot be made",
    ]

    /// Below this a retry cannot be told from an ordinary commit (3 to 12 ms, with outliers of some ten).
    static let smallestRetryBackoffMilliseconds = 50
}

/// Wrong settings of a client: told before anything connects.
public struct PropertyFault: Error, Equatable, CustomStringConvertible {
    public var property: String
    public var reason: String
    /// The nearest property that librdkafka knows, when the name is unknown.
    public var suggestion: String?

    public var description: String {
        if property == "*" { return reason }
        return "kafka.\(property) \(reason)" + (suggestion.map { "; the nearest is kafka.\($0)" } ?? "")
    }
}

/// Owns an `rd_kafka_conf_t` until a client is made of it.
struct ClientConf: ~Copyable {
    private(set) var raw: OpaquePointer

    /// What every client is made with; the user's properties come on top.
    init(clientID: String) throws(PropertyFault) {
        raw = rd_kafka_conf_new()
        try set("client.id", clientID)
        // Nagle's algorithm adds the waits of delayed acknowledgements to every small request.
        try set("socket.nagle.disable", "true")
        // Instead of half a minute: looking for a coordinator waits behind one broker that does not answer.
        try set("socket.connection.setup.timeout.ms", "5000")
        try set("allow.auto.create.topics", "false")
    }

    init(owning raw: OpaquePointer) { self.raw = raw }

    deinit { rd_kafka_conf_destroy(raw) }

    /// What the user may not override is set by the layer only.
    mutating func apply(_ properties: ClientProperties, to kind: ClientKind) throws(PropertyFault) {
        for (name, value) in properties.values(for: kind) {
            if let reason = ClientProperties.refusal(of: name) {
                throw PropertyFault(property: name, reason: "cannot be set: \(reason)")
            }
            if let reason = unreadableFile(name, value) { throw PropertyFault(property: name, reason: reason) }
            // Both kinds of property live in one configuration object; one that is for the other kind is ignored by
            // the library, so that `kafka.*` can go to every client.
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
                reason: "has a wrong value"
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

    /// The library opens its files when a client is made, and then says "system lib".
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
        // One row a property: its name, then columns between bars.
        let names = String(cString: table).split(separator: "\n").filter { $0.contains("|") }
            .map { String($0.prefix { $0 != " " }) }
        return nearestName(to: name, among: names)
    }
}

/// Text that C wrote into a buffer of ours.
func text(of buffer: [CChar]) -> String {
    String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

extension ClientProperties {
    /// Says what is wrong without making a client: every property is tried on a configuration of the kinds it reaches.
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
