// Writes DER: the few types that a certificate needs.

enum DER {
    static func sequence(_ parts: [UInt8]...) -> [UInt8] { value(0x30, parts.flatMap { $0 }) }
    static func set(of part: [UInt8]) -> [UInt8] { value(0x31, part) }
    static func octets(_ bytes: [UInt8]) -> [UInt8] { value(0x04, bytes) }
    static func boolean(_ isTrue: Bool) -> [UInt8] { value(0x01, [isTrue ? 0xff : 0]) }
    static func text(_ text: String) -> [UInt8] { value(0x0c, Array(text.utf8)) }
    /// A bit string of whole bytes.
    static func bits(_ bytes: [UInt8]) -> [UInt8] { value(0x03, [0] + bytes) }
    static func explicit(_ number: UInt8, _ content: [UInt8]) -> [UInt8] { value(0xa0 | number, content) }
    static func implicit(_ number: UInt8, _ content: [UInt8]) -> [UInt8] { value(0x80 | number, content) }

    static func value(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        var length: [UInt8] = []
        if content.count < 0x80 {
            length = [UInt8(content.count)]
        } else {
            var rest = content.count
            while rest > 0 {
                length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
                rest >>= 8
            }
            length.insert(0x80 | UInt8(length.count), at: 0)
        }
        return [tag] + length + content
    }

    /// A non-negative number; the magnitude, big endian.
    static func integer(_ magnitude: [UInt8]) -> [UInt8] {
        var content = Array(magnitude.drop { $0 == 0 })
        if content.first.map({ $0 >= 0x80 }) ?? true { content.insert(0, at: 0) }
        return value(0x02, content)
    }

    /// Named bits, counted from the highest of the first byte; zeros at the end are left out.
    static func namedBits(_ numbers: [Int]) -> [UInt8] {
        guard let last = numbers.max() else { return value(0x03, [0]) }
        var bytes = [UInt8](repeating: 0, count: last / 8 + 1)
        for number in numbers { bytes[number / 8] |= 0x80 >> UInt8(number % 8) }
        return value(0x03, [UInt8(7 - last % 8)] + bytes)
    }

    /// nil if the text is not a dotted object identifier.
    static func identifier(_ dotted: String) -> [UInt8]? {
        let words = dotted.split(separator: ".", omittingEmptySubsequences: false)
        let arcs = words.compactMap { word in word.utf8.allSatisfy { (0x30...0x39).contains($0) } ? UInt32(word) : nil }
        guard arcs.count == words.count, arcs.count >= 2, arcs[0] <= 2, arcs[0] == 2 || arcs[1] < 40, arcs[1] <= 1000
        else { return nil }
        let numbers = [arcs[0] * 40 + arcs[1]] + arcs.dropFirst(2)
        return value(0x06, numbers.flatMap(base128))
    }

    private static func base128(_ number: UInt32) -> [UInt8] {
        var bytes = [UInt8(number & 0x7f)]
        var rest = number >> 7
        while rest > 0 {
            bytes.insert(UInt8(rest & 0x7f) | 0x80, at: 0)
            rest >>= 7
        }
        return bytes
    }

    /// In the form of RFC 5280 4.1.2.5: two digits of the year through 2049, four from 2050. nil before 1950 and after
    /// 9999.
    static func time(seconds: Int64) -> [UInt8]? {
        // Far beyond the allowed range, and within the range of the calendar below.
        guard (-1 << 40...1 << 40).contains(seconds) else { return nil }
        // Rounded down, also before 1970.
        let days = (seconds >= 0 ? seconds : seconds - 86_399) / 86_400
        let time = seconds - days * 86_400
        let (year, month, day) = civil(days: days)
        guard (1950...9999).contains(year) else { return nil }
        let tail = [month, day, time / 3600, time / 60 % 60, time % 60].map { pad($0, 2) }.joined() + "Z"
        return year < 2050
            ? value(0x17, Array((pad(year % 100, 2) + tail).utf8)) : value(0x18, Array((pad(year, 4) + tail).utf8))
    }

    private static func pad(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    /// The Gregorian date of a day counted from 1970-01-01. Years begin on 1 March in eras of 400 years, so that the
    /// leap day is the last day of its year.
    private static func civil(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * month + 2) / 5 + 1
        let calendarMonth = month < 10 ? month + 3 : month - 9
        return (yearOfEra + era * 400 + (calendarMonth <= 2 ? 1 : 0), calendarMonth, day)
    }
}
