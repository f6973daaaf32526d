// Waiting for something on a thread of one's own.

import Glibc

/// A door that opens once and stays open. Threads wait in front of it with a deadline.
///
/// For threads that may block; a task would hold a thread of the shared pool while it waits.
public final class Latch: @unchecked Sendable {
    // Unchecked: the pointers never change, and what they point to is used under `mutex` only.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private var opened = false

    public init() {
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        condition = .allocate(capacity: 1)
        condition.initialize(to: pthread_cond_t())
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        defer { pthread_condattr_destroy(&attributes) }
        // The wall clock may be set back while somebody waits.
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        condition.deallocate()
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    public var isOpen: Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return opened
    }

    /// Lets everybody through, now and later. A second call changes nothing.
    public func open() {
        pthread_mutex_lock(mutex)
        opened = true
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
    }

    /// Blocks until the latch is open. false: the deadline passed first.
    @discardableResult
    public func wait(until deadline: Deadline) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while !opened {
            let left = deadline.remaining
            guard left > .zero else { return false }
            var end = timespec()
            clock_gettime(CLOCK_MONOTONIC, &end)
            // An hour at most in one go, so that the sum below cannot overflow; the loop goes on until the deadline.
            let nanoseconds = min(left, .seconds(3600)).wholeNanoseconds + Int64(end.tv_nsec)
            end.tv_sec += Int(nanoseconds / 1_000_000_000)
            end.tv_nsec = Int(nanoseconds % 1_000_000_000)
            pthread_cond_timedwait(condition, mutex, &end)
        }
        return true
    }

    /// Blocks until the latch is open, however long that takes.
    public func wait() { while !wait(for: .seconds(3600)) {} }

    @discardableResult
    public func wait(for duration: Duration) -> Bool { wait(until: Deadline(after: duration)) }
}

extension Duration {
    fileprivate var wholeNanoseconds: Int64 {
        components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
    }
}
