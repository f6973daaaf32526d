// The calendar: days by their number and by their date.

/// A day of the Gregorian calendar, which is used for all years here.
public struct CivilDay: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Days since 1 January 1970.
    public let number: Int64
    public let year: Int
    /// 1 to 12.
    public let month: Int
    public let day: Int

    /// The days that can be written with four digits of the year.
    public static let first = CivilDay(year: 1, month: 1, day: 1)
    public static let last = CivilDay(year: 9999, month: 12, day: 31)

    /// A thousand million years in both directions: beyond that the nearest day is used, so that no number can stop a
    /// process.
    private static let limitYears = 1_000_000_000
    private static let limitDays: Int64 = 365_000_000_000

    // Years start in March here, so that the additional day of a leap year is the last one of its year. An era is 400
    // years, after which days repeat.
    private static let daysPerEra: Int64 = 146_097
    /// From 1 March of the year 0 to 1970.
    private static let daysBefore1970: Int64 = 719_468

    public init(number: Int64) {
        self.number = min(max(number, -Self.limitDays), Self.limitDays)
        let days = self.number + Self.daysBefore1970
        let era = days.floorDivided(by: Self.daysPerEra)
        let dayOfEra = days - era * Self.daysPerEra
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = Int(dayOfYear - (153 * monthFromMarch + 2) / 5) + 1
        month = Int(monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9)
        year = Int(yearOfEra + era * 400) + (month <= 2 ? 1 : 0)
    }

    /// An invalid month or day becomes the nearest valid one: 31 April becomes 30 April.
    public init(year: Int, month: Int, day: Int) {
        self.year = min(max(year, -Self.limitYears), Self.limitYears)
        self.month = min(max(month, 1), 12)
        self.day = min(max(day, 1), Self.length(ofMonth: self.month, year: self.year))
        let yearFromMarch = Int64(self.month <= 2 ? self.year - 1 : self.year)
        let era = yearFromMarch.floorDivided(by: 400)
        let yearOfEra = yearFromMarch - era * 400
        let dayOfYear = Int64((153 * (self.month + (self.month > 2 ? -3 : 9)) + 2) / 5 + self.day - 1)
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        number = era * Self.daysPerEra + dayOfEra - Self.daysBefore1970
    }

    /// As `description` writes days from `first` to `last`; nil for any other text, and for an invalid day.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        let dash = UInt8(ascii: "-")
        guard bytes.count == 10, bytes[4] == dash, bytes[7] == dash, let year = Self.value(bytes[0..<4]),
            let month = Self.value(bytes[5..<7]), let day = Self.value(bytes[8..<10]), year > 0
        else { return nil }
        self.init(year: year, month: month, day: day)
        guard self.month == month, self.day == day else { return nil }
    }

    private static func value(_ digits: ArraySlice<UInt8>) -> Int? {
        guard digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }

    /// YYYY-MM-DD.
    public var description: String { String(decoding: text, as: UTF8.self) }

    /// The same as bytes: a worker writes many.
    public var text: [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(10)
        func append(_ value: Int, _ width: Int) {
            if value < 0 { text.append(UInt8(ascii: "-")) }
            let first = text.count
            var rest = value.magnitude
            while rest > 0 || text.count - first < width {
                text.append(UInt8(ascii: "0") + UInt8(rest % 10))
                rest /= 10
            }
            text[first...].reverse()
        }
        append(year, 4)
        text.append(UInt8(ascii: "-"))
        append(month, 2)
        text.append(UInt8(ascii: "-"))
        append(day, 2)
        return text
    }

    public static func < (left: CivilDay, right: CivilDay) -> Bool { left.number < right.number }

    public static func isLeap(year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

    /// In days; the month is from 1 to 12.
    public static func length(ofMonth month: Int, year: Int) -> Int {
        switch month {
        case 2: isLeap(year: year) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// The same day of a later month. If the month lacks the day, its last day is used.
    public func adding(months: Int) -> CivilDay {
        let limit = 12 * Self.limitYears
        let sum = Int64(month - 1 + min(max(months, -limit), limit))
        let years = sum.floorDivided(by: 12)
        return CivilDay(year: year + Int(years), month: Int(sum - years * 12) + 1, day: day)
    }
}

extension Int64 {
    /// The greatest whole number that is not above the quotient: -1 divided by 10 is -1, not 0. The divisor is above 0.
    public func floorDivided(by divisor: Int64) -> Int64 {
        let quotient = self / divisor
        return self % divisor < 0 ? quotient - 1 : quotient
    }
}
