import Log
import MemoryLog
import Platform
import Testing

/// One topic in, one topic out, with a clock that stands still.
struct Play {
    static let input = "input"
    static let output = "output"
    let clock = MemoryLog.Clock.manual(startingAt: 1_000_000)
    let plan = Planned()
    let log: MemoryLog

    init(partitions: Int32 = 1, faults: (any LogFaults)? = nil) throws {
        log = MemoryLog(clock: clock, faults: faults ?? plan)
        try log.create(
            [NewTopic(Self.input, partitions: partitions), NewTopic(Self.output, partitions: partitions)],
            by: Self.soon)
    }

    static var soon: Deadline { Deadline(after: .seconds(1)) }

    func partition(_ number: Int32 = 0) -> TopicPartition { TopicPartition(Self.input, number) }

    static func outputs(_ texts: [String], key: [UInt8]? = nil, partition: Int32 = 0, timestamp: Int64 = 1)
        -> OutputBatch
    {
        let outputs = OutputBatch()
        for text in texts {
            outputs.append(
                topic: 0, partition: partition, timestamp: timestamp, key: key, value: Array(text.utf8))
        }
        return outputs
    }

    @discardableResult
    func write(_ outputs: OutputBatch, to topic: String = input) throws -> [Int64] {
        try log.openWriter(WriterOptions(name: "writer", topics: [topic])).append(outputs, by: Self.soon)
    }

    func open(_ identity: String = "m") throws -> any LogSession {
        var options = SessionOptions(
            group: "group", identity: identity, inputs: [Self.input], outputs: [Self.output])
        options.sessionTimeout = .seconds(30)
        options.transactionTimeout = .seconds(10)
        return try log.openSession(options, by: Self.soon)
    }

    /// Opens a session, and reads its partitions from the group's committed offsets.
    func openAndTake(_ identity: String = "m") throws -> any LogSession {
        let session = try open(identity)
        let event = try poll(session).event
        guard case .assigned(let partitions) = event else {
            throw LogFault(.stop, .other, "\(event) in place of assigned")
        }
        try take(session, partitions)
        return session
    }

    func take(_ session: any LogSession, _ partitions: [TopicPartition]) throws {
        let committed = try session.committed(partitions, by: Self.soon)
        var starts: [TopicPartition: NextOffset] = [:]
        for partition in partitions { starts[partition] = committed[partition] ?? NextOffset(0) }
        try session.take(starts, paused: [])
    }

    func poll(_ session: any LogSession, limit: Int = 100) throws -> (event: SessionEvent, texts: [String]) {
        let batch = RecordBatch()
        let event = try session.poll(into: batch, limit: limit, wait: .seconds(1))
        return (event, texts(batch))
    }

    func texts(_ batch: RecordBatch) -> [String] {
        (0..<batch.count).map { String(decoding: batch[$0].copyOfValue() ?? [], as: UTF8.self) }
    }

    func reader(_ topic: String = output, name: String = "reader", readsAhead: Bool = false) throws -> any LogReader {
        var options = ReaderOptions(name: name, group: "group", topics: [topic])
        options.readsAhead = readsAhead
        return try log.openReader(options)
    }

    /// The committed records of one partition.
    func read(_ topic: String = output, partition: Int32 = 0) throws -> [String] {
        // Bypasses the plan: this read does not count as a step.
        let reader = try reader(topic, name: "onlooker")
        let partition = TopicPartition(topic, partition)
        try reader.read(from: reader.beginnings(of: [partition], by: Self.soon))
        let batch = RecordBatch()
        var all: [String] = []
        repeat {
            try reader.poll(into: batch, limit: 1_000, wait: .zero)
            all += texts(batch)
        } while !batch.isEmpty
        return all
    }
}

/// The fault that `body` throws; nil if it throws none.
func fault(in body: () throws -> Void) throws -> LogFault? {
    do {
        try body()
        return nil
    } catch let fault as LogFault {
        return fault
    }
}
