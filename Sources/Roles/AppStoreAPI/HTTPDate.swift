// Dates in the heads of answers.

internal import Contract

/// The date of RFC 9110 in the form that servers write today (IMF-fixdate): `Sun, 06 Nov 1994 08:49:37 GMT`.
enum HTTPDate {
    private static let weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    private static let secondsPerDay: Int64 = 86_400

    /// Milliseconds since 1970. nil for any other text, and for a time that does not exist: a wrong weekday, a second
    /// 60.
    static func milliseconds(_ text: String) -> Int64? {
        let bytes = Array(text.utf8)
        guard bytes.count == 29, let year = number(bytes[12..<16]), let day = number(bytes[5..<7]),
            let month = months.firstIndex(where: { $0.utf8.elementsEqual(bytes[8..<11]) }),
            let hour = number(bytes[17..<19]), let minute = number(bytes[20..<22]), let second = number(bytes[23..<25]),
            hour < 24, minute < 60, second < 60
        else { return nil }
        let date = CivilDay(year: year, month: month + 1, day: day)
        let seconds = date.number * secondsPerDay + Int64(hour * 3600 + minute * 60 + second)
        // Only the one correct text for this time is accepted; this catches all other errors.
        return self.text(seconds: seconds).utf8.elementsEqual(bytes) ? seconds * 1000 : nil
    }

    static func text(seconds: Int64) -> String {
        let days = seconds.floorDivided(by: secondsPerDay)
        let date = CivilDay(number: days)
        let rest = Int(seconds - days * secondsPerDay)
        // The 1st of January 1970 was a Thursday.
        let weekday = Int((days + 3) - (days + 3).floorDivided(by: 7) * 7)
        let clock = [rest / 3600, rest / 60 % 60, rest % 60].map { padded($0, 2) }.joined(separator: ":")
        let day = "\(padded(date.day, 2)) \(months[date.month - 1]) \(padded(date.year, 4))"
        return "\(weekdays[weekday]), \(day) \(clock) GMT"
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        guard digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }
}

/// When Apple allows the next request.
enum RetryAfter {
    /// A later time is ignored: Apple's limits are per hour, and one wrong number must not stop an app for ever.
    static let farthestMilliseconds: Int64 = 24 * 3600 * 1000
    /// The smallest number that is read as a time and not as a number of seconds: 2001 in milliseconds.
    private static let leastTime: Int64 = 1_000_000_000_000

    /// Milliseconds since 1970, possibly in the past. Apple writes exactly this. A proxy may write the forms of RFC
    /// 9110: seconds to wait, or a date. nil for everything else, and for a time more than a day ahead.
    static func milliseconds(_ text: String, now: Int64) -> Int64? {
        guard let time = time(text, now: now) else { return nil }
        let (distance, overflows) = time.subtractingReportingOverflow(now)
        return overflows || distance > farthestMilliseconds ? nil : time
    }

    private static func time(_ text: String, now: Int64) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            return HTTPDate.milliseconds(text)
        }
        guard let number = Int64(text) else { return nil }
        if number >= leastTime { return number }
        guard number <= farthestMilliseconds / 1000 else { return nil }
        let (time, overflows) = now.addingReportingOverflow(number * 1000)
        return overflows ? nil : time
    }
}
