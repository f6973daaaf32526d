// From many threads to a few.

/// A bounded queue in front of threads that wait for work.
///
/// Posting takes a lock for a few nanoseconds, and wakes a reader only when one sleeps.
public final class Mailbox<Element: Sendable>: @unchecked Sendable {
    private let monitor = Monitor()
    private let capacity: Int
    // Unchecked: used under the lock of `monitor` only.
    private var elements: [Element?] = []
    /// Where the oldest stands: what is before it has been taken.
    private var first = 0
    private var sleepers = 0
    private var isClosed = false

    public init(capacity: Int) {
        self.capacity = capacity
    }

    /// false: it is full or closed, and `element` was not taken. Never blocks for long.
    public func post(_ element: Element) -> Bool {
        monitor.withLock {
            guard elements.count - first < capacity, !isClosed else { return false }
            elements.append(element)
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

    /// Everything that was posted, in order; waits at most `duration` for the first. May return early with nothing.
    public func take(waiting duration: Duration) -> [Element] {
        monitor.withLock {
            waitForOne(duration)
            defer {
                elements = []
                first = 0
            }
            return elements[first...].compactMap { $0 }
        }
    }

    /// The oldest; waits at most `duration` for one. May return early with nothing.
    public func takeOne(waiting duration: Duration) -> Element? {
        monitor.withLock {
            waitForOne(duration)
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

    private func waitForOne(_ duration: Duration) {
        guard first == elements.count, !isClosed, duration > .zero else { return }
        sleepers += 1
        monitor.wait(until: Deadline(after: duration))
        sleepers -= 1
    }
}
