// A value that one thread leaves for another.

import Synchronization

final class Box<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)

    func put(_ new: Value) { value.withLock { $0 = new } }

    /// Traps if the box is empty: callers take only after the work that fills it has succeeded.
    func take() -> Value { value.withLock { $0.take()! } }
}
