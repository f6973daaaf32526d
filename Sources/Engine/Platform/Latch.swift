// A latch for threads.

/// A latch that opens once and stays open. Threads wait for it with a deadline.
public final class Latch: @unchecked Sendable {
    private let monitor = Monitor()
    // Unchecked: used only under the lock of `monitor`.
    private var opened = false

    public init() {}

    public var isOpen: Bool { monitor.withLock { opened } }

    /// Wakes all waiting threads; later waits return at once. A second call has no effect.
    public func open() {
        monitor.withLock {
            opened = true
            monitor.callAll()
        }
    }

    /// Blocks until the latch is open. false: the deadline passed first.
    @discardableResult
    public func wait(until deadline: Deadline) -> Bool {
        monitor.withLock {
            while !opened {
                guard !deadline.hasPassed else { return false }
                monitor.wait(until: deadline)
            }
            return true
        }
    }

    /// Blocks until the latch is open, however long that takes.
    public func wait() { while !wait(for: .seconds(3600)) {} }

    @discardableResult
    public func wait(for duration: Duration) -> Bool { wait(until: Deadline(after: duration)) }
}
