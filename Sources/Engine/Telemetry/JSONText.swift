// The JSON that telemetry writes. It never reads JSON.

enum JSONText {
    /// Appends `text` in quotes and escaped. Stops before the line grows beyond `limitBytes` and marks the cut with an
    /// ellipsis; true if the text was cut. The closing quote and the mark may exceed the limit by `markBytes`.
    @discardableResult
    static func append(_ text: String, to line: inout [UInt8], limitBytes: Int = .max) -> Bool {
        line.append(UInt8(ascii: "\""))
        defer { line.append(UInt8(ascii: "\"")) }
        return appendEscaped(text, to: &line, limitBytes: limitBytes)
    }

    /// The same without the quotes.
    static func appendEscaped(_ text: String, to line: inout [UInt8], limitBytes: Int) -> Bool {
        for scalar in text.unicodeScalars {
            // One scalar becomes six bytes at most.
            guard line.count + 6 <= limitBytes else {
                line.append(contentsOf: "…".utf8)
                return true
            }
            append(scalar, to: &line)
        }
        return false
    }

    /// The ellipsis and the closing quote.
    static let markBytes = 4

    private static func append(_ scalar: Unicode.Scalar, to line: inout [UInt8]) {
        switch scalar {
        case "\"": line.append(contentsOf: "\\\"".utf8)
        case "\\": line.append(contentsOf: "\\\\".utf8)
        case "\n": line.append(contentsOf: "\\n".utf8)
        case "\r": line.append(contentsOf: "\\r".utf8)
        case "\t": line.append(contentsOf: "\\t".utf8)
        // More than JSON requires: DEL and the C1 controls affect terminals, and some readers of JSON lines treat the
        // two separators of Unicode as line ends.
        case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{2028}", "\u{2029}":
            let digits = String(scalar.value, radix: 16)
            line.append(contentsOf: "\\u".utf8)
            line.append(contentsOf: String(repeating: "0", count: 4 - digits.count).utf8)
            line.append(contentsOf: digits.utf8)
        default: line.append(contentsOf: UTF8.encode(scalar)!)  // A Unicode.Scalar always has UTF-8.
        }
    }
}
