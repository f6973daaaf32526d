// Arithmetic with money and time that anybody may have signed: nothing here traps.

public let millisecondsPerDay: Int64 = 86_400_000

/// Stays within the range of 64 bits: a value at its end must not stop a worker.
public func adding(_ left: Int64, _ right: Int64) -> Int64 {
    let (sum, overflows) = left.addingReportingOverflow(right)
    return overflows ? (right < 0 ? .min : .max) : sum
}

/// The same time of day, one period later. If the month lacks the day, its last day is used.
public func adding(_ period: Period, to instant: Int64) -> Int64 {
    // A million years in both directions: beyond that the arithmetic of years would exceed 64 bits.
    let limit: Int64 = 366_000_000 * millisecondsPerDay
    guard (-limit...limit).contains(instant) else { return instant }
    let day = instant.floorDivided(by: millisecondsPerDay)
    let timeOfDay = instant - day * millisecondsPerDay
    let later = CivilDay(number: day).adding(months: period.years * 12 + period.months)
    return (later.number + Int64(period.weeks * 7 + period.days)) * millisecondsPerDay + timeOfDay
}

/// value x factor / divisor, rounded half to even, once. Stays within the range of 64 bits.
public func rounded(_ value: Int64, times factor: Int64, over divisor: Int64) -> Int64 {
    guard divisor > 0 else { return 0 }
    let product = Int128(value) * Int128(factor)
    let divisor = Int128(divisor)
    var quotient = product / divisor
    let rest = product - quotient * divisor
    // Rounded towards zero so far.
    let twice = rest.magnitude * 2
    if twice > divisor.magnitude || twice == divisor.magnitude && quotient % 2 != 0 {
        quotient += product < 0 ? -1 : 1
    }
    return Int64(clamping: quotient)
}
