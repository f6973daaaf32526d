// Finds the last note of a changelog without reading all of it.

internal import Log
internal import Platform

/// Every commit of a partition ends with a note, so the last one stands near the end.
enum ChangelogTail {
    /// Offsets that the first attempt reads; each further attempt reads ten times as many.
    private static let firstSpan: Int64 = 1000

    /// - Parameter reader: has the changelog as its only topic.
    /// - Returns: nil when the partition of the changelog has no note.
    static func note(
        of partition: TopicPartition, _ reader: any LogReader, by deadline: Deadline
    ) throws(LogFault) -> Note? {
        guard let beginning = try reader.beginnings(of: [partition], by: deadline)[partition],
            let end = try reader.ends(.committed, of: [partition], by: deadline)[partition]
        else { throw LogFault(.retrySameCall, .timedOut, "the broker did not return the end offsets of \(partition)") }
        var span = firstSpan
        while true {
            let start = max(beginning.value, end.value - span)
            if let note = try lastNote(of: partition, from: NextOffset(start), to: end, reader, by: deadline) {
                return note
            }
            if start == beginning.value { return nil }
            span *= 10
        }
    }

    private static func lastNote(
        of partition: TopicPartition, from start: NextOffset, to end: NextOffset, _ reader: any LogReader,
        by deadline: Deadline
    ) throws(LogFault) -> Note? {
        guard start < end else { return nil }
        try reader.read(from: [partition: start])
        let batch = RecordBatch()
        defer { batch.removeAll() }
        var last: [UInt8]?
        while (reader.position(of: partition) ?? start) < end {
            if deadline.hasPassed {
                throw LogFault(
                    .retrySameCall, .timedOut,
                    "reading \(partition) did not finish before the deadline")
            }
            try reader.poll(into: batch, limit: 1000, wait: .milliseconds(100))
            for index in 0..<batch.count where batch[index].offset < end.value {
                if batch[index].copyOfKey() == ChangelogKey.note { last = batch[index].copyOfValue() }
            }
        }
        guard let last else { return nil }
        guard let note = Note(decoding: last) else {
            throw LogFault(
                .stop, .other,
                "\(partition) was written by a build that this build cannot read; use the later build")
        }
        return note
    }
}
