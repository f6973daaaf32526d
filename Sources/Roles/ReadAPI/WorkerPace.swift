// The progress of the workers whose records are used in answers.

internal import Contract
internal import Synchronization

/// The time up to which the notifications of each partition are in the answers. The watch of the workers' groups
/// reports it, the follower of their records confirms it, and answers read it.
///
/// A time is in milliseconds since 1970: every notification received before it has been processed. It counts only after
/// the copy has read everything that the topics contained when it was reported, because the worker's output may not
/// have been read yet.
final class WorkerPace: Sendable {
    private struct Sight {
        var moment: Int64
        /// When it was reported.
        var at: Duration
    }

    private struct Course {
        /// The first report that the copy has not reached, and the newest.
        var waiting: Sight?
        var newest: Sight?
        var moment: Int64?
    }

    private struct State {
        /// By worker, then by partition.
        var courses: [[Course]]
        /// By worker: its group has committed positions.
        var begun: [Bool]
        /// Why the groups cannot be read; nil while they can.
        var fault: String?
    }

    private let state: Mutex<State>

    init(partitions: Int) {
        let courses = Array(repeating: Course(), count: partitions)
        let workers = WorkerName.allCases.count
        state = Mutex(
            State(
                courses: Array(repeating: courses, count: workers), begun: Array(repeating: false, count: workers)))
    }

    // MARK: For who watches

    /// - Parameter elapsed: by this time the log showed readers everything that the worker had written.
    func see(_ worker: WorkerName, _ partition: Int, moment: Int64, at elapsed: Duration) {
        state.withLock { state in
            let sight = Sight(moment: moment, at: elapsed)
            if state.courses[worker.place][partition].waiting == nil {
                state.courses[worker.place][partition].waiting = sight
            } else {
                state.courses[worker.place][partition].newest = sight
            }
        }
    }

    func see(_ worker: WorkerName, hasBegun: Bool) { state.withLock { $0.begun[worker.place] = hasBegun } }

    var fault: String? {
        get { state.withLock { $0.fault } }
        set { state.withLock { $0.fault = newValue } }
    }

    // MARK: For who follows

    /// The copy of the partition has read everything that the topics contained at that time.
    func confirm(_ partition: Int, completeAsOf elapsed: Duration) {
        state.withLock { state in
            for worker in state.courses.indices {
                while let waiting = state.courses[worker][partition].waiting, waiting.at <= elapsed {
                    state.courses[worker][partition].moment = waiting.moment
                    state.courses[worker][partition].waiting = state.courses[worker][partition].newest.take()
                }
            }
        }
    }

    // MARK: For who answers

    /// Age in milliseconds of the oldest notification that may be missing in the answers; nil: it is not known yet.
    func behind(_ worker: WorkerName, _ partition: Int32, at now: Int64) -> Int64? {
        state.withLock { state in
            state.courses[worker.place][Int(partition)].moment.map { max(0, now - $0) }
        }
    }

    /// The value of the partition that is farthest behind; nil: it is unknown for at least one partition.
    func farthestBehind(_ worker: WorkerName, at now: Int64) -> Int64? {
        state.withLock { state in
            let moments = state.courses[worker.place].map(\.moment)
            guard !moments.contains(nil) else { return nil }
            return moments.compactMap { $0 }.min().map { max(0, now - $0) }
        }
    }

    /// Its group has committed positions at some time.
    func hasBegun(_ worker: WorkerName) -> Bool { state.withLock { $0.begun[worker.place] } }
}

extension WorkerName {
    /// Index in lists by worker.
    fileprivate var place: Int {
        switch self {
        case .entitlements: 0
        case .churn: 1
        case .consumption: 2
        }
    }
}
