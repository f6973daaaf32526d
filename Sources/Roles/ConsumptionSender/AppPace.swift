// Limits the rate at which one app's answers are sent.

/// Spacing and pauses, measured on the elapsed clock.
struct AppPace {
    /// Below the allowed rate, so that catching up does not exceed it.
    private static let share = 0.9
    /// Unused time within this window may be caught up: steps are some tens of milliseconds apart.
    private static let window: Duration = .milliseconds(100)

    private var next: Duration = .zero
    private var pausedUntil: Duration = .zero

    /// - Parameter perSecond: this process's share of Apple's limit.
    mutating func take(at now: Duration, perSecond: Double) -> Bool {
        guard perSecond > 0, now >= pausedUntil else { return false }
        let from = max(next, now - Self.window)
        guard from <= now else { return false }
        next = from + .seconds(1 / (perSecond * Self.share))
        return true
    }

    mutating func pause(until instant: Duration) { pausedUntil = max(pausedUntil, instant) }
}
