// Times as people write them.

/// `90m`, `2h`, `7d` before `now`, or a day or time in UTC: `2026-11-20`, `2026-11-20T10:00:00Z` (the seconds and the Z may
/// be left out). Returns milliseconds since 1970; nil for anything else.
func pointInTime(_ text: String, now: Int64) -> Int64? {
    if let unit = text.last, let length = ["s": 1, "m": 60, "h": 3600, "d": 86_400][unit] {
        // A century of days; a greater number is a typing error.
        guard let count = Int64(text.dropLast()), (0...36_525).contains(count) else { return nil }
        return now - count * Int64(length) * 1000
    }
    let halves = (text.hasSuffix("Z") ? text.dropLast() : text[...]).split(
        separator: "T", omittingEmptySubsequences: false)
    guard (1...2).contains(halves.count), let day = dayNumber(halves[0]) else { return nil }
    if halves.count == 1 { return text.hasSuffix("Z") ? nil : day * 86_400_000 }
    return secondOfDay(halves[1]).map { day * 86_400_000 + $0 * 1000 }
}

private func numbers(_ text: Substring, separator: Character, widths: [Int]) -> [Int64]? {
    let parts = text.split(separator: separator, omittingEmptySubsequences: false)
    guard parts.count <= widths.count else { return nil }
    var numbers: [Int64] = []
    for (part, width) in zip(parts, widths) {
        guard part.utf8.count == width, part.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int64(part)
        else { return nil }
        numbers.append(number)
    }
    return numbers
}

private func secondOfDay(_ text: Substring) -> Int64? {
    guard let parts = numbers(text, separator: ":", widths: [2, 2, 2]), parts.count >= 2, parts[0] < 24, parts[1] < 60
    else { return nil }
    let seconds = parts.count == 3 ? parts[2] : 0
    return seconds < 60 ? parts[0] * 3600 + parts[1] * 60 + seconds : nil
}

/// Days since 1970 in the Gregorian calendar.
private func dayNumber(_ text: Substring) -> Int64? {
    guard let parts = numbers(text, separator: "-", widths: [4, 2, 2]), parts.count == 3 else { return nil }
    let (year, month, day) = (parts[0], parts[1], parts[2])
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    guard (1970...9999).contains(year), (1...12).contains(month) else { return nil }
    let lengths: [Int64] = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    guard (1...lengths[Int(month) - 1]).contains(day) else { return nil }
    let before = lengths.prefix(Int(month) - 1).reduce(0, +)
    let leapDays = { (years: Int64) in years / 4 - years / 100 + years / 400 }
    return (year - 1970) * 365 + leapDays(year - 1) - leapDays(1969) + before + day - 1
}
