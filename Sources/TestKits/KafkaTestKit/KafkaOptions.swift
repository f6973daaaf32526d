// How a private Kafka is set up.

/// What a test can change. The defaults are right for most tests.
public struct KafkaOptions: Sendable {
    /// A user of PLAIN at the additional SASL listener. Only letters, digits, `-` and `_`: the text goes into Java's
    /// nested quoting, and no test needs more.
    public struct Credentials: Sendable, Equatable {
        public var user: String
        public var password: String
        public init(user: String, password: String) {
            self.user = user
            self.password = password
        }
    }

    /// How the brokers' Java is started.
    public enum Java: Sendable {
        /// It starts quickly and stays slower.
        case quick
        /// With both compilers, and with the collector that needs the least processor time: for minutes of load on cores
        /// that brokers share with everything else.
        case thrifty
        /// As the official scripts start it: for measurements of the broker.
        case usual
    }

    /// 1, or 3 for tests that lose a broker.
    public var nodes = 1
    /// Broker properties that are added to ours or replace them.
    public var properties: [String: String] = [:]
    /// If set, `KafkaCluster.saslServers` is a listener that requires them; the others stay open to everybody.
    public var credentials: Credentials?
    /// The user of `credentials` may do only what ACLs allow; the other listeners allow everything.
    public var hasAccessLists = false
    /// Clients reach the brokers only through `KafkaCluster.proxy`, whose ports the brokers advertise.
    public var throughProxy = false
    public var java = Java.quick
    /// Where the nodes run, in their order; empty: where the test runs. With hosts there is no proxy.
    public var hosts: [TestHost] = []
    /// Directories for the data of some nodes, by their ids, such as small disks. Those of other nodes are made.
    public var dataDirectories: [Int: String] = [:]
    /// One node answers 3 s after its start on an idle machine with two cores; the limit is for a busy machine.
    public var startLimit: Duration = patience * 2

    public init() {}

    func check() throws {
        guard nodes == 1 || nodes == 3 else {
            throw KafkaTestFault("\(nodes) nodes were requested: use 1 or 3 (two nodes cannot lose one)")
        }
        guard hosts.isEmpty || (hosts.count == nodes && !throughProxy) else {
            throw KafkaTestFault("\(hosts.count) hosts for \(nodes) nodes: there must be one for each, and no proxy")
        }
        let allowed = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
        for text in [credentials?.user, credentials?.password].compactMap({ $0 })
        where text.isEmpty || !text.allSatisfy(allowed.contains) {
            throw KafkaTestFault("the user and the password of a test broker may contain only letters, digits, - and _")
        }
        for (name, value) in properties where (name + value).contains(where: { $0 == "\n" || $0 == "\r" }) {
            throw KafkaTestFault("the broker property \(name) contains a line break")
        }
    }
}

/// The ports of one broker.
struct BrokerPorts: Sendable {
    /// The port that clients connect to; with a proxy, the port that the proxy connects to.
    var client: UInt16
    /// The advertised port for clients.
    var advertised: UInt16
    /// For other brokers, and for tools that bypass the proxy.
    var `internal`: UInt16
    var controller: UInt16
    var sasl: UInt16
}

extension KafkaOptions {
    func host(of id: Int) -> TestHost { hosts.isEmpty ? .own : hosts[id - 1] }

    /// The properties of one node. KRaft, combined mode.
    func properties(of id: Int, in ports: [BrokerPorts], dataDirectory: String) -> [String: String] {
        let own = ports[id - 1]
        let address = host(of: id).address
        var listeners: [(name: String, bound: UInt16, advertised: UInt16)] = [
            ("CLIENT", own.client, own.advertised), ("INTERNAL", own.internal, own.internal),
        ]
        if credentials != nil { listeners.append(("SASL", own.sasl, own.sasl)) }
        let bound =
            listeners.map { "\($0.name)://\(address):\($0.bound)" } + ["CONTROLLER://\(address):\(own.controller)"]
        let voters = ports.indices.map { "\($0 + 1)@\(host(of: $0 + 1).address):\(ports[$0].controller)" }
        let copies = nodes == 3 ? 3 : 1
        // With two of three in sync, one broker may be killed and acks=all still works.
        let inSync = nodes == 3 ? 2 : 1
        var values = [
            "process.roles": "broker,controller",
            "node.id": "\(id)",
            "listeners": bound.joined(separator: ","),
            "advertised.listeners": listeners.map { "\($0.name)://\(address):\($0.advertised)" }.joined(separator: ","),
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
            // Test records have arbitrary timestamps, and none may expire before it is read. Topics may override this,
            // as those of the program do: they are not looked at again while a test runs.
            "log.retention.ms": "-1",
            "log.retention.check.interval.ms": "86400000",
            // The group of a test need not wait for members that never join.
            "group.initial.rebalance.delay.ms": "0",
            // Tests of lost members need a short session timeout.
            "group.min.session.timeout.ms": "1000",
            // After kill -9 the broker's old session has to expire: 4 s with these two, 12 s with the defaults.
            "broker.session.timeout.ms": "1500",
            "broker.heartbeat.interval.ms": "300",
        ]
        if let credentials {
            values["listener.name.sasl.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-512"
            // Users of SCRAM are kept in the cluster: a test adds them with kafka-configs.sh.
            values["listener.name.sasl.scram-sha-512.sasl.jaas.config"] =
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            values["listener.name.sasl.plain.sasl.jaas.config"] =
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                + "user_\(credentials.user)=\"\(credentials.password)\";"
        }
        if hasAccessLists {
            values["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
            // Brokers, tools and tests connect without a user name.
            values["super.users"] = "User:ANONYMOUS"
        }
        return values.merging(properties) { $1 }
    }
}
