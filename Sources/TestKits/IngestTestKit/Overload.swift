// More load than an ingest can handle, and how it recovers.

internal import KafkaTestKit
import Platform

/// Sends at twice the capacity, which is measured first, whether or not the server keeps up.
public struct Overload: Sendable, CustomStringConvertible {
    /// Answers per second to clients that wait for each answer.
    public let capacity: Double
    /// The result of the load.
    public let outcome: LoadOutcome
    public let peakMemoryBytes: Int
    /// From the end of the load to the first answer 200 within `promptness`; nil: no such answer came.
    public let recovery: Duration?

    /// A long time for an idle server: its timeout for Kafka is twice this.
    public static let promptness: Duration = .seconds(1)
    /// The promised limit.
    public static let recoveryLimit: Duration = .seconds(5)
    /// More than the requests that an ingest may hold, and fewer than nine tenths of its connections: beyond that it
    /// closes idle ones.
    private static let connections = 2_200
    private static let capacitySeconds = 4.0
    /// All connections that ingest accepts (2,048 and some), each with the library's memory (36 KiB), TLS buffers (two
    /// records of 16 KiB) and a body of the usual size, plus Kafka's queues of 64 MiB.
    public static let memoryLimitBytes = 384 << 20

    /// Posts sent for each requested one. It is below 1 if posts were held back because every connection waited for an
    /// answer: then there was no overload.
    public let offered: Double

    public init(of ingest: IngestProcess, bodies: Bodies, seconds: Double) async throws {
        var load = Load(ingest.url, authorityFile: ingest.authorityFile, bodies: bodies, .seconds(Self.capacitySeconds))
        try await ingest.warmUp(bodies)
        let unhurried = try await Self.run(load)
        // Answers of 503 while Kafka was slow in the first moments do not count as capacity.
        guard unhurried.answered(200) > unhurried.answered(503) else {
            throw IngestTestFault("before the overload: \(unhurried)")
        }
        capacity = Double(unhurried.answered(200)) / unhurried.seconds
        load.extent = .seconds(seconds)
        load.connectionCount = Self.connections
        load.connectsFirst = true
        load.rate = 2 * capacity
        outcome = try await Self.run(load)
        offered = Double(outcome.sent) / (2 * capacity * seconds)
        recovery = try await Self.recovery(of: ingest, bodies)
        peakMemoryBytes = try ingest.peakMemoryBytes()
    }

    private static func recovery(of ingest: IngestProcess, _ bodies: Bodies) async throws -> Duration? {
        var probe = Load(ingest.url, authorityFile: ingest.authorityFile, bodies: bodies, .requests(1))
        probe.connectionCount = 1
        probe.timeout = promptness
        let start = ContinuousClock.now
        while start.duration(to: .now) < .seconds(30) {
            if try await run(probe).isAllAccepted { return start.duration(to: .now) }
        }
        return nil
    }

    private static func run(_ load: Load) async throws -> LoadOutcome {
        try await onOwnThread("load") { try load.run() }
    }

    public var description: String {
        "capacity \(Int(capacity))/s; at twice that: \(outcome); p99 \(Int(outcome.latency.p99)) ms; peak memory "
            + "\(peakMemoryBytes >> 20) MiB; recovered \(recovery.map { "after \($0)" } ?? "not at all")"
    }
}
