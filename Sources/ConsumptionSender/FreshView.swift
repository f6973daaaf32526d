// Whether what is known of a partition is new enough to act on it.

internal import Log

/// Consent may have been withdrawn, and the case may be closed, a moment ago: an attempt rests on a look at the log that began
/// after it was due. A look is: the ends of the worker's inputs are asked for, the worker has dealt with everything before them, and
/// what it wrote of that is read.
struct FreshView {
    /// So long the end of a look may be ago when an attempt begins: under a queue of answers there is a new look each time. It counts
    /// from the end, so that a worker that is seconds behind delays answers and does not stop them.
    static let lifetime: Duration = .seconds(1)

    private struct Look {
        let asked: Duration
        let ends: [NextOffset]
        /// When the worker had dealt with everything before the ends.
        var passedAt: Duration?
    }

    private var look: Look?
    /// As of when everything is known; nil: of no moment.
    private(set) var asOf: Duration?
    /// When the look that tells it ended.
    private var doneAt: Duration = .zero

    var isLooking: Bool { look != nil }
    /// The worker is there: what it wrote is to be read.
    var waitsForOutputs: Bool { look?.passedAt != nil }

    func isGood(for readySince: Duration, at now: Duration) -> Bool {
        guard let asOf else { return false }
        return asOf >= readySince && now - doneAt <= Self.lifetime
    }

    /// - Parameters:
    ///   - asked: before the question.
    ///   - ends: of the worker's inputs, in their order.
    mutating func begin(asked: Duration, ends: [NextOffset]) { look = Look(asked: asked, ends: ends) }

    /// - Parameters:
    ///   - positions: up to where the worker has dealt with its inputs, and committed.
    ///   - readAsOf: when the ends of its output were asked for that were read since.
    /// - Returns: whether the worker has come to the ends just now.
    mutating func advance(positions: [NextOffset], readAsOf: Duration?, at now: Duration) -> Bool {
        guard let current = look else { return false }
        guard let passedAt = current.passedAt else {
            guard zip(positions, current.ends).allSatisfy({ $0 >= $1 }) else { return false }
            look?.passedAt = now
            return true
        }
        if let readAsOf, readAsOf >= passedAt {
            asOf = current.asked
            doneAt = now
            look = nil
        }
        return false
    }

    /// The partition was another's, or may have been: nothing is known.
    mutating func reset() { self = FreshView() }
}
