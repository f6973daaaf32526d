// From many threads to a few.

/// A bounded queue in front of threads that wait for work.
///
/// Posting takes a lock for a few nanoseconds, and wakes a reader only when one sleeps.
public final class Mailbox<Element: Sendable>: @unchecked Sendable {
    private let monitor = Monitor()
    private let capacity: Int
    // Unchecked: used under the lock of `monitor` only.
    private var usual = Line<Element>()
    private var urgent = Line<Element>()
    private var sleepers = 0
    private var isClosed = false

    public init(capacity: Int) {
        self.capacity = capacity
    }

    /// false: it is full or closed, and `element` was not taken. Never blocks for long.
    /// - Parameter isUrgent: it is taken before all that are not, and has room of its own, as much again: a crowd of others
    ///   cannot keep it out.
    public func post(_ element: Element, isUrgent: Bool = false) -> Bool {
        monitor.withLock {
            guard (isUrgent ? urgent.count : usual.count) < capacity, !isClosed else { return false }
            if isUrgent {
                urgent.append(element)
            } else {
                usual.append(element)
            }
            if sleepers > 0 { monitor.callOne() }
            return true
        }
    }

    /// Nothing can be posted any more. What was posted before can still be taken.
    public func close() {
        monitor.withLock {
            isClosed = true
            monitor.callAll()
        }
    }

    /// Everything that was posted, in order, the urgent first; waits at most `duration` for the first. May return early with
    /// nothing.
    public func take(waiting duration: Duration) -> [Element] {
        monitor.withLock {
            waitForOne(duration)
            return urgent.takeAll() + usual.takeAll()
        }
    }

    /// The oldest of the urgent, or of all; waits at most `duration` for one. May return early with nothing.
    public func takeOne(waiting duration: Duration) -> Element? {
        monitor.withLock {
            waitForOne(duration)
            return urgent.takeOne() ?? usual.takeOne()
        }
    }

    private func waitForOne(_ duration: Duration) {
        guard urgent.count == 0, usual.count == 0, !isClosed, duration > .zero else { return }
        sleepers += 1
        monitor.wait(until: Deadline(after: duration))
        sleepers -= 1
    }
}

/// First in, first out.
private struct Line<Element> {
    private var elements: [Element?] = []
    /// Where the oldest stands: what is before it has been taken.
    private var first = 0

    var count: Int { elements.count - first }

    mutating func append(_ element: Element) { elements.append(element) }

    mutating func takeAll() -> [Element] {
        defer {
            elements = []
            first = 0
        }
        return elements[first...].compactMap { $0 }
    }

    mutating func takeOne() -> Element? {
        guard first < elements.count else { return nil }
        defer {
            elements[first] = nil
            first += 1
            // Seldom enough to cost nothing.
            if first == elements.count || first > 1024 {
                elements.removeFirst(first)
                first = 0
            }
        }
        return elements[first]
    }
}
