// What the bodies of all requests may take together.

import Synchronization

/// Bytes for bodies. Each connection by itself is bounded, and many of them are too much all the same.
final class BodyBudget: Sendable {
    /// Below it nobody would see a difference.
    private static let leastBurst = 8 << 20

    private let limit: Int
    private let used = Atomic(0)
    private let burst = Burst(least: leastBurst)

    init(bytes: Int) {
        limit = bytes
    }

    var usedBytes: Int { used.load(ordering: .relaxed) }

    /// false: there is no room. Large bodies are taken up to half of the budget only, so that they cannot keep out those of
    /// the usual size; and a quarter is for those who are preferred.
    func take(_ bytes: Int, isLarge: Bool, isPreferred: Bool) -> Bool {
        let now = used.add(bytes, ordering: .relaxed).newValue
        guard now <= bound(isLarge, isPreferred) else {
            used.subtract(bytes, ordering: .relaxed)
            return false
        }
        burst.note(now)
        return true
    }

    /// Of a body that was only announced: nothing is set aside for it.
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
