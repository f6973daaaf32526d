// A value that one thread leaves for another.

import Synchronization

final class Box<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)

    func put(_ new: Value) { value.withLock { $0 = new } }

    /// Traps when nothing was put: a caller takes only after the work that puts has succeeded.
    func take() -> Value { value.withLock { $0.take()! } }
}
