// The progress of a replay. Pure.

import Log
import Runtime

/// The inputs, from the position at the start to the ends at the start.
struct ReplayProgress {
    /// The positions of the group at the start, or the first existing offsets.
    let starts: [TopicPartition: NextOffset]
    let ends: [TopicPartition: NextOffset]
    private(set) var positions: [TopicPartition: NextOffset]
    /// The partitions that this process has.
    var holding = WorkerService.Holding()
    /// Partitions with only markers of transactions between their position and their end.
    private var isRead: Set<TopicPartition> = []

    /// - Parameters:
    ///   - beginnings: the first offset of every partition of the inputs.
    ///   - positions: the positions of the group.
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

    /// Notes that no record is left before the end of this partition.
    mutating func noteRead(_ partition: TopicPartition) { isRead.insert(partition) }

    /// From position to end, for every partition that is not at its end.
    var left: [TopicPartition: Range<Int64>] {
        var left: [TopicPartition: Range<Int64>] = [:]
        for (partition, end) in ends where !isRead.contains(partition) {
            let position = positions[partition]?.value ?? 0
            if position < end.value { left[partition] = position..<end.value }
        }
        return left
    }

    var isAtEnd: Bool { left.isEmpty }

    /// Partitions of this process that are not at their end and cannot continue, and why; empty while other partitions of this process
    /// make progress. Other processes report their own partitions: when they end, a remaining process gets these partitions.
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

    /// All offsets to process, including markers of transactions.
    var total: Int64 { count(from: starts, to: ends) }
    var done: Int64 { count(from: starts, to: positions) }
    var fraction: Double { isAtEnd || total == 0 ? 1 : Double(done) / Double(total) }

    /// The number of partitions; all topics of a worker have the same number.
    var partitions: Int { Set(ends.keys.map(\.partition)).count }
    var partitionsAtEnd: Int { partitions - Set(left.keys.map(\.partition)).count }
}
