// How fast one app's answers may go.

/// Spacing and pauses, on the elapsed clock.
struct AppPace {
    /// Below what is allowed, so that catching up stays within it.
    private static let share = 0.9
    /// For so long what was not used up may be caught up with: steps are some tens of milliseconds apart.
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
