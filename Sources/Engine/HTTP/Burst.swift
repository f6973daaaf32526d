// Notices when most of a large amount of memory has been freed.

import Synchronization

/// The allocator does not return freed memory to the system by itself. This type notices when a burst is over and
/// memory can be returned.
final class Burst: Sendable {
    private let least: Int
    /// The maximum since the end of the last burst.
    private let peak = Atomic(0)

    /// - Parameter least: the smallest peak that is worth returning memory for.
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
