// Money and time that anybody may have signed: nothing here traps.

public let millisecondsPerDay: Int64 = 86_400_000

/// At the ends of time it stays there: one at the end of time must not stop a worker.
public func adding(_ left: Int64, _ right: Int64) -> Int64 {
    let (sum, overflows) = left.addingReportingOverflow(right)
    return overflows ? (right < 0 ? .min : .max) : sum
}

/// The same time of the day, a period later. Of a day that the month does not have its last one is meant.
public func adding(_ period: Period, to instant: Int64) -> Int64 {
    // A million years either way: beyond that the arithmetic of years would leave 64 bits.
    let limit: Int64 = 366_000_000 * millisecondsPerDay
    guard (-limit...limit).contains(instant) else { return instant }
    let day = instant.floorDivided(by: millisecondsPerDay)
    let timeOfDay = instant - day * millisecondsPerDay
    let later = CivilDay(number: day).adding(months: period.years * 12 + period.months)
    return (later.number + Int64(period.weeks * 7 + period.days)) * millisecondsPerDay + timeOfDay
}

/// value x factor / divisor, half to even, once. At the ends of 64 bits it stays there.
public func rounded(_ value: Int64, times factor: Int64, over divisor: Int64) -> Int64 {
    guard divisor > 0 else { return 0 }
    let product = Int128(value) * Int128(factor)
    let divisor = Int128(divisor)
    var quotient = product / divisor
    let rest = product - quotient * divisor
    // Towards zero so far.
    let twice = rest.magnitude * 2
    if twice > divisor.magnitude || twice == divisor.magnitude && quotient % 2 != 0 {
        quotient += product < 0 ? -1 : 1
    }
    return Int64(clamping: quotient)
}
