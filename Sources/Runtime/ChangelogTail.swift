// The last note of a changelog, found without reading all of it.

internal import Log
internal import Platform

/// Every commit of a partition ends with a note, so the last one stands near the end.
enum ChangelogTail {
    /// Looked at first; ten times as many when there was no note.
    private static let firstSpan: Int64 = 1000

    /// - Parameter reader: names the changelog as its only topic.
    /// - Returns: nil when the partition of the changelog has no note.
    static func note(
        of partition: TopicPartition, _ reader: any LogReader, by deadline: Deadline
    ) throws(LogFault) -> Note? {
        guard let beginning = try reader.beginnings(of: [partition], by: deadline)[partition],
            let end = try reader.ends(.committed, of: [partition], by: deadline)[partition]
        else { throw LogFault(.retrySameCall, .timedOut, "the ends of \(partition) are not known") }
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
            if deadline.hasPassed { throw LogFault(.retrySameCall, .timedOut, "\(partition) is not read in time") }
            try reader.poll(into: batch, limit: 1000, wait: .milliseconds(100))
            for index in 0..<batch.count where batch[index].offset < end.value {
                if batch[index].copyOfKey() == ChangelogKey.note { last = batch[index].copyOfValue() }
            }
        }
        guard let last else { return nil }
        guard let note = Note(decoding: last) else {
            throw LogFault(.stop, .other, "\(partition) was written by a build that this one does not know")
        }
        return note
    }
}
