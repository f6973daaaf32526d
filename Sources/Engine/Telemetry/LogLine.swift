// The format of log lines.

enum LogLine {
    /// What may follow the last field: mark and quote of a cut string, the member that says so, the end.
    private static let tailBytes = JSONText.markBytes + #","cut":true}"#.utf8.count + 1
    private static let bodyLimitBytes = Logger.maxLineBytes - tailBytes
    /// The limit of a message; the rest is reserved for the fields, which say where and what.
    private static let messageLimitBytes = bodyLimitBytes / 2
    private static let reserved: Set<String> = ["time", "level", "message", "cut"]

    static func json(
        time: String, level: LogLevel, message: String, fields: KeyValuePairs<String, LogValue>
    ) -> [UInt8] {
        var line = Array(#"{"time":"\#(time)","level":"\#(level.rawValue)","message":"#.utf8)
        var cut = JSONText.append(message, to: &line, limitBytes: messageLimitBytes)
        for (name, value) in fields {
            var member: [UInt8] = [UInt8(ascii: ",")]
            // Of two members with the same name one tool would read one, and another tool the other.
            JSONText.append(reserved.contains(name) ? name + "_" : name, to: &member)
            member.append(UInt8(ascii: ":"))
            guard fits(member, value, after: line) else {
                cut = true
                continue
            }
            line.append(contentsOf: member)
            cut = append(value, to: &line, quoted: true) || cut
        }
        line.append(contentsOf: (cut ? #","cut":true}"# : "}").utf8)
        line.append(UInt8(ascii: "\n"))
        return line
    }

    static func text(
        time: String, level: LogLevel, message: String, fields: KeyValuePairs<String, LogValue>
    ) -> [UInt8] {
        let name = level.rawValue.uppercased()
        var line = Array("\(time) \(name)\(String(repeating: " ", count: 7 - name.count)) ".utf8)
        var cut = JSONText.appendEscaped(message, to: &line, limitBytes: messageLimitBytes)
        for (name, value) in fields {
            var member: [UInt8] = [UInt8(ascii: " ")]
            _ = JSONText.appendEscaped(name, to: &member, limitBytes: bodyLimitBytes)
            member.append(UInt8(ascii: "="))
            guard fits(member, value, after: line) else {
                cut = true
                continue
            }
            line.append(contentsOf: member)
            cut = append(value, to: &line, quoted: needsQuotes(value)) || cut
        }
        line.append(contentsOf: (cut ? " cut=true\n" : "\n").utf8)
        return line
    }

    /// A number is never cut, and at least a few characters of a string must fit.
    private static func fits(_ member: [UInt8], _ value: LogValue, after line: [UInt8]) -> Bool {
        let smallestValueBytes = 32
        return line.count + member.count + smallestValueBytes <= bodyLimitBytes
    }

    /// True if the value was cut.
    private static func append(_ value: LogValue, to line: inout [UInt8], quoted: Bool) -> Bool {
        switch value {
        case .string(let text):
            return quoted
                ? JSONText.append(text, to: &line, limitBytes: bodyLimitBytes)
                : JSONText.appendEscaped(text, to: &line, limitBytes: bodyLimitBytes)
        case .integer(let number): line.append(contentsOf: String(number).utf8)
        // JSON has neither infinities nor NaN.
        case .double(let number): line.append(contentsOf: (number.isFinite ? "\(number)" : "\"\(number)\"").utf8)
        case .bool(let flag): line.append(contentsOf: (flag ? "true" : "false").utf8)
        }
        return false
    }

    private static func needsQuotes(_ value: LogValue) -> Bool {
        guard case .string(let text) = value else { return false }
        return text.isEmpty || text.unicodeScalars.contains { $0 == " " || $0 == "\"" || $0 == "=" || $0.value < 0x20 }
    }
}
