// Money and time that anybody may have signed: nothing here traps.

internal import Contract

/// From an instant to a later one; at the end of numbers it stays there.
func length(from: Int64, to: Int64) -> Int64 {
    let (length, overflows) = to.subtractingReportingOverflow(from)
    return overflows ? .max : length
}

/// What a subscription is worth a month cannot be more: months of a millisecond are no months.
let limitMRR: Int64 = 1_000_000_000_000_000

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
