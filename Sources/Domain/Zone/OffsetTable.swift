// All clock changes of a zone as one sorted table.

internal import Contract

/// Offsets for the years 1 to 9999.
///
/// After the last change in the file, a rule may apply forever. The calendar, including weekdays, repeats every 400
/// years. So the table holds the rule's changes for 400 years, and later instants are looked up a multiple of 400 years
/// earlier.
struct OffsetTable: Sendable {
    /// In milliseconds since 1970; the first is below all instants. Each offset differs from the one before it.
    private var starts: [Int64] = [.min]
    /// In milliseconds.
    private var offsets: [Int64]
    /// The table repeats from here on.
    private var limit: Int64 = .max

    private static let era: Int64 = 146_097 * millisecondsPerDay
    // Offsets from UTC are less than 26 hours, so changes outside these limits affect no valid day.
    private static let earliest = (CivilDay.first.number - 2) * secondsPerDay
    private static let latest = (CivilDay.last.number + 3) * secondsPerDay

    /// `before` and the changes' offsets are in seconds; the changes are sorted by time.
    init(before: Int64, changes: [OffsetChange], rule: ZoneRule?) {
        offsets = [before * 1000]
        for change in changes where change.second <= Self.latest { append(change) }
        guard let rule else { return }
        let from = max(changes.last?.second ?? .min, Self.earliest)
        guard from <= Self.latest else { return }
        append(rule, from: from)
    }

    private mutating func append(_ rule: ZoneRule, from: Int64) {
        let year = CivilDay(number: from.floorDivided(by: secondsPerDay)).year
        // The time of a rule may lie up to a week outside its year. So the range begins two years early, and it
        // continues after `limit`.
        let changes = rule.changes(ofYears: (year - 2)...(year + 403))
        let current = changes.last { $0.second <= from }?.offset ?? rule.offset
        append(OffsetChange(second: from, offset: current))
        for change in changes where change.second > from { append(change) }
        guard rule.summer != nil else { return }
        // From the second year on, all changes come from the rule.
        limit = CivilDay(year: year + 402, month: 1, day: 1).number * millisecondsPerDay
    }

    private mutating func append(_ change: OffsetChange) {
        let start = max(change.second, Self.earliest) * 1000
        if starts.last == start, starts.count > 1 {
            starts.removeLast()
            offsets.removeLast()
        }
        guard offsets.last != change.offset * 1000 else { return }
        starts.append(start)
        offsets.append(change.offset * 1000)
    }

    /// The offset from UTC; positive when local clocks are ahead.
    func milliseconds(at instant: Int64) -> Int64 { offsets[index(at: instant - shift(of: instant))] }

    /// The offset at this instant, and an interval around it in which it is the same: up to, but not including, `to`.
    func period(at instant: Int64) -> (from: Int64, to: Int64, offset: Int64) {
        let shift = shift(of: instant)
        let index = index(at: instant - shift)
        var from = index == 0 ? .min : starts[index] + shift
        var to = index + 1 < starts.count ? starts[index + 1] + shift : .max
        if shift > 0 {
            from = max(from, limit + shift - Self.era)
            to = min(to, limit + shift)
        } else {
            to = min(to, limit)
        }
        return (from, to, offsets[index])
    }

    /// The earliest instant at which local clocks show this time or a later one, in milliseconds since 1970.
    func firstInstant(reading time: Int64) -> Int64 {
        // No clock is further ahead, so no clock showed this time earlier.
        let start = time - 26 * 3_600_000
        let shift = shift(of: start)
        let time = time - shift
        var index = index(at: start - shift)
        while true {
            let found = max(starts[index], time - offsets[index])
            let next = index + 1
            guard next < starts.count, found >= starts[next] else { return found + shift }
            index = next
        }
    }

    private func shift(of instant: Int64) -> Int64 {
        instant < limit ? 0 : ((instant - limit) / Self.era + 1) * Self.era
    }

    private func index(at instant: Int64) -> Int {
        var low = 0
        var high = starts.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if starts[middle] <= instant { low = middle } else { high = middle }
        }
        return low
    }
}
