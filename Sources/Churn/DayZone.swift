// In which zone days begin.

/// Days by their number since 1970.
public struct DayZone: Sendable {
    /// Stands for the zone and the version of its data.
    public let fingerprint: String
    /// The day that an instant belongs to.
    public let day: @Sendable (Int64) -> Int64
    /// The first instant of a day.
    public let start: @Sendable (Int64) -> Int64

    public init(
        fingerprint: String, day: @escaping @Sendable (Int64) -> Int64, start: @escaping @Sendable (Int64) -> Int64
    ) {
        self.fingerprint = fingerprint
        self.day = day
        self.start = start
    }
}
