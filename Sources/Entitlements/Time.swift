// Milliseconds since 1970.

internal import Contract

let millisecondsPerDay: Int64 = 86_400_000

/// Dates are what somebody signed: one at the end of time must not stop a worker.
func adding(_ left: Int64, _ right: Int64) -> Int64 {
    let (sum, overflows) = left.addingReportingOverflow(right)
    return overflows ? (right < 0 ? .min : .max) : sum
}

/// The same time of the day, a period later. Of a day that the month does not have its last one is meant.
func adding(_ period: Period, to instant: Int64) -> Int64 {
    // A million years either way: beyond that the arithmetic of years would leave 64 bits.
    let limit: Int64 = 366_000_000 * millisecondsPerDay
    guard (-limit...limit).contains(instant) else { return instant }
    let day = instant.floorDivided(by: millisecondsPerDay)
    let timeOfDay = instant - day * millisecondsPerDay
    let later = CivilDay(number: day).adding(months: period.years * 12 + period.months)
    return (later.number + Int64(period.weeks * 7 + period.days)) * millisecondsPerDay + timeOfDay
}
