// An unpacked Kafka: its scripts, and where it comes from.

import Platform

public struct KafkaTestFault: Error, CustomStringConvertible {
    public let description: String
    init(_ description: String) { self.description = description }
}

/// A Kafka 3.9 or later, unpacked. Its scripts need Java 17.
public struct KafkaDistribution: Sendable, Equatable {
    public let home: String
    public init(home: String) { self.home = home }

    func script(_ name: String) -> String { "\(home)/bin/\(name)" }

    /// Runs a command-line tool, such as `kafka-topics.sh`, and returns what it printed.
    /// Throws, with its words, when it ends with another code than 0.
    @discardableResult
    public func tool(
        _ name: String, _ arguments: [String], stdin: String = "", timeout: Duration = .seconds(60)
    ) async throws -> String {
        let result = try await run(
            script(name), arguments, environment: .inherited(adding: Self.lightJava(heap: "-Xmx256m")), stdin: stdin,
            timeout: timeout)
        guard result.ending == .exited(code: 0) else {
            throw KafkaTestFault(
                "\(name) \(arguments.joined(separator: " ")): \(result.ending)\n"
                    + result.standardOutput + result.standardError)
        }
        return result.standardOutput
    }

    /// A Java that starts quickly: the simple collector, and the first compiler only. Tests are over before the second
    /// compiler has paid for itself. The official scripts read one of the names, others the other.
    static func lightJava(heap: String) -> [String: String] {
        let options = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"
        return [
            "KAFKA_HEAP_OPTS": heap, "KAFKA_JVM_PERFORMANCE_OPTS": options, "KAFKA_JVM_OPTS": options,
        ]
    }
}

/// Where the tests of this process find a Kafka: the environment says it.
///
/// ```swift
/// @Suite(.enabled(if: BrokerSource.current.isAvailable, "\(BrokerSource.skipLine)"))
/// ```
public struct BrokerSource: Sendable, Equatable {
    /// `KAFKA_BOOTSTRAP_SERVERS`: a Kafka that runs already; tests share it with others and cannot kill it.
    public let namedServers: String?
    /// `KAFKA_HOME`: brokers of our own can be started, killed and started again.
    public let distribution: KafkaDistribution?

    package init(environment: [(name: String, value: String)]) {
        func value(_ name: String) -> String? { environment.first { $0.name == name && !$0.value.isEmpty }?.value }
        namedServers = value("KAFKA_BOOTSTRAP_SERVERS")
        distribution = value("KAFKA_HOME").map(KafkaDistribution.init)
    }

    public static let current = BrokerSource(environment: environmentVariables())

    /// Tests that only need a Kafka can run.
    public var isAvailable: Bool { namedServers != nil || canStartBrokers }

    /// Tests that kill, restart, configure or proxy a broker, or run its tools, can run.
    public var canStartBrokers: Bool { distribution != nil }

    public static let skipLine =
        "there is no Kafka: set KAFKA_HOME to an unpacked Kafka 3.9 or later (needs Java 17), "
        + "or KAFKA_BOOTSTRAP_SERVERS to host:port of a running one"

    public static let privateSkipLine =
        "no Kafka can be started: set KAFKA_HOME to an unpacked Kafka 3.9 or later (needs Java 17)"

    /// Throws the skip line when there is none.
    public func requireDistribution() throws -> KafkaDistribution {
        guard let distribution else { throw KafkaTestFault(Self.privateSkipLine) }
        return distribution
    }
}
