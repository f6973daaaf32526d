// How long notifications wait for the commit that answers them, and how long partitions stand still.

/// Fed with what a reader of committed records sees, in any order of the topics. Times are milliseconds since 1970.
struct FleetWaits: Sendable {
    /// A time in which a partition had a notification to process and committed none.
    struct Stand: Sendable {
        let partition: ManyPartition
        let from: Int64
        let until: Int64

        var milliseconds: Int64 { until - from }
    }

    /// A disturbance, or the time between two.
    struct Step: Sendable {
        let cause: ManyCause
        /// For each worker, how many notifications have waited for so many milliseconds.
        var waits: [ManyKind: [Int64: Int]] = [:]
        /// The longest of each partition.
        var stands: [ManyPartition: Stand] = [:]
    }

    private struct Lane {
        var waiting: [(offset: Int64, published: Int64)] = []
        /// How many of `waiting` are answered.
        var done = 0
        /// All input before this offset has been read.
        var read: Int64 = 0
        /// Commits of records that were not read yet: the topics are read side by side.
        var commits: [(position: Int64, at: Int64)] = []
        var position: Int64 = 0
        var moved = Int64.min

        var oldest: Int64? { done < waiting.count ? waiting[done].published : nil }
        /// Since when it stands still; nil: it has nothing to do.
        var standsSince: Int64? { oldest.map { max($0, moved) } }
    }

    private(set) var steps = [Step(cause: .start)]
    /// Waits that had not ended when the measurement ended.
    private(set) var unfinished = 0
    private var lanes: [ManyPartition: Lane] = [:]
    private let kinds: [ManyKind]

    init(kinds: [ManyKind], partitions: Int) {
        self.kinds = kinds
        for kind in kinds {
            for number in 0..<Int32(partitions) { lanes[ManyPartition(kind: kind, number: number)] = Lane() }
        }
    }

    // MARK: What happens

    mutating func begin(_ cause: ManyCause) { steps.append(Step(cause: cause)) }

    /// A record of `notifications`, with the time of its publication.
    mutating func published(_ number: Int32, offset: Int64, at time: Int64) {
        for kind in kinds {
            let partition = ManyPartition(kind: kind, number: number)
            guard lanes[partition] != nil else { continue }
            lanes[partition]!.waiting.append((offset, time))
            lanes[partition]!.read = offset + 1
            settle(partition)
        }
    }

    /// A commit of everything before `position`, which a reader saw at this time.
    mutating func committed(_ partition: ManyPartition, position: Int64, at time: Int64) {
        guard lanes[partition] != nil else { return }
        lanes[partition]!.commits.append((position, time))
        settle(partition)
    }

    /// The measurement ends: what waits has waited until now at least.
    mutating func end(at time: Int64) {
        for (partition, lane) in lanes {
            if let since = lane.standsSince { note(Stand(partition: partition, from: since, until: time)) }
            for waiting in lane.waiting.dropFirst(lane.done) {
                unfinished += 1
                note(wait: time - waiting.published, partition.kind)
            }
            lanes[partition] = Lane()
        }
    }

    private mutating func settle(_ partition: ManyPartition) {
        var lane = lanes[partition]!
        // One owner of the array at a time, so that it is not copied.
        lanes[partition] = Lane()
        while let commit = lane.commits.first, commit.position <= lane.read {
            lane.commits.removeFirst()
            // A commit without new input, such as one of timers.
            guard commit.position > lane.position else { continue }
            if let since = lane.standsSince { note(Stand(partition: partition, from: since, until: commit.at)) }
            while lane.done < lane.waiting.count, lane.waiting[lane.done].offset < commit.position {
                note(wait: commit.at - lane.waiting[lane.done].published, partition.kind)
                lane.done += 1
            }
            (lane.position, lane.moved) = (commit.position, commit.at)
        }
        if lane.done > 1_000, lane.done > lane.waiting.count / 2 {
            lane.waiting.removeFirst(lane.done)
            lane.done = 0
        }
        lanes[partition] = lane
    }

    private mutating func note(wait: Int64, _ kind: ManyKind) {
        steps[steps.count - 1].waits[kind, default: [:]][max(0, wait), default: 0] += 1
    }

    private mutating func note(_ stand: Stand) {
        let known = steps[steps.count - 1].stands[stand.partition]
        if stand.milliseconds > known?.milliseconds ?? -1 { steps[steps.count - 1].stands[stand.partition] = stand }
    }

    // MARK: What is known

    /// Partitions that have not moved for longer than this although they have something to do, or have never moved.
    func standing(longerThan limit: Int64, at now: Int64) -> [String] {
        lanes.sorted { $0.key < $1.key }.compactMap { partition, lane in
            if lane.position == 0 { return "\(partition) has committed nothing" }
            guard let since = lane.standsSince, now - since > limit else { return nil }
            return "\(partition) at \(lane.position) for \(now - since) ms"
        }
    }

    /// Those of the first step are of the time in which everything starts.
    var pauses: [ManyPause] {
        zip(0..., steps).flatMap { number, step in
            step.stands.values.map {
                ManyPause(
                    partition: $0.partition, cause: step.cause, step: number,
                    duration: .milliseconds($0.milliseconds))
            }
        }
    }

    /// - Parameter kind: nil: all workers.
    static func merged(_ steps: some Sequence<Step>, of kind: ManyKind? = nil) -> [Int64: Int] {
        var all: [Int64: Int] = [:]
        for step in steps {
            for (worker, waits) in step.waits where kind == nil || worker == kind {
                all.merge(waits, uniquingKeysWith: +)
            }
        }
        return all
    }

    /// The wait that so many of a thousand notifications do not exceed; nil: there are none.
    static func wait(_ thousandths: Int, of waits: [Int64: Int]) -> Int64? {
        let count = waits.values.reduce(0, +)
        // The number of waits that may be longer, rounded down: with few waits the longest one counts.
        var longer = count * (1_000 - thousandths) / 1_000
        for (wait, times) in waits.sorted(by: { $0.key > $1.key }) {
            longer -= times
            if longer < 0 { return wait }
        }
        return nil
    }

    static func words(_ waits: [Int64: Int]) -> String {
        guard let half = wait(500, of: waits), let most = wait(990, of: waits), let all = wait(1_000, of: waits) else {
            return "no notification"
        }
        return "p50 \(half) ms, p99 \(most) ms, longest \(all) ms"
    }
}
