// What the bodies of all requests may take together.

import CPlatform
import Synchronization

/// Bytes for bodies. Each connection by itself is bounded, and many of them are too much all the same.
final class BodyBudget: Sendable {
    /// Below it nobody would see a difference.
    private static let leastBurst = 8 << 20

    private let limit: Int
    private let used = Atomic(0)
    /// The most since memory was given back.
    private let peak = Atomic(0)

    init(bytes: Int) {
        limit = bytes
    }

    var usedBytes: Int { used.load(ordering: .relaxed) }

    /// false: there is no room. Large bodies are taken up to half of the budget only, so that they cannot keep out those of
    /// the usual size.
    func take(_ bytes: Int, isLarge: Bool) -> Bool {
        let now = used.add(bytes, ordering: .relaxed).newValue
        guard now <= (isLarge ? limit / 2 : limit) else {
            used.subtract(bytes, ordering: .relaxed)
            return false
        }
        _ = peak.max(now, ordering: .relaxed)
        return true
    }

    func giveBack(_ bytes: Int) {
        used.subtract(bytes, ordering: .relaxed)
    }

    /// The allocator keeps what was freed for ever, unless it is told that a burst is over.
    func trimAfterBurst() {
        if isBurstOver() { perennial_trim_memory() }
    }

    /// true once for each burst.
    func isBurstOver() -> Bool {
        let (now, most) = (usedBytes, peak.load(ordering: .relaxed))
        guard most >= Self.leastBurst, now <= most / 4 else { return false }
        peak.store(now, ordering: .relaxed)
        return true
    }
}
