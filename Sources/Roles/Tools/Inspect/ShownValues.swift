// Times, lengths and money as text for people.

import Telemetry

/// `2026-11-30 10:00`, in UTC; with seconds if they are not zero.
func shownTime(_ milliseconds: Int64) -> String {
    // Signed dates may have any value. Years with more than four digits are shown as numbers.
    guard (0..<253_402_300_800_000).contains(milliseconds) else { return "\(milliseconds) ms" }
    let text = rfc3339(milliseconds: milliseconds)
    let isWholeMinute = milliseconds / 1000 % 60 == 0
    return "\(text.prefix(10)) \(text.dropFirst(11).prefix(isWholeMinute ? 5 : 8))"
}

/// `2026-11-30` if it is the beginning of a day.
func shownDay(_ milliseconds: Int64) -> String {
    let time = shownTime(milliseconds)
    return milliseconds % 86_400_000 == 0 && time.hasSuffix(" 00:00") ? String(time.dropLast(6)) : time
}

/// In the largest suitable unit: `30 days`, `5 h`.
func shownLength(_ milliseconds: Int64) -> String {
    let seconds = milliseconds / 1000
    switch seconds {
    case 172_800...: return "\(seconds / 86_400) days"
    case 7200...: return "\(seconds / 3600) h"
    case 120...: return "\(seconds / 60) min"
    case 1...: return "\(seconds) s"
    default: return "\(milliseconds) ms"
    }
}

/// Does not overflow: signed dates may have any value.
func distance(from start: Int64, to end: Int64) -> Int64 {
    let (length, overflows) = end.subtractingReportingOverflow(start)
    return overflows ? .max : length
}

/// `9.99 USD` for milliunits. Whole amounts have no fraction, because not every currency has one.
func shownMoney(_ milliunits: Int64, _ currency: String?) -> String {
    let (whole, rest) = milliunits.magnitude.quotientAndRemainder(dividingBy: 1000)
    var amount = (milliunits < 0 ? "-" : "") + "\(whole)"
    if rest > 0 {
        let digits = String(1000 + rest).dropFirst()
        amount += "." + (rest % 10 == 0 ? digits.dropLast() : digits)
    }
    return [amount, currency.map(shownText)].compactMap { $0 }.joined(separator: " ")
}

/// Foreign text without control characters, cut to a readable length.
func shownText(_ text: String) -> String {
    let limit = 120
    let shown = printable(text)
    return shown.count <= limit ? shown : shown.prefix(limit) + "..."
}
