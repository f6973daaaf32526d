// Where a reader stands in its partitions.

internal import Log

/// The positions of one session or reader. Takes turns between partitions, so that a full one does not starve the others.
struct Cursors {
    private struct Cursor {
        let name: TopicPartition
        let partition: MemoryPartition
        let topic: Int32
        var next: Int64
        var isPaused: Bool
        /// There is no record at `next`, and whoever reads was told so.
        var isStopped = false
    }

    /// In order of topic and partition, so that turns do not depend on a hash.
    private var cursors: [Cursor] = []
    private var turn = 0

    mutating func removeAll() { cursors = [] }

    mutating func set(
        _ starts: [TopicPartition: NextOffset], paused: Set<TopicPartition>, topics: [String], in state: LogState
    ) throws(LogFault) {
        var cursors: [Cursor] = []
        for (name, start) in starts.sorted(by: { $0.key < $1.key }) {
            guard let topic = topics.firstIndex(of: name.topic) else {
                throw LogFault(.stop, .misuse, "\(name) is of no topic that was named on opening")
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

    /// It gives nothing more.
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

    /// Fills the batch, and moves the positions behind what was lent.
    ///
    /// - Returns: a partition without a record at its position. The batch is empty then.
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
                // What others have given already stays good: they are asked first the next time.
                return batch.isEmpty ? cursor.name : nil
            }
        }
        if !cursors.isEmpty { turn = (turn + 1) % cursors.count }
        return nil
    }
}
