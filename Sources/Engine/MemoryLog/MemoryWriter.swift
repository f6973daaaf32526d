// Appends records outside of transactions.

internal import Log
internal import Platform

final class MemoryWriter: LogWriter {
    private let core: LogCore
    private let options: WriterOptions

    init(_ options: WriterOptions, _ core: LogCore) {
        self.core = core
        self.options = options
    }

    func append(_ outputs: OutputBatch, by deadline: Deadline) throws(LogFault) -> [Int64] {
        try core.changing { state throws(LogFault) in
            let now = state.clock.now
            var offsets: [Int64] = []
            offsets.reserveCapacity(outputs.count)
            for index in 0..<outputs.count {
                let topic = Int(outputs.records[index].topic)
                guard options.topics.indices.contains(topic) else {
                    throw LogFault(.stop, .misuse, "\(options.name) has no topic \(topic)")
                }
                let target = try state.topic(options.topics[topic])
                let (partition, offset) = try state.append(outputs, index, to: target, transaction: 0, now: now)
                offsets.append(offset)
                state.tidy(partition, of: target, now: now)
            }
            return offsets
        }
    }

    func close(by deadline: Deadline) -> Bool { true }
}
