// How a private Kafka is set up.

/// What a test may want different. The defaults are right for most.
public struct KafkaOptions: Sendable {
    /// A user of the additional SASL/PLAIN listener. Letters, digits, `-` and `_` only: the text goes into Java's nested
    /// quoting, and no test needs more.
    public struct Credentials: Sendable, Equatable {
        public var user: String
        public var password: String
        public init(user: String, password: String) {
            self.user = user
            self.password = password
        }
    }

    /// 1, or 3 for tests that lose a broker.
    public var nodes = 1
    /// Broker properties, added to or replacing ours.
    public var properties: [String: String] = [:]
    /// When set, `KafkaCluster.saslServers` is a listener that asks for them; the others stay open to everybody.
    public var credentials: Credentials?
    /// The user of `credentials` may do only what access lists allow; on the other listeners everything is allowed.
    public var hasAccessLists = false
    /// Clients reach the brokers through `KafkaCluster.proxy` only: it is what the brokers advertise.
    public var throughProxy = false
    /// One node answers 3 s after its start on an idle machine with two cores; this is for a busy one.
    public var startLimit: Duration = .seconds(60)

    public init() {}

    func check() throws {
        guard nodes == 1 || nodes == 3 else {
            throw KafkaTestFault("a Kafka of \(nodes) nodes: 1 or 3 can be started (two cannot lose one)")
        }
        let allowed = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
        for text in [credentials?.user, credentials?.password].compactMap({ $0 })
        where text.isEmpty || !text.allSatisfy(allowed.contains) {
            throw KafkaTestFault("the user and the password of a test broker take letters, digits, - and _ only")
        }
        for (name, value) in properties where (name + value).contains(where: { $0 == "\n" || $0 == "\r" }) {
            throw KafkaTestFault("the broker property \(name) contains a line break")
        }
    }
}

/// The ports of one broker.
struct BrokerPorts: Sendable {
    /// What clients connect to; with a proxy, what the proxy connects to.
    var client: UInt16
    /// What clients are told to connect to.
    var advertised: UInt16
    /// Between brokers, and for tools that shall not pass the proxy.
    var `internal`: UInt16
    var controller: UInt16
    var sasl: UInt16
}

extension KafkaOptions {
    /// The properties of one node. KRaft, combined mode.
    func properties(of id: Int, in ports: [BrokerPorts], dataDirectory: String) -> [String: String] {
        let own = ports[id - 1]
        var listeners: [(name: String, bound: UInt16, advertised: UInt16)] = [
            ("CLIENT", own.client, own.advertised), ("INTERNAL", own.internal, own.internal),
        ]
        if credentials != nil { listeners.append(("SASL", own.sasl, own.sasl)) }
        let bound =
            listeners.map { "\($0.name)://127.0.0.1:\($0.bound)" } + ["CONTROLLER://127.0.0.1:\(own.controller)"]
        let voters = ports.indices.map { "\($0 + 1)@127.0.0.1:\(ports[$0].controller)" }
        let copies = nodes == 3 ? 3 : 1
        // With two of three in sync, one may be killed and acks=all goes on.
        let inSync = nodes == 3 ? 2 : 1
        var values = [
            "process.roles": "broker,controller",
            "node.id": "\(id)",
            "listeners": bound.joined(separator: ","),
            "advertised.listeners": listeners.map { "\($0.name)://127.0.0.1:\($0.advertised)" }.joined(separator: ","),
            "listener.security.protocol.map":
                "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters.joined(separator: ","),
            "log.dirs": dataDirectory,
            "auto.create.topics.enable": "false",
            "default.replication.factor": "\(copies)",
            "min.insync.replicas": "\(inSync)",
            "offsets.topic.replication.factor": "\(copies)",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "\(copies)",
            "transaction.state.log.min.isr": "\(inSync)",
            "transaction.state.log.num.partitions": "4",
            // Records of tests have any timestamps, and none is to go before it is read. Topics may say otherwise.
            "log.retention.ms": "-1",
            // A group of one test need not wait for members that never come.
            "group.initial.rebalance.delay.ms": "0",
            // Tests of lost members want to lose them quickly.
            "group.min.session.timeout.ms": "1000",
            // After kill -9 the broker's old session has to run out: 4 s with these two, 12 s with the defaults.
            "broker.session.timeout.ms": "1500",
            "broker.heartbeat.interval.ms": "300",
        ]
        if let credentials {
            values["listener.name.sasl.sasl.enabled.mechanisms"] = "PLAIN"
            values["listener.name.sasl.plain.sasl.jaas.config"] =
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                + "user_\(credentials.user)=\"\(credentials.password)\";"
        }
        if hasAccessLists {
            values["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
            // Brokers, tools and tests come without a name.
            values["super.users"] = "User:ANONYMOUS"
        }
        return values.merging(properties) { $1 }
    }
}
