// How long things take in the store: calendar time in production, minutes in sandbox.

/// The length of a plan or an offer.
enum PlanLength: Sendable, Hashable {
    case week, month, quarter, year

    var months: Int {
        switch self {
        case .week: 0
        case .month: 1
        case .quarter: 3
        case .year: 12
        }
    }

    /// In ISO 8601.
    var text: String {
        switch self {
        case .week: "P1W"
        case .month: "P1M"
        case .quarter: "P3M"
        case .year: "P1Y"
        }
    }
}

let second: Int64 = 1000
let minute = 60 * second
let hour = 60 * minute
let day = 24 * hour

/// The clock of production or sandbox. All times are in milliseconds.
enum Pace: Sendable {
    case production, sandbox

    /// The end of the `count`th period since `anchor`. It is counted from the anchor and not from the previous end: a
    /// plan that begins on the 31st ends on the 28th of February and on the 31st of March.
    func end(of length: PlanLength, count: Int = 1, from anchor: Int64) -> Int64 {
        switch (self, length) {
        case (.production, .week): anchor + Int64(count) * 7 * day
        case (.production, _): adding(months: count * length.months, to: anchor)
        // Apple's rates: a week takes 3 minutes, a month 5 minutes.
        case (.sandbox, .week): anchor + Int64(count) * 3 * minute
        case (.sandbox, _): anchor + Int64(count * length.months) * 5 * minute
        }
    }

    /// How long Apple retries a failed payment. For sandbox Apple says nothing; third parties report about ten minutes.
    func retryWindow(isCommitment: Bool) -> Int64 {
        switch self {
        case .production: (isCommitment ? 90 : 60) * day
        case .sandbox: 10 * minute
        }
    }

    /// - Parameter choice: the days that the developer chose: 3, 16 or 28. A weekly plan gets at most 6.
    func grace(of length: PlanLength, choice: Int64) -> Int64 {
        switch (self, length) {
        case (.production, .week): min(choice, 6) * day
        case (.production, _): choice * day
        case (.sandbox, .week): 2 * minute
        case (.sandbox, _): 4 * minute
        }
    }

    /// How long before the end of a period Apple may renew.
    var lead: ClosedRange<Int64> {
        switch self {
        case .production: minute...24 * hour
        case .sandbox: second...20 * second
        }
    }

    /// The delay of a notification or of a late event.
    var delay: ClosedRange<Int64> {
        switch self {
        case .production: 2 * second...40 * second
        case .sandbox: 2 * second...4 * second
        }
    }

    /// The length of a gap after which a new `recentSubscriptionStartDate` begins.
    var longGap: Int64 {
        switch self {
        case .production: 60 * day
        case .sandbox: 10 * minute
        }
    }
}

/// The same time of day this number of months later in UTC; the last day of the month if the month is too short.
func adding(months: Int, to time: Int64) -> Int64 {
    let days = Int(time >= 0 ? time / day : (time - day + 1) / day)
    let date = civil(of: days)
    let index = date.year * 12 + (date.month - 1) + months
    let year = index >= 0 ? index / 12 : (index - 11) / 12
    let month = index - year * 12 + 1
    let dayOfMonth = min(date.day, lengthOfMonth(month, year))
    return Int64(dayNumber(year, month, dayOfMonth)) * day + (time - Int64(days) * day)
}

private func lengthOfMonth(_ month: Int, _ year: Int) -> Int {
    let next = month == 12 ? dayNumber(year + 1, 1, 1) : dayNumber(year, month + 1, 1)
    return next - dayNumber(year, month, 1)
}

/// Days since 1970 of a date in the proleptic Gregorian calendar, computed in eras of 400 years that begin in March.
func dayNumber(_ year: Int, _ month: Int, _ dayOfMonth: Int) -> Int {
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + dayOfMonth - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
}

private func civil(of days: Int) -> (year: Int, month: Int, day: Int) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = monthFromMarch + (monthFromMarch < 10 ? 3 : -9)
    return (
        yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    )
}
