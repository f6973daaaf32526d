// An unpacked Kafka: its scripts, and where to find it.

import Platform

public struct KafkaTestFault: Error, CustomStringConvertible {
    public let description: String
    init(_ description: String) { self.description = description }
}

/// An unpacked Kafka 3.9 or later. Its scripts need Java 17.
public struct KafkaDistribution: Sendable, Equatable {
    public let home: String
    public init(home: String) { self.home = home }

    func script(_ name: String) -> String { "\(home)/bin/\(name)" }

    /// Runs a command-line tool, such as `kafka-topics.sh`, and returns its output. Throws, with its output, if the
    /// exit code is not 0.
    @discardableResult
    public func tool(
        _ name: String, _ arguments: [String], stdin: String = "", timeout: Duration = patience * 3
    ) async throws -> String {
        let result = try await run(
            script(name), arguments, environment: .inherited(adding: Self.environment(of: .quick, heap: "-Xmx256m")),
            stdin: stdin,
            timeout: timeout)
        guard result.ending == .exited(code: 0) else {
            throw KafkaTestFault(
                "\(name) \(arguments.joined(separator: " ")): \(result.ending)\n"
                    + result.standardOutput + result.standardError)
        }
        return result.standardOutput
    }

    /// Different official scripts read different variables.
    static func environment(of java: KafkaOptions.Java, heap: String) -> [String: String] {
        // With only the first compiler, because most tests end before the second one pays off.
        let options =
            switch java {
            case .quick: "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"
            case .thrifty: "-XX:+UseSerialGC"
            case .usual: ""
            }
        let own = options.isEmpty ? [:] : ["KAFKA_JVM_PERFORMANCE_OPTS": options, "KAFKA_JVM_OPTS": options]
        return own.merging(["KAFKA_HEAP_OPTS": heap]) { $1 }
    }
}

/// Where the tests of this process find a Kafka, according to the environment.
///
/// ```swift
/// @Suite(.enabled(if: BrokerSource.current.isAvailable, "\(BrokerSource.skipLine)"))
/// ```
public struct BrokerSource: Sendable, Equatable {
    /// `KAFKA_BOOTSTRAP_SERVERS`: a Kafka that is already running. Tests share it with others and cannot kill it.
    public let namedServers: String?
    /// `KAFKA_HOME`: tests can start, kill and restart their own brokers.
    public let distribution: KafkaDistribution?

    package init(environment: [(name: String, value: String)]) {
        func value(_ name: String) -> String? { environment.first { $0.name == name && !$0.value.isEmpty }?.value }
        namedServers = value("KAFKA_BOOTSTRAP_SERVERS")
        distribution = value("KAFKA_HOME").map(KafkaDistribution.init)
    }

    public static let current = BrokerSource(environment: environmentVariables())

    /// True if tests that only need a Kafka can run.
    public var isAvailable: Bool { namedServers != nil || canStartBrokers }

    /// True if tests that kill, restart, configure or proxy a broker, or run its tools, can run.
    public var canStartBrokers: Bool { distribution != nil }

    public static let skipLine =
        "there is no Kafka: set KAFKA_HOME to an unpacked Kafka 3.9 or later (needs Java 17), "
        + "or KAFKA_BOOTSTRAP_SERVERS to host:port of a running one"

    public static let privateSkipLine =
        "no Kafka can be started: set KAFKA_HOME to an unpacked Kafka 3.9 or later (needs Java 17)"

    /// Throws the skip line if there is none.
    public func requireDistribution() throws -> KafkaDistribution {
        guard let distribution else { throw KafkaTestFault(Self.privateSkipLine) }
        return distribution
    }
}
