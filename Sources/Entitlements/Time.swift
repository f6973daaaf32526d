// Milliseconds since 1970, and the calendar of UTC.

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
    let date = CivilDate(daysSince1970: day)
    let month = date.month - 1 + Int64(period.months)
    let year = date.year + Int64(period.years) + month.floorDivided(by: 12)
    let later = CivilDate(clampingDay: date.day, month: month - month.floorDivided(by: 12) * 12 + 1, year: year)
    return (later.daysSince1970 + Int64(period.weeks * 7 + period.days)) * millisecondsPerDay + timeOfDay
}

/// A day of the Gregorian calendar, which holds for all years here.
private struct CivilDate {
    let year: Int64
    /// From 1.
    let month: Int64
    let day: Int64

    init(clampingDay day: Int64, month: Int64, year: Int64) {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths: [Int64] = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        self.year = year
        self.month = month
        self.day = min(day, lengths[Int(month - 1)])
    }

    // Years are counted from March here: the day that a leap year adds is then the last one of a year. An era is 400 years,
    // after which days repeat.
    private static let daysPerEra: Int64 = 146_097
    /// From the 1st of March of the year 0 to 1970.
    private static let daysBefore1970: Int64 = 719_468

    init(daysSince1970: Int64) {
        let days = daysSince1970 + Self.daysBefore1970
        let era = days.floorDivided(by: Self.daysPerEra)
        let dayOfEra = days - era * Self.daysPerEra
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    var daysSince1970: Int64 {
        let yearFromMarch = month <= 2 ? year - 1 : year
        let era = yearFromMarch.floorDivided(by: 400)
        let yearOfEra = yearFromMarch - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * Self.daysPerEra + dayOfEra - Self.daysBefore1970
    }
}

extension Int64 {
    fileprivate func floorDivided(by divisor: Int64) -> Int64 {
        let quotient = self / divisor
        return self % divisor < 0 ? quotient - 1 : quotient
    }
}
