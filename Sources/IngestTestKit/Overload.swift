// More than an ingest can do, and what is left of it afterwards.

internal import KafkaTestKit
import Platform

/// Twice the capacity, which is measured first, whether or not the server keeps up.
public struct Overload: Sendable, CustomStringConvertible {
    /// Answers a second that the ingest gave to clients that wait for them.
    public let capacity: Double
    /// How the load ended.
    public let outcome: LoadOutcome
    public let peakMemoryBytes: Int
    /// From the end of the load to the first answer 200 that came within `promptness`; nil: none did.
    public let recovery: Duration?

    /// Long for a server with nothing to do: its timeout for Kafka is twice this.
    public static let promptness: Duration = .seconds(1)
    /// What is promised.
    public static let recoveryLimit: Duration = .seconds(5)
    /// More than the requests that an ingest may hold; fewer than the nine tenths of its connections beyond which it closes idle
    /// ones.
    private static let connections = 2_200
    private static let capacitySeconds = 4.0
    /// Every connection that ingest takes (2,048 and some) with what the library sets aside for it (32 KiB), TLS's own buffers
    /// (two records of 16 KiB) and a body of the usual size; and Kafka's queues of 64 MiB.
    public static let memoryLimitBytes = 384 << 20

    /// Posts sent for each that was asked for. Below 1 by what is held back because every connection waits for an answer: then
    /// it was no overload.
    public let offered: Double

    public init(of ingest: IngestProcess, bodies: Bodies, seconds: Double) async throws {
        var load = Load(ingest.url, authorityFile: ingest.authorityFile, bodies: bodies, .seconds(Self.capacitySeconds))
        try await ingest.warmUp(bodies)
        let unhurried = try await Self.run(load)
        // What Kafka keeps waiting in the first moments is answered 503: no part of the capacity.
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
