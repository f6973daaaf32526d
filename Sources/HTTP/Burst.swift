// When much was taken and nearly all of it has been given back.

import Synchronization

/// The allocator does not return freed memory to the system by itself. This type tells when a burst is over and memory can be
/// returned.
final class Burst: Sendable {
    private let least: Int
    /// The most since a burst was over.
    private let peak = Atomic(0)

    /// - Parameter least: what would be worth the trouble.
    init(least: Int) {
        self.least = least
    }

    func note(_ used: Int) { _ = peak.max(used, ordering: .relaxed) }

    /// true once for each burst.
    func isOver(now used: Int) -> Bool {
        let most = peak.load(ordering: .relaxed)
        guard most >= least, used <= most / 4 else { return false }
        peak.store(used, ordering: .relaxed)
        return true
    }
}
