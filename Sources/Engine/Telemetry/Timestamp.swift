// The format of times in log lines and answers.

import Glibc

/// RFC 3339 in UTC with milliseconds: `2026-03-01T09:30:00.125Z`.
public func rfc3339(milliseconds: Int64) -> String {
    // Rounded down, so that times before 1970 keep a positive part of a second.
    let (seconds, rest) = floorDivision(milliseconds, by: 1000)
    var time = time_t(seconds)
    var parts = tm()
    gmtime_r(&time, &parts)
    let day =
        "\(padded(Int(parts.tm_year) + 1900, 4))-\(padded(Int(parts.tm_mon) + 1, 2))-\(padded(Int(parts.tm_mday), 2))"
    let clock = "\(padded(Int(parts.tm_hour), 2)):\(padded(Int(parts.tm_min), 2)):\(padded(Int(parts.tm_sec), 2))"
    return "\(day)T\(clock).\(padded(Int(rest), 3))Z"
}

private func floorDivision(_ value: Int64, by divisor: Int64) -> (quotient: Int64, rest: Int64) {
    let (quotient, rest) = value.quotientAndRemainder(dividingBy: divisor)
    return rest < 0 ? (quotient - 1, rest + divisor) : (quotient, rest)
}

private func padded(_ number: Int, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
}
