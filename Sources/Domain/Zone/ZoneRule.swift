// The rule that applies after the last change of a file, in the syntax of the POSIX variable TZ.

internal import Contract

/// Such as `CET-1CEST,M3.5.0,M10.5.0/3`: it applies to every year.
struct ZoneRule: Equatable {
    struct Summer: Equatable {
        /// Seconds ahead of UTC. Less than the other offset where winter time is the exception, as in Ireland.
        let offset: Int64
        let start: YearlyTime
        let end: YearlyTime
    }

    let offset: Int64
    let summer: Summer?

    /// nil if the text is not supported. A summer time without dates has no generally accepted meaning.
    init?(_ text: ArraySlice<UInt8>) {
        var text = RuleText(rest: text)
        guard text.name(), let offset = text.offset() else { return nil }
        self.offset = offset
        guard !text.rest.isEmpty else {
            summer = nil
            return
        }
        guard text.name() else { return nil }
        let isHourAhead = text.rest.first == UInt8(ascii: ",")
        guard let summerOffset = isHourAhead ? offset + 3600 : text.offset(), text.skip(","),
            let start = text.yearlyTime(), text.skip(","), let end = text.yearlyTime(), text.rest.isEmpty
        else { return nil }
        summer = Summer(offset: summerOffset, start: start, end: end)
    }

    /// The changes in these years, sorted by time. Of two changes at one instant the later one counts: a summer time
    /// that lasts all year ends when the next one begins.
    func changes(ofYears years: ClosedRange<Int>) -> [OffsetChange] {
        guard let summer else { return [] }
        return years.flatMap { year in
            // Each time is local time before the change.
            let start = OffsetChange(second: summer.start.localSecond(inYear: year) - offset, offset: summer.offset)
            let end = OffsetChange(second: summer.end.localSecond(inYear: year) - summer.offset, offset: offset)
            return start.second <= end.second ? [start, end] : [end, start]
        }.enumerated().sorted { ($0.element.second, $0.offset) < ($1.element.second, $1.offset) }.map(\.element)
    }
}

/// A day of every year and a time relative to it, which may fall on a neighbouring day.
struct YearlyTime: Equatable {
    enum Day: Equatable {
        /// 1 to 365. The 29th of February is not counted, so 60 is always the 1st of March.
        case withoutLeapDay(Int)
        /// 0 to 365.
        case ofYear(Int)
        /// The first to fourth of this weekday in the month, or the last one for 5. Sunday is 0.
        case ofMonth(Int, week: Int, weekday: Int)
    }

    let day: Day
    let seconds: Int64

    /// Seconds since 1970 by a local clock, as if it showed UTC.
    func localSecond(inYear year: Int) -> Int64 { dayNumber(inYear: year) * secondsPerDay + seconds }

    private func dayNumber(inYear year: Int) -> Int64 {
        switch day {
        case .withoutLeapDay(let day):
            let isPassed = CivilDay.isLeap(year: year) && day >= 60
            return CivilDay(year: year, month: 1, day: 1).number + Int64(day - (isPassed ? 0 : 1))
        case .ofYear(let day): return CivilDay(year: year, month: 1, day: 1).number + Int64(day)
        case .ofMonth(let month, let week, let weekday):
            let first = CivilDay(year: year, month: month, day: 1).number
            // The 1st of January 1970 was a Thursday.
            let firstWeekday = first + 4 - (first + 4).floorDivided(by: 7) * 7
            let day = (Int64(weekday) + 7 - firstWeekday) % 7 + Int64(week - 1) * 7
            return first + (day < CivilDay.length(ofMonth: month, year: year) ? day : day - 7)
        }
    }
}

private struct RuleText {
    var rest: ArraySlice<UInt8>

    mutating func skip(_ character: Character) -> Bool {
        guard let first = rest.first, first == character.asciiValue else { return false }
        rest = rest.dropFirst()
        return true
    }

    /// At least three letters, or any name in angle brackets. The abbreviation is not used.
    mutating func name() -> Bool {
        let isQuoted = skip("<")
        let name = rest.prefix { isLetter($0) || isQuoted && (isDigit($0) || "+-".utf8.contains($0)) }
        rest = rest.dropFirst(name.count)
        return name.count >= 3 && (!isQuoted || skip(">"))
    }

    /// Seconds ahead of UTC; the text counts westward.
    mutating func offset() -> Int64? { duration(hours: 0...24, digits: 2).map(-) }

    mutating func yearlyTime() -> YearlyTime? {
        guard let day = day() else { return nil }
        guard skip("/") else { return YearlyTime(day: day, seconds: 2 * 3600) }
        // Up to a week before or after the day: rules need this for weekdays relative to a day of another month.
        return duration(hours: 0...167, digits: 3).map { YearlyTime(day: day, seconds: $0) }
    }

    private mutating func day() -> YearlyTime.Day? {
        if skip("J") { return number(1...365, digits: 3).map(YearlyTime.Day.withoutLeapDay) }
        guard skip("M") else { return number(0...365, digits: 3).map(YearlyTime.Day.ofYear) }
        guard let month = number(1...12, digits: 2), skip("."), let week = number(1...5, digits: 1), skip("."),
            let weekday = number(0...6, digits: 1)
        else { return nil }
        return .ofMonth(month, week: week, weekday: weekday)
    }

    /// [+-]h[:mm[:ss]] in seconds.
    private mutating func duration(hours: ClosedRange<Int>, digits: Int) -> Int64? {
        let isNegative = skip("-")
        if !isNegative { _ = skip("+") }
        guard let hours = number(hours, digits: digits) else { return nil }
        var seconds = hours * 3600
        for unit in [60, 1] {
            guard skip(":") else { break }
            guard rest.prefix(2).allSatisfy(isDigit), rest.count >= 2, let part = number(0...59, digits: 2) else {
                return nil
            }
            seconds += part * unit
        }
        return Int64(isNegative ? -seconds : seconds)
    }

    private mutating func number(_ range: ClosedRange<Int>, digits limit: Int) -> Int? {
        let digits = rest.prefix(limit).prefix(while: isDigit)
        rest = rest.dropFirst(digits.count)
        guard !digits.isEmpty else { return nil }
        let value = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        return range.contains(value) ? value : nil
    }
}

private func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

private func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
}
