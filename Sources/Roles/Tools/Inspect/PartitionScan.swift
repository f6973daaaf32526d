// Reads one partition of a log from a start to an end.

import Cluster
import Log
import Platform

/// One thread.
struct PartitionScan {
    let reader: any LogReader
    let partition: TopicPartition

    /// If no record arrives for this long although there are some, the brokers are in trouble.
    private static let silenceLimit: Duration = .seconds(30)
    private static let answerLimit: Duration = .seconds(10)
    private static let recordsPerPoll = 1000
    private static let pollWait: Duration = .milliseconds(20)

    /// Reads to the current end, or to an end that was read before.
    ///
    /// - Parameters:
    ///   - start: where reading begins; nil: it begins at the first existing record.
    ///   - known: an end that was read before; nil: the current end is looked up.
    ///   - progress: called with the fraction that was read, 0 to 1.
    /// - Returns: that end.
    @discardableResult
    func run(
        from start: NextOffset? = nil, until known: NextOffset? = nil, progress: (Double) -> Void = { _ in },
        _ body: (borrowing RecordView) throws(ToolFault) -> Void
    ) throws(ToolFault) -> NextOffset {
        let (first, end) = try bounds(start, known)
        guard first < end else { return max(first, end) }
        try persisting { () throws(LogFault) in try reader.read(from: [partition: first]) }
        let batch = RecordBatch()
        var patience = Deadline(after: Self.silenceLimit)
        var position = first
        while position < end {
            do throws(LogFault) {
                try reader.poll(into: batch, limit: Self.recordsPerPoll, wait: Self.pollWait)
                // The broker thread of librdkafka 2.0.2 may start to fetch a partition only after a second, or when it gets
                // another request. This query is such a request.
                if batch.count == 0 {
                    _ = try reader.ends(.committed, of: [partition], by: Deadline(after: Self.answerLimit))
                }
            } catch {
                if error.remedy != .retrySameCall || patience.hasPassed { throw fault(error) }
                pause(for: .milliseconds(100))
                continue
            }
            for index in 0..<batch.count where batch[index].offset < end.value { try body(batch[index]) }
            batch.removeAll()
            // The last offset may be the marker of a transaction instead of a record.
            let next = reader.position(of: partition) ?? position
            if next > position {
                position = next
                patience = Deadline(after: Self.silenceLimit)
                progress(Double(min(position, end).value - first.value) / Double(end.value - first.value))
            } else if patience.hasPassed {
                throw ToolFault(
                    .gaveUp,
                    "no record of \(partition) in \(Self.silenceLimit.wholeMilliseconds / 1000) s: run it again")
            }
        }
        return end
    }

    /// A query waits for a pending fetch of the partition before. So none is sent if both ends are known.
    private func bounds(_ start: NextOffset?, _ end: NextOffset?) throws(ToolFault) -> (
        first: NextOffset, end: NextOffset
    ) {
        if let start, let end { return (start, end) }
        let (beginning, last) = try range()
        return (max(start ?? beginning, beginning), end ?? last)
    }

    /// The offset of the first record with a timestamp at or after this; the end if there is none.
    func start(at timestamp: Int64) throws(ToolFault) -> NextOffset? {
        try persisting { () throws(LogFault) in
            try reader.offsets(at: timestamp, in: [partition], by: Deadline(after: Self.answerLimit))[partition]
        }
    }

    func range() throws(ToolFault) -> (beginning: NextOffset, end: NextOffset) {
        try persisting { () throws(LogFault) in
            let deadline = Deadline(after: Self.answerLimit)
            let beginning = try reader.beginnings(of: [partition], by: deadline)[partition]
            let end = try reader.ends(.committed, of: [partition], by: deadline)[partition]
            guard let beginning, let end else {
                throw LogFault(.stop, .unknownTopic, "Kafka gave no beginning and no end of \(partition)")
            }
            return (beginning, end)
        }
    }

    /// Retries retriable errors: while leaders change, brokers refuse requests for a moment.
    private func persisting<Answer>(_ body: () throws(LogFault) -> Answer) throws(ToolFault) -> Answer {
        let patience = Deadline(after: Self.answerLimit)
        while true {
            do throws(LogFault) {
                return try body()
            } catch {
                if error.remedy != .retrySameCall || patience.hasPassed { throw fault(error) }
                pause(for: .milliseconds(100))
            }
        }
    }

    private func fault(_ fault: LogFault) -> ToolFault {
        fault.cause == .positionGone
            ? ToolFault(.gaveUp, "records of \(partition) were deleted while they were read: run the command again")
            : ToolFault(.gaveUp, "\(partition): \(fault.words)")
    }
}

/// Whether both contain the same bytes.
func equal(_ left: Span<UInt8>, _ right: [UInt8]) -> Bool {
    left.count == right.count && begins(left, with: right)
}

func begins(_ bytes: Span<UInt8>, with beginning: [UInt8]) -> Bool {
    guard bytes.count >= beginning.count else { return false }
    for index in beginning.indices where bytes[index] != beginning[index] { return false }
    return true
}
