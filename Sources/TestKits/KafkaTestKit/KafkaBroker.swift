// One node of a private Kafka.

import Platform
import Synchronization

/// A broker (and controller) of a `KafkaCluster`. It can be stopped, killed and restarted with its data and ports.
public final class KafkaBroker: Sendable {
    /// 1, 2, 3.
    public let id: Int
    public let host: TestHost
    let ports: BrokerPorts
    /// Where the logs of its partitions are.
    public let dataDirectory: String
    private let distribution: KafkaDistribution
    private let configurationFile: String
    private let logDirectory: String
    private let java: [String: String]
    private let hasSASL: Bool
    private let startLimit: Duration
    private let process = Mutex<ChildProcess?>(nil)
    /// Before its last start.
    private let hadSkippedMarkers = Mutex(false)

    /// Number of log lines in an error: enough for a Java stack trace with its cause.
    private static let logLines = 30

    init(
        id: Int, ports: [BrokerPorts], distribution: KafkaDistribution, options: KafkaOptions, scratch: ScratchDirectory
    ) throws {
        self.id = id
        host = options.host(of: id)
        self.ports = ports[id - 1]
        self.distribution = distribution
        logDirectory = scratch.path
        let heap =
            switch options.java {
            case .usual: "-Xms1g -Xmx1g"
            case .quick, .thrifty: options.nodes == 1 ? "-Xms256m -Xmx1g" : "-Xms128m -Xmx384m"
            }
        java = KafkaDistribution.environment(of: options.java, heap: heap)
        hasSASL = options.credentials != nil
        startLimit = options.startLimit
        dataDirectory = options.dataDirectories[id] ?? "\(scratch.path)/data-\(id)"
        let properties = options.properties(of: id, in: ports, dataDirectory: dataDirectory)
        // Java treats a backslash as the start of an escape.
        let text = properties.sorted { $0.key < $1.key }
            .map {
                "\($0.key)=\($0.value.split(separator: "\\", omittingEmptySubsequences: false).joined(separator: "\\\\"))\n"
            }
        configurationFile = try scratch.write(text.joined(), to: "broker-\(id).properties")
    }

    func format(clusterID: String) async throws {
        try await distribution.tool("kafka-storage.sh", ["format", "-t", clusterID, "-c", configurationFile])
    }

    // MARK: Life

    /// Of its current process, for measurements; nil before the first start.
    public var current: ChildProcess? { process.withLock { $0 } }

    public var isRunning: Bool { process.withLock { $0 }?.isRunning ?? false }

    /// The greatest resident memory of its process.
    public func peakMemoryBytes() throws -> Int {
        guard let process = process.withLock({ $0 }) else { throw KafkaTestFault("broker \(id) was never started") }
        return try process.peakMemoryBytes()
    }

    /// The broker's output since its last start.
    public var log: String { process.withLock { $0 }?.standardOutput ?? "" }

    /// Whether it has ended a transaction without writing markers to its partitions, because they had no leader at that
    /// moment, for example while a killed broker comes back (KAFKA-20734, seen in 4.3.1). Committed data may then be
    /// lost, and readers cannot see who wrote it. Only counts topics that are never deleted.
    public var hasSkippedMarkers: Bool {
        hadSkippedMarkers.withLock { $0 }
            || log.contains("these partitions are likely deleted already and hence can be skipped")
    }

    /// Returns when the broker answers clients and every partition that can have a leader has one. If it does not come
    /// up, the error shows the end of its log.
    public func start() async throws { try await start(togetherWith: [id]) }

    /// - Parameter expected: the brokers that must have joined before this one counts as up.
    func start(togetherWith expected: [Int]) async throws {
        try launch()
        try await waitUntilReady(togetherWith: expected)
    }

    func launch() throws {
        let hasSkippedMarkers = hasSkippedMarkers
        hadSkippedMarkers.withLock { $0 = hasSkippedMarkers }
        try process.withLock { process in
            guard process?.isRunning != true else { throw KafkaTestFault("broker \(id) is already running") }
            var environment = java
            // Otherwise the official scripts write their logs into the distribution.
            environment["LOG_DIR"] = logDirectory
            // `hasSkippedMarkers` searches for this output; the official scripts log it in any case.
            environment["KAFKA_LOG_LEVEL"] = "INFO"
            process = try ChildProcess(
                distribution.script("kafka-server-start.sh"), [configurationFile],
                environment: .inherited(adding: environment), mergesErrors: true, on: host)
        }
    }

    func waitUntilReady(togetherWith expected: [Int]) async throws {
        let ids = Set(expected.map(Int32.init))
        let (ports, hasSASL, address) = (ports, hasSASL, host.address)
        let deadline = Deadline(after: startLimit)
        while true {
            let isReady = try await onOwnThread("broker-probe") {
                Self.answers(ports, at: address, hasSASL: hasSASL, with: ids)
            }
            // The process is checked afterwards: another program on the same port may have answered.
            guard isRunning else { throw KafkaTestFault("broker \(id) ended while it started: \(lastWords)") }
            if isReady { return }
            guard !deadline.hasPassed else {
                killNow()
                throw KafkaTestFault("broker \(id) did not answer within \(startLimit): \(lastWords)")
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Each listener opens separately. An open port proves little; a response that names leaders is enough.
    private static func answers(
        _ ports: BrokerPorts, at address: String, hasSASL: Bool, with ids: Set<Int32>
    ) -> Bool {
        do {
            for port in [ports.internal, ports.client] {
                guard try ClusterMetadata.ask(address: address, port: port).serves(with: ids) else { return false }
            }
            if hasSASL { _ = try Loopback.connect(address: address, port: ports.sasl, limit: .seconds(1)) }
            return true
        } catch {
            return false
        }
    }

    private var lastWords: String {
        guard let process = process.withLock({ $0 }) else { return "it was never started" }
        let ending = process.ending.map { "\($0)" } ?? "it is still running"
        // A shutdown logs many lines that explain nothing.
        let lines = process.standardOutput.split(separator: "\n").filter { !$0.contains(" INFO ") }
        return "\(ending); the end of its log:\n\(lines.suffix(Self.logLines).joined(separator: "\n"))"
    }

    /// Stops gracefully (leadership moves, the log is flushed); kills it if it does not end within the limit.
    public func stop(within limit: Duration = .seconds(20)) async throws {
        try await process.withLock { $0 }?.terminate(within: limit)
    }

    /// `kill -9`, like a power failure. Returns when the process is gone.
    public func kill9() async throws {
        killNow()
        _ = try await process.withLock { $0 }?.wait()
    }

    func killNow() { process.withLock { $0 }?.killNow() }

    /// Stops it if it is running, and starts it again with the same data and ports.
    public func restart() async throws {
        try await stop()
        try await start()
    }

    /// SIGSTOP: the broker keeps its connections and answers nothing, as if it hangs.
    public func suspend() { process.withLock { $0 }?.suspend() }
    public func resume() { process.withLock { $0 }?.resume() }
}
