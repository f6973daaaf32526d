// Numbers and days for the plain metrics.

import Foundation

extension Int64 {
    /// "Additions saturate."
    func plus(_ other: Int64) -> Int64 {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? (other > 0 ? .max : .min) : sum
    }

    func minus(_ other: Int64) -> Int64 {
        let (difference, overflows) = subtractingReportingOverflow(other)
        return overflows ? (other > 0 ? .min : .max) : difference
    }
}

/// "Every division rounds half to even, once." For numbers that are not negative.
func dividedHalfToEven(_ dividend: Int128, _ divisor: Int128) -> Int64 {
    let (quotient, rest) = dividend.quotientAndRemainder(dividingBy: divisor)
    let isUp = 2 * rest > divisor || (2 * rest == divisor && quotient % 2 == 1)
    return Int64(clamping: isUp ? quotient + 1 : quotient)
}

/// A date of the calendar, found by counting years and months.
struct PlainDate {
    private(set) var year: Int64
    /// 0 ... 11.
    private(set) var month: Int64
    private var dayOfMonth: Int64

    /// - Parameter day: 0 is 1970-01-01.
    init(day: Int64) {
        year = 1970 + day * 400 / 146_097
        while Self.firstDay(ofYear: year) > day { year -= 1 }
        while Self.firstDay(ofYear: year + 1) <= day { year += 1 }
        month = 0
        dayOfMonth = day - Self.firstDay(ofYear: year) + 1
        while dayOfMonth > Self.length(ofMonth: month, year) {
            dayOfMonth -= Self.length(ofMonth: month, year)
            month += 1
        }
    }

    var day: Int64 {
        Self.firstDay(ofYear: year) + (0..<month).reduce(0) { $0 + Self.length(ofMonth: $1, year) } + dayOfMonth - 1
    }

    /// "Calendar months (UTC, day clamped)."
    func adding(months: Int64) -> PlainDate {
        var date = self
        let sum = month + months
        date.year = year + sum / 12
        date.month = sum % 12
        date.dayOfMonth = min(dayOfMonth, Self.length(ofMonth: date.month, date.year))
        return date
    }

    var text: String { String(format: "%04d-%02d-%02d", Int(year), Int(month + 1), Int(dayOfMonth)) }

    private static func firstDay(ofYear year: Int64) -> Int64 {
        let before = year - 1
        let leapDays = before.floored(by: 4) - before.floored(by: 100) + before.floored(by: 400)
        return 365 * (year - 1970) + leapDays - 477
    }

    private static func length(ofMonth month: Int64, _ year: Int64) -> Int64 {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        return [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][Int(month)]
    }
}

extension Int64 {
    func floored(by divisor: Int64) -> Int64 { self / divisor - (self % divisor < 0 ? 1 : 0) }
}

private let dayLength: Int64 = 86_400_000

/// "Whole calendar months (UTC, day clamped) if within 2 days, else ms / 2 629 800 000": "the n >= 1 whose (from + n
/// calendar months) is nearest to `to`, if within 2 days (<=)". At most 10^15.
func monthlyPrice(_ price: Int64, from: Int64, to: Int64) -> Int64 {
    let length = to.minus(from)
    guard length > 0 else { return 0 }
    let about = length / 2_629_800_000
    let firstDay = from.floored(by: dayLength)
    let timeOfDay = Int128(from) - Int128(firstDay) * Int128(dayLength)
    let candidates = (max(1, about - 1)...max(1, about + 2)).map { months in
        let end = Int128(PlainDate(day: firstDay).adding(months: months).day) * Int128(dayLength) + timeOfDay
        return (months: months, distance: (end - Int128(to)).magnitude)
    }
    let limit: Int64 = 1_000_000_000_000_000
    if let nearest = candidates.min(by: { $0.distance < $1.distance }), nearest.distance <= 2 * UInt128(dayLength) {
        return min(dividedHalfToEven(Int128(price), Int128(nearest.months)), limit)
    }
    return min(dividedHalfToEven(Int128(price) * 2_629_800_000, Int128(length)), limit)
}

/// "Calendar day in the zone; instants are clamped to 0001-01-01 ... 9999-12-31."
func plainDay(of instant: Int64, in zone: TimeZone) -> String {
    let (first, last): (Int64, Int64) = (-62_135_596_800_000, 253_402_300_799_999)
    let clamped = min(max(instant, first), last)
    let offset = zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(clamped.floored(by: 1_000))))
    let day = (clamped + 1_000 * Int64(offset)).floored(by: dayLength)
    return PlainDate(day: min(max(day, first.floored(by: dayLength)), last / dayLength)).text
}
