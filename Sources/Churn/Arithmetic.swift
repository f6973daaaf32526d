// Money and time that anybody may have signed: nothing here traps.

internal import Contract

let millisecondsPerDay: Int64 = 86_400_000

/// At the ends of time it stays there.
func adding(_ left: Int64, _ right: Int64) -> Int64 {
    let (sum, overflows) = left.addingReportingOverflow(right)
    return overflows ? (right < 0 ? .min : .max) : sum
}

/// From an instant to a later one; at the end of numbers it stays there.
func length(from: Int64, to: Int64) -> Int64 {
    let (length, overflows) = to.subtractingReportingOverflow(from)
    return overflows ? .max : length
}

/// What a subscription is worth a month cannot be more: months of a millisecond are no months.
let limitMRR: Int64 = 1_000_000_000_000_000

/// value x factor / divisor, half to even, once. At the ends of 64 bits it stays there.
package func rounded(_ value: Int64, times factor: Int64, over divisor: Int64) -> Int64 {
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

/// A price per month.
func monthly(_ price: Int64, from: Int64, to: Int64) -> Int64 {
    guard to > from else { return 0 }
    let span = length(from: from, to: to)
    if let months = wholeMonths(from: from, to: to, span: span) { return rounded(price, times: 1, over: months) }
    return min(rounded(price, times: averageMonth, over: span), limitMRR)
}

private let averageMonth: Int64 = 2_629_800_000

/// As many as the calendar has between the two, if the end is within two days of that.
private func wholeMonths(from: Int64, to: Int64, span: Int64) -> Int64? {
    let day = CivilDay(number: from.floorDivided(by: millisecondsPerDay))
    let dayLength = Int128(millisecondsPerDay)
    // Beyond 64 bits near the ends of time.
    let timeOfDay = Int128(from) - Int128(day.number) * dayLength
    var best: (months: Int64, distance: Int128)?
    let guess = span / averageMonth
    for months in max(guess - 1, 1)...(guess + 2) {
        let end = Int128(day.adding(months: Int(months)).number) * dayLength + timeOfDay
        let distance = abs(end - Int128(to))
        if distance <= 2 * dayLength, best.map({ distance < $0.distance }) ?? true {
            best = (months, distance)
        }
    }
    return best?.months
}
