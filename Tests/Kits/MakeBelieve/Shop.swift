// A worker over a log in memory, fed with notifications made from short texts.

public import Contract
import Log
public import MemoryLog
public import Runtime
public import WorkerTestKit

/// One process that works whenever it gets input.
public final class Shop {
    public struct NoProgress: Error, CustomStringConvertible { public let description: String }

    public static let partitions: Int32 = 3
    public static let names = Names(prefix: TopicPrefix("shop")!, environment: .production)

    public let simulation: WorkerSimulation

    /// - Parameter processes: number of processes; the first one is started.
    public init(
        _ processor: any Processor, processes: Int = 1, startingAt start: Int64 = d(0),
        faults: (any LogFaults)? = nil
    ) throws {
        simulation = try WorkerSimulation(processor, processes: processes, startingAt: start, faults: faults)
        simulation.start(simulation.processes[0])
    }

    public static func partition(of key: String) -> Int32 {
        Partitioner.partition(of: Array(key.utf8), count: Self.partitions)
    }

    /// Ids whose records are in the same partition as those of another.
    public static func neighbours(of id: String, _ count: Int) -> [String] {
        Array((1001...).lazy.map(String.init).filter { partition(of: $0) == partition(of: id) }.prefix(count))
    }

    public func tell(_ told: Told, of id: String = "1000", received: Int64? = nil) throws {
        try feed(Array(id.utf8), told.value, at: received ?? told.signed)
    }

    public func feed(_ key: [UInt8], _ value: [UInt8]?, at timestamp: Int64) throws {
        try simulation.feed(
            partition: Partitioner.partition(of: key, count: Self.partitions), key: key, value: value,
            headers: [RecordHeader("schema", "notification/1")],
            timestamp: timestamp)
    }

    public func tick(_ instant: Int64) throws { try simulation.tick(at: instant) }

    public func work() throws {
        guard try simulation.runToEnd() else {
            throw NoProgress(description: "\(simulation.processes.map { "\($0.slot): \($0.troubles)" })")
        }
    }

    public func seen(_ id: TopicID) throws -> [WorkerSimulation.Seen] {
        try work()
        return try simulation.read(Self.names.topic(id))
    }
}
