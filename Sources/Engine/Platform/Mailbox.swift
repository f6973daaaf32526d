// A queue from many threads to a few.

/// A bounded queue for threads that wait for work.
///
/// Posting takes a lock for a few nanoseconds, and wakes a reader only if one sleeps.
public final class Mailbox<Element: Sendable>: @unchecked Sendable {
    private let monitor = Monitor()
    private let capacity: Int
    // Unchecked: used only under the lock of `monitor`.
    private var usual = Line<Element>()
    private var urgent = Line<Element>()
    private var sleepers = 0
    private var isClosed = false

    public init(capacity: Int) {
        self.capacity = capacity
    }

    /// false: the mailbox is full or closed, and `element` was not added. Never blocks for long.
    /// - Parameter isUrgent: the element is taken before all elements that are not urgent, and has separate room of the
    ///   same size, so that many others cannot keep it out.
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

    /// Nothing can be posted any more. Earlier elements can still be taken.
    public func close() {
        monitor.withLock {
            isClosed = true
            monitor.callAll()
        }
    }

    /// All posted elements in order, urgent ones first; waits at most `duration` for the first. May return early
    /// without elements.
    public func take(waiting duration: Duration) -> [Element] {
        monitor.withLock {
            waitForOne(duration)
            return urgent.takeAll() + usual.takeAll()
        }
    }

    /// The oldest urgent element, or the oldest of all; waits at most `duration` for one. May return early with nil.
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
    /// Index of the oldest element: those before it have been taken.
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
            // Rare enough to cost nothing.
            if first == elements.count || first > 1024 {
                elements.removeFirst(first)
                first = 0
            }
        }
        return elements[first]
    }
}
