// The lines of `perennial check`.

import CommandLine
import Platform

/// One line for each finding: its level, what was checked, what was found, and what to do about it.
struct CheckLines {
    enum Level: String {
        case ok
        /// It works, but somebody should look at it.
        case warning
        case fault
    }

    /// As wide as the longest level and a gap: further lines of a finding begin below its text.
    static let indent = String(repeating: " ", count: 9)

    let output: Output

    func tell(_ level: Level, _ subject: String, _ words: String = "") {
        let first = level.rawValue + Self.indent.dropFirst(level.rawValue.count) + subject
        output.data(words.isEmpty ? first : "\(first)  \(words)")
    }

    func more(_ line: String) { output.data(Self.indent + line) }
}
