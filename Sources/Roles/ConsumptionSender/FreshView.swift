// Whether the knowledge about a partition is recent enough to act on.

internal import Log

/// Consent may have been withdrawn or the case closed a moment ago. So an attempt needs a look at the log that began
/// after the attempt was due. A look reads the ends of the worker's inputs, waits until the worker has processed
/// everything before them, and reads what the worker wrote about it.
struct FreshView {
    /// How old the end of a look may be when an attempt begins; with a queue of answers there is a new look each time.
    /// It counts from the end, so that a worker that is seconds behind delays answers but does not stop them.
    static let lifetime: Duration = .seconds(1)

    private struct Look {
        let asked: Duration
        let ends: [NextOffset]
        /// When the worker had processed everything before the ends.
        var passedAt: Duration?
    }

    private var look: Look?
    /// The time up to which everything is known; nil: it is not known.
    private(set) var asOf: Duration?
    /// When the look for `asOf` ended.
    private var doneAt: Duration = .zero

    var isLooking: Bool { look != nil }
    /// The worker has reached the ends; its output must still be read.
    var waitsForOutputs: Bool { look?.passedAt != nil }

    func isGood(for readySince: Duration, at now: Duration) -> Bool {
        guard let asOf else { return false }
        return asOf >= readySince && now - doneAt <= Self.lifetime
    }

    /// - Parameters:
    ///   - asked: the time before the ends were requested.
    ///   - ends: the ends of the worker's inputs, in their order.
    mutating func begin(asked: Duration, ends: [NextOffset]) { look = Look(asked: asked, ends: ends) }

    /// - Parameters:
    ///   - positions: the positions up to which the worker has processed its inputs and committed.
    ///   - readAsOf: when the ends of its output, which has been read since, were requested.
    /// - Returns: whether the worker has just reached the ends.
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

    /// The partition belonged to another process, or may have: nothing is known.
    mutating func reset() { self = FreshView() }
}
