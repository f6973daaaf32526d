// How much of what was refused is kept.

import Synchronization

/// A bound on bytes per hour. Hours are those of the clock: one number a process, no list of what came when.
final class RejectedRoom: Sendable {
    private struct Hour {
        var number: Int64 = 0
        var usedBytes = 0
    }

    private let limitBytes: Int
    private let hour = Mutex(Hour())

    init(bytesPerHour: Int) {
        limitBytes = bytesPerHour
    }

    /// false: there is no room for them in this hour.
    func take(_ bytes: Int, now: Int64) -> Bool {
        hour.withLock { hour in
            let number = now / 3_600_000
            if hour.number != number { hour = Hour(number: number) }
            guard bytes <= limitBytes - hour.usedBytes else { return false }
            hour.usedBytes += bytes
            return true
        }
    }

    /// What was taken and then not written.
    func giveBack(_ bytes: Int) {
        hour.withLock { $0.usedBytes = max(0, $0.usedBytes - bytes) }
    }
}
