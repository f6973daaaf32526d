// A lock with which threads wait for each other.

import Glibc

/// A lock, and a condition to wait for under it. It uses a clock that is never set back.
///
/// For threads that may block; a task would occupy a thread of the shared pool while it waits.
public final class Monitor: @unchecked Sendable {
    // Unchecked: the pointers never change, and the objects behind them are safe for many threads.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    public init() {
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        condition = .allocate(capacity: 1)
        condition.initialize(to: pthread_cond_t())
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        defer { pthread_condattr_destroy(&attributes) }
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        condition.deallocate()
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    public func withLock<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }

    /// Only under the lock, which is released meanwhile. Returns after a wake-up call, at `deadline`, and sometimes
    /// without a reason.
    public func wait(until deadline: Deadline) {
        let left = deadline.remaining
        guard left > .zero else { return }
        var end = timespec()
        clock_gettime(CLOCK_MONOTONIC, &end)
        // At most an hour, so that the sum below cannot overflow.
        let nanoseconds = min(left, .seconds(3600)).wholeNanoseconds + Int64(end.tv_nsec)
        end.tv_sec += Int(nanoseconds / 1_000_000_000)
        end.tv_nsec = Int(nanoseconds % 1_000_000_000)
        pthread_cond_timedwait(condition, mutex, &end)
    }

    public func callOne() { pthread_cond_signal(condition) }
    public func callAll() { pthread_cond_broadcast(condition) }
}

extension Duration {
    fileprivate var wholeNanoseconds: Int64 {
        components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
    }
}
