// The log without the transaction that makes a cycle atomic: it proves that the tests would notice.

import Log
import Platform

struct TornLog: RecordLog {
    private let log: any RecordLog

    init(_ log: any RecordLog) { self.log = log }

    func topics(_ names: [String], by deadline: Deadline) throws(LogFault) -> [String: TopicShape] {
        try log.topics(names, by: deadline)
    }
    func create(_ topics: [NewTopic], by deadline: Deadline) throws(LogFault) {
        try log.create(topics, by: deadline)
    }
    func settle(_ identity: String, by deadline: Deadline) throws(LogFault) { try log.settle(identity, by: deadline) }
    func openReader(_ options: ReaderOptions) throws(LogFault) -> any LogReader { try log.openReader(options) }
    func openWriter(_ options: WriterOptions) throws(LogFault) -> any LogWriter { try log.openWriter(options) }

    func openSession(_ options: SessionOptions, by deadline: Deadline) throws(LogFault) -> any LogSession {
        let writer = try log.openWriter(WriterOptions(name: options.identity, topics: options.outputs))
        return TornSession(try log.openSession(options, by: deadline), writer)
    }
}

/// Outputs are visible as soon as they are appended; a commit covers only the offsets.
private final class TornSession: LogSession {
    private let session: any LogSession
    private let writer: any LogWriter
    private var ends: [TopicPartition: NextOffset] = [:]

    init(_ session: any LogSession, _ writer: any LogWriter) {
        self.session = session
        self.writer = writer
    }

    func poll(into batch: RecordBatch, limit: Int, wait: Duration) throws(LogFault) -> SessionEvent {
        try session.poll(into: batch, limit: limit, wait: wait)
    }
    func committed(_ partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    {
        try session.committed(partitions, by: deadline)
    }
    func beginnings(of partitions: [TopicPartition], by deadline: Deadline) throws(LogFault)
        -> [TopicPartition: NextOffset]
    {
        try session.beginnings(of: partitions, by: deadline)
    }
    func take(_ starts: [TopicPartition: NextOffset], paused: Set<TopicPartition>) throws(LogFault) {
        try session.take(starts, paused: paused)
    }
    func giveBack() throws(LogFault) { try session.giveBack() }
    func pause(_ partitions: [TopicPartition]) throws(LogFault) { try session.pause(partitions) }
    func resume(_ partitions: [TopicPartition]) throws(LogFault) { try session.resume(partitions) }
    func seek(to positions: [TopicPartition: NextOffset]) throws(LogFault) { try session.seek(to: positions) }
    func position(of partition: TopicPartition) -> NextOffset? { session.position(of: partition) }
    func abort() throws(LogFault) { try session.abort() }

    func append(_ outputs: OutputBatch) throws(LogFault) {
        let offsets = try writer.append(outputs, by: Deadline(after: .seconds(10)))
        for (record, offset) in zip(outputs.records, offsets) {
            ends[TopicPartition("\(record.topic)", record.partition)] = NextOffset(after: offset)
        }
    }

    /// Long enough that a kill may come between outputs and offsets.
    func commit(_ positions: [TopicPartition: NextOffset]) throws(LogFault) {
        Platform.pause(for: .milliseconds(100))
        try session.commit(positions)
    }

    var ownedUntil: Duration? { session.ownedUntil }
    var grown: [String: Int32] { session.grown }
    func appendedEnd(topic: Int, partition: Int32) -> NextOffset? { ends[TopicPartition("\(topic)", partition)] }

    func close(by deadline: Deadline) -> Bool {
        writer.close(by: deadline)
        return session.close(by: deadline)
    }
}
