// The lines of `perennial check`.

import Platform

/// One line a finding: how it is, what was looked at, and what was found with what to do about it.
struct CheckLines {
    enum Level: String {
        case ok
        /// It works; somebody should look at it all the same.
        case warning
        case fault
    }

    /// As wide as the longest level and a gap: lines that belong to a finding begin below its words.
    static let indent = String(repeating: " ", count: 9)

    let output: Output

    func tell(_ level: Level, _ subject: String, _ words: String = "") {
        let first = level.rawValue + Self.indent.dropFirst(level.rawValue.count) + subject
        output.data(words.isEmpty ? first : "\(first)  \(words)")
    }

    func more(_ line: String) { output.data(Self.indent + line) }
}
