// How far a replay is. Pure.

import Log
import Runtime

/// The inputs from where they are read to the ends that were there at the start.
struct ReplayProgress {
    /// Where the group was at the start, or the first record there is.
    let starts: [TopicPartition: NextOffset]
    let ends: [TopicPartition: NextOffset]
    private(set) var positions: [TopicPartition: NextOffset]
    /// What this process has of it.
    var holding = WorkerService.Holding()
    /// Nothing but the ends of transactions lies between their position and their end.
    private var isRead: Set<TopicPartition> = []

    /// - Parameters:
    ///   - beginnings: of every partition of the inputs.
    ///   - positions: the group's.
    init(
        beginnings: [TopicPartition: NextOffset], ends: [TopicPartition: NextOffset],
        positions: [TopicPartition: NextOffset]
    ) {
        self.ends = ends
        starts = beginnings.merging(positions) { max($0, $1) }.filter { ends[$0.key] != nil }
        self.positions = starts
    }

    mutating func update(_ positions: [TopicPartition: NextOffset]) {
        for (partition, position) in positions where ends[partition] != nil {
            self.positions[partition] = max(position, self.positions[partition] ?? position)
        }
    }

    /// There is no record left up to its end.
    mutating func noteRead(_ partition: TopicPartition) { isRead.insert(partition) }

    /// From its position to its end, of every partition that is not there yet.
    var left: [TopicPartition: Range<Int64>] {
        var left: [TopicPartition: Range<Int64>] = [:]
        for (partition, end) in ends where !isRead.contains(partition) {
            let position = positions[partition]?.value ?? 0
            if position < end.value { left[partition] = position..<end.value }
        }
        return left
    }

    var isAtEnd: Bool { left.isEmpty }

    /// Partitions of this process that are not at their end and do not go on by themselves, and why; empty while others of its own
    /// have something to do. Those of other processes are theirs to tell of: whoever is left gets the partitions of those who end.
    var standstill: [Int32: String] {
        let mine = Set(left.keys.map(\.partition)).intersection(holding.partitions)
        let stuck = holding.stuck.filter { mine.contains($0.key) }
        return stuck.count == mine.count ? stuck : [:]
    }

    private func count(from starts: [TopicPartition: NextOffset], to ends: [TopicPartition: NextOffset]) -> Int64 {
        self.ends.reduce(0) { sum, entry in
            let end = min(ends[entry.key]?.value ?? 0, entry.value.value)
            return sum + max(0, end - (starts[entry.key]?.value ?? 0))
        }
    }

    /// Offsets to deal with in all, of which the ends of transactions take some.
    var total: Int64 { count(from: starts, to: ends) }
    var done: Int64 { count(from: starts, to: positions) }
    var fraction: Double { isAtEnd || total == 0 ? 1 : Double(done) / Double(total) }

    /// Partitions of the first topic by their numbers: all topics of a worker have as many.
    var partitions: Int { Set(ends.keys.map(\.partition)).count }
    var partitionsAtEnd: Int { partitions - Set(left.keys.map(\.partition)).count }
}
