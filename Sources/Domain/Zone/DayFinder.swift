// Finds the days of many instants that are close to each other.

/// Finds the same days as `Zone.dayNumber(of:)`, and remembers the last one: neighbouring instants are on one day, or at
/// least between the same two changes of the clock.
public struct DayFinder: Sendable {
    private let zone: Zone
    // The last instant and its day.
    private var instant: Int64?
    private var day: Int32 = 0
    /// The offset holds from here up to, but not including, there.
    private var from: Int64 = .max
    private var to: Int64 = .min
    private var offset: Int64 = 0

    public init(_ zone: Zone) { self.zone = zone }

    public mutating func number(of instant: Int64) -> Int32 {
        if instant == self.instant { return day }
        self.instant = instant
        let inside = min(max(instant, Zone.earliest), Zone.latest)
        if inside < from || inside >= to { (from, to, offset) = zone.offsets.period(at: inside) }
        day = Zone.dayNumber(ofLocal: inside + offset)
        return day
    }
}
