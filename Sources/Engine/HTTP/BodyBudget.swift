// The memory limit for the bodies of all requests together.

import Synchronization

/// Counts the bytes of all bodies. Each connection has its own limit, but many connections together could still need
/// too much.
final class BodyBudget: Sendable {
    /// Returning less memory than this to the system makes no visible difference.
    private static let leastBurst = 8 << 20

    private let limit: Int
    private let used = Atomic(0)
    private let burst = Burst(least: leastBurst)

    init(bytes: Int) {
        limit = bytes
    }

    var usedBytes: Int { used.load(ordering: .relaxed) }

    /// false: there is no room. Large bodies may use only half of the budget, so that they cannot keep out bodies of
    /// the usual size. A quarter is kept for preferred clients.
    func take(_ bytes: Int, isLarge: Bool, isPreferred: Bool) -> Bool {
        let now = used.add(bytes, ordering: .relaxed).newValue
        guard now <= bound(isLarge, isPreferred) else {
            used.subtract(bytes, ordering: .relaxed)
            return false
        }
        burst.note(now)
        return true
    }

    /// For a body that was only announced: no memory is reserved for it.
    func hasRoom(for bytes: Int, isLarge: Bool, isPreferred: Bool) -> Bool {
        usedBytes <= bound(isLarge, isPreferred) - bytes
    }

    private func bound(_ isLarge: Bool, _ isPreferred: Bool) -> Int {
        isPreferred ? limit : isLarge ? limit / 2 : limit / 4 * 3
    }

    func giveBack(_ bytes: Int) {
        used.subtract(bytes, ordering: .relaxed)
    }

    /// true once for each burst.
    func isBurstOver() -> Bool { burst.isOver(now: usedBytes) }
}
