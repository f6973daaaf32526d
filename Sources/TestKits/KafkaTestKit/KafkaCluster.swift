// A private Kafka for tests.

import Glibc
import Platform
import Synchronization

/// A private Kafka of one or three nodes, in a new directory, on free loopback ports. It lives until `close()` or until
/// the last reference is gone, and at most as long as the test process.
public final class KafkaCluster: Sendable {
    public let distribution: KafkaDistribution
    public let brokers: [KafkaBroker]
    /// With `KafkaOptions.throughProxy`: the proxy between all clients and the brokers.
    public let proxy: FrameProxy?
    private let hasSASL: Bool
    private let scratch: ScratchDirectory

    /// How often to retry with other ports if another program took one between our check and the broker's start.
    private static let attempts = 3

    /// Returns when every broker answers clients.
    public static func start(
        _ distribution: KafkaDistribution, _ options: KafkaOptions = KafkaOptions()
    ) async throws -> KafkaCluster {
        try options.check()
        guard access(distribution.script("kafka-server-start.sh"), X_OK) == 0 else {
            throw KafkaTestFault(
                "there is no bin/kafka-server-start.sh in \(distribution.home): "
                    + "set KAFKA_HOME to an unpacked Kafka 3.9 or later")
        }
        var attempt = 1
        while true {
            let cluster = try KafkaCluster(distribution, options)
            do {
                try await cluster.formatAndStart()
                return cluster
            } catch {
                let isPortTaken = cluster.brokers.contains { $0.log.contains("Address already in use") }
                await cluster.close()
                if !isPortTaken || attempt == attempts { throw error }
                attempt += 1
            }
        }
    }

    private init(_ distribution: KafkaDistribution, _ options: KafkaOptions) throws {
        self.distribution = distribution
        let scratch = try ScratchDirectory("kafka-test-kit")
        var ports = try (1...options.nodes).map { _ in
            let client = try Ports.free()
            return BrokerPorts(
                client: client, advertised: client, internal: try Ports.free(), controller: try Ports.free(),
                sasl: try Ports.free())
        }
        if options.throughProxy {
            let proxy = try FrameProxy(brokerPorts: ports.map(\.client))
            for index in ports.indices { ports[index].advertised = proxy.ports[index] }
            self.proxy = proxy
        } else {
            proxy = nil
        }
        hasSASL = options.credentials != nil
        let settled = ports
        brokers = try (1...options.nodes).map { id in
            try KafkaBroker(id: id, ports: settled, distribution: distribution, options: options, scratch: scratch)
        }
        self.scratch = scratch
    }

    private func formatAndStart() async throws {
        let clusterID = Self.randomID()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for broker in brokers { group.addTask { try await broker.format(clusterID: clusterID) } }
            try await group.waitForAll()
        }
        // All are started before waiting for one: a single controller has no majority.
        for broker in brokers { try broker.launch() }
        for broker in brokers { try await broker.waitUntilReady(togetherWith: brokers.map(\.id)) }
    }

    /// 16 random bytes in Kafka's notation: URL-safe Base64 without padding. It starts with a letter, because a leading
    /// `-` would look like an option.
    private static func randomID() -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        // 22 digits of 6 bits are 132 bits, so the last digit carries only two bits.
        let middle = (0..<20).map { _ in alphabet.randomElement()! }
        return String([alphabet[Int.random(in: 0..<26)]] + middle + [["A", "Q", "g", "w"].randomElement()!])
    }

    // MARK: Use

    /// The only broker, or the first one.
    public var broker: KafkaBroker { brokers[0] }

    /// Whether this is true for one of the brokers.
    public var hasSkippedMarkers: Bool { brokers.contains(where: \.hasSkippedMarkers) }

    /// For clients; goes through the proxy if there is one.
    public var bootstrapServers: String { servers(\.advertised) }

    /// Bypasses the proxy: for tools and checks that must not be counted, held or delayed.
    public var internalServers: String { servers(\.internal) }

    /// The listener that requires `KafkaOptions.credentials` (SASL_PLAINTEXT, PLAIN); nil without them.
    public var saslServers: String? { hasSASL ? servers(\.sasl) : nil }

    private func servers(_ port: KeyPath<BrokerPorts, UInt16>) -> String {
        brokers.map { "\($0.host.address):\($0.ports[keyPath: port])" }.joined(separator: ",")
    }

    /// Runs a tool of the distribution against this cluster, bypassing the proxy, and returns its output.
    @discardableResult
    public func tool(_ name: String, _ arguments: [String], stdin: String = "") async throws -> String {
        try await distribution.tool(
            name, ["--bootstrap-server", internalServers] + arguments, stdin: stdin)
    }

    /// Kills the brokers and closes the proxy. The directory is removed with the last reference.
    public func close() async {
        for broker in brokers {
            // The others are killed even if one fails.
            do { try await broker.kill9() } catch { printMessage("a broker could not be killed: \(error)") }
        }
        await proxy?.close()
    }
}

// MARK: One broker for all tests that only need one

/// The Kafka that the tests of a process share: the named one, or one node that is started for the first test that
/// needs it and ends with the process.
public enum SharedKafka {
    private static let starting = Mutex<Task<KafkaCluster, any Error>?>(nil)

    /// nil if the environment names a running Kafka.
    public static func cluster() async throws -> KafkaCluster? {
        if BrokerSource.current.namedServers != nil { return nil }
        let distribution = try BrokerSource.current.requireDistribution()
        let task = starting.withLock { starting in
            let task = starting ?? Task { try await KafkaCluster.start(distribution) }
            starting = task
            return task
        }
        return try await task.value
    }

    public static func bootstrapServers() async throws -> String {
        if let servers = BrokerSource.current.namedServers { return servers }
        guard let cluster = try await cluster() else { throw KafkaTestFault(BrokerSource.skipLine) }
        return cluster.bootstrapServers
    }
}
