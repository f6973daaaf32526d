// Arithmetic on prices and dates from payloads that anyone may have signed: no value may trap.

internal import Contract

/// The time from one instant to a later one; `Int64.max` if it does not fit.
func length(from: Int64, to: Int64) -> Int64 {
    let (length, overflows) = to.subtractingReportingOverflow(from)
    return overflows ? .max : length
}

/// The upper limit of a monthly price. Without it a period of one millisecond would give an absurd price.
let limitMRR: Int64 = 1_000_000_000_000_000

/// The price per month.
func monthly(_ price: Int64, from: Int64, to: Int64) -> Int64 {
    guard to > from else { return 0 }
    let span = length(from: from, to: to)
    if let months = wholeMonths(from: from, to: to, span: span) {
        return months == 1 ? price : rounded(price, times: 1, over: months)
    }
    return min(rounded(price, times: averageMonth, over: span), limitMRR)
}

private let averageMonth: Int64 = 2_629_800_000

/// The number of calendar months between the two instants, if they end within two days of `to`.
private func wholeMonths(from: Int64, to: Int64, span: Int64) -> Int64? {
    // A month of 28 to 31 days ends within two days of it, whichever month it is.
    if (29 * millisecondsPerDay...30 * millisecondsPerDay).contains(span) { return 1 }
    let day = CivilDay(number: from.floorDivided(by: millisecondsPerDay))
    let dayLength = Int128(millisecondsPerDay)
    // Near the ends of the range of `Int64` the product needs more than 64 bits.
    let timeOfDay = Int128(from) - Int128(day.number) * dayLength
    var best: (months: Int64, distance: Int128)?
    let guess = span / averageMonth
    for months in max(guess - 1, 1)...(guess + 2) where mayBe(months, within: span) {
        let end = Int128(day.adding(months: Int(months)).number) * dayLength + timeOfDay
        let distance = abs(end - Int128(to))
        if distance <= 2 * dayLength, best.map({ distance < $0.distance }) ?? true {
            best = (months, distance)
        }
    }
    return best?.months
}

/// False: so many months, of 28 to 31 days each, do not end within two days of the span.
private func mayBe(_ months: Int64, within span: Int64) -> Bool {
    let days = span / millisecondsPerDay
    return months * 28 - 2 <= days && days <= months * 31 + 2
}
