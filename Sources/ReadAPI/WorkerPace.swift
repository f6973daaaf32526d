// How far the workers are whose records are answered with.

internal import Contract
internal import Synchronization

/// Up to which moment the notifications of each partition are in the answers. Told by whoever watches the workers' groups,
/// confirmed by whoever follows their records, asked by whoever answers.
///
/// A moment is in milliseconds since 1970: everything that was taken before it has been dealt with. It counts only when the copy has
/// everything that the topics had when it was learnt: what the worker has dealt with may not have been read yet.
final class WorkerPace: Sendable {
    private struct Sight {
        var moment: Int64
        /// When it was learnt.
        var at: Duration
    }

    private struct Course {
        /// The first that the copy has not come to, and the newest.
        var waiting: Sight?
        var newest: Sight?
        var moment: Int64?
    }

    private struct State {
        /// By worker, then by partition.
        var courses: [[Course]]
        /// By worker: it has positions.
        var begun: [Bool]
        /// Why the groups cannot be looked at; nil while they can.
        var fault: String?
    }

    private let state: Mutex<State>

    init(partitions: Int) {
        let courses = Array(repeating: Course(), count: partitions)
        let workers = Worker.allCases.count
        state = Mutex(
            State(
                courses: Array(repeating: courses, count: workers), begun: Array(repeating: false, count: workers)))
    }

    // MARK: For who watches

    /// - Parameter elapsed: by then the log showed readers all that the worker had written.
    func see(_ worker: Worker, _ partition: Int, moment: Int64, at elapsed: Duration) {
        state.withLock { state in
            let sight = Sight(moment: moment, at: elapsed)
            if state.courses[worker.place][partition].waiting == nil {
                state.courses[worker.place][partition].waiting = sight
            } else {
                state.courses[worker.place][partition].newest = sight
            }
        }
    }

    func see(_ worker: Worker, hasBegun: Bool) { state.withLock { $0.begun[worker.place] = hasBegun } }

    var fault: String? {
        get { state.withLock { $0.fault } }
        set { state.withLock { $0.fault = newValue } }
    }

    // MARK: For who follows

    /// The copy of the partition has everything that the topics had then.
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

    /// Milliseconds of notifications that are not in the answers; nil: nobody knows yet.
    func behind(_ worker: Worker, _ partition: Int32, at now: Int64) -> Int64? {
        state.withLock { state in
            state.courses[worker.place][Int(partition)].moment.map { max(0, now - $0) }
        }
    }

    /// Of the partition that is farthest behind; nil: of one at least it is not known yet.
    func farthestBehind(_ worker: Worker, at now: Int64) -> Int64? {
        state.withLock { state in
            let moments = state.courses[worker.place].map(\.moment)
            guard !moments.contains(nil) else { return nil }
            return moments.compactMap { $0 }.min().map { max(0, now - $0) }
        }
    }

    /// Its group has committed something, some time.
    func hasBegun(_ worker: Worker) -> Bool { state.withLock { $0.begun[worker.place] } }
}

extension Worker {
    /// In lists by worker.
    fileprivate var place: Int {
        switch self {
        case .entitlements: 0
        case .churn: 1
        case .consumption: 2
        }
    }
}
