// The positions of a reader in its partitions.

internal import Log

/// The positions of one session or reader. Reads from the partitions in turn, so that a full one does not starve the
/// others.
struct Cursors {
    private struct Cursor {
        let name: TopicPartition
        let partition: MemoryPartition
        let topic: Int32
        var next: Int64
        var isPaused: Bool
        /// There is no record at `next`, and this was reported to the reader.
        var isStopped = false
    }

    /// Sorted by topic and partition, so that the turns do not depend on a hash.
    private var cursors: [Cursor] = []
    private var turn = 0

    mutating func removeAll() { cursors = [] }

    mutating func set(
        _ starts: [TopicPartition: NextOffset], paused: Set<TopicPartition>, topics: [String], in state: LogState
    ) throws(LogFault) {
        var cursors: [Cursor] = []
        for (name, start) in starts.sorted(by: { $0.key < $1.key }) {
            guard let topic = topics.firstIndex(of: name.topic) else {
                throw LogFault(.stop, .misuse, "\(name) belongs to no topic of the reader")
            }
            cursors.append(
                Cursor(
                    name: name, partition: try state.partition(name), topic: Int32(topic), next: start.value,
                    isPaused: paused.contains(name)))
        }
        self.cursors = cursors
        turn = 0
    }

    mutating func seek(to positions: [TopicPartition: NextOffset]) {
        for index in cursors.indices {
            if let position = positions[cursors[index].name] { cursors[index].next = position.value }
        }
    }

    /// The partition delivers no more records.
    mutating func stop(_ partition: TopicPartition) {
        for index in cursors.indices where cursors[index].name == partition { cursors[index].isStopped = true }
    }

    mutating func setPaused(_ isPaused: Bool, _ partitions: [TopicPartition]) {
        for index in cursors.indices where partitions.contains(cursors[index].name) {
            cursors[index].isPaused = isPaused
        }
    }

    func position(of partition: TopicPartition) -> NextOffset? {
        cursors.first { $0.name == partition }.map { NextOffset($0.next) }
    }

    /// Fills the batch, and moves the positions past the lent records.
    ///
    /// - Returns: a partition without a record at its position. The batch is then empty.
    mutating func fill(_ batch: RecordBatch, limit: Int) -> TopicPartition? {
        var left = limit
        for step in 0..<cursors.count where left > 0 {
            let index = (turn + step) % cursors.count
            let cursor = cursors[index]
            guard !cursor.isPaused, !cursor.isStopped else { continue }
            switch cursor.partition.lend(from: cursor.next, limit: left, as: cursor.topic, into: batch) {
            case .lent(let count, let next):
                cursors[index].next = next
                left -= count
            case .gone:
                // Records of other partitions in the batch stay valid. The next fill starts with this partition.
                return batch.isEmpty ? cursor.name : nil
            }
        }
        if !cursors.isEmpty { turn = (turn + 1) % cursors.count }
        return nil
    }
}
