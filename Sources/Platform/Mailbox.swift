// From many threads to one.

import Glibc

/// A bounded queue in front of one thread that also has other things to wait for.
///
/// Posting takes a lock for a few nanoseconds, and wakes the reader only when it sleeps.
public final class Mailbox<Element: Sendable>: @unchecked Sendable {
    // Unchecked: the pointers never change, and what they point to and the elements are used under `mutex` only.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private let capacity: Int
    private var elements: [Element] = []
    private var readerSleeps = false
    private var isClosed = false

    public init(capacity: Int) {
        self.capacity = capacity
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        condition = .allocate(capacity: 1)
        condition.initialize(to: pthread_cond_t())
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        defer { pthread_condattr_destroy(&attributes) }
        // The wall clock may be set back while the reader waits.
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        condition.deallocate()
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// false: it is full or closed, and `element` was not taken. Never blocks for long.
    public func post(_ element: Element) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard elements.count < capacity, !isClosed else { return false }
        elements.append(element)
        if readerSleeps { pthread_cond_signal(condition) }
        return true
    }

    /// Nothing can be posted any more. What was posted before can still be taken.
    public func close() {
        pthread_mutex_lock(mutex)
        isClosed = true
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
    }

    /// Everything that was posted, in order; waits at most `duration` for the first. May return early with nothing.
    public func take(waiting duration: Duration) -> [Element] {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        if elements.isEmpty, !isClosed, duration > .zero {
            var end = timespec()
            clock_gettime(CLOCK_MONOTONIC, &end)
            let nanoseconds = min(duration, .seconds(3600)).wholeMilliseconds * 1_000_000 + Int64(end.tv_nsec)
            end.tv_sec += Int(nanoseconds / 1_000_000_000)
            end.tv_nsec = Int(nanoseconds % 1_000_000_000)
            readerSleeps = true
            pthread_cond_timedwait(condition, mutex, &end)
            readerSleeps = false
        }
        defer { elements = [] }
        return elements
    }
}
