// Lines of a card: a label, and text that fits the width of a terminal.

import CommandLine

struct CardLines {
    static let width = 80
    static let labelWidth = 14

    private(set) var lines: [String] = []

    mutating func blank() { lines.append("") }

    /// Adds a line without wrapping, after the column of labels.
    mutating func line(_ text: String, label: String = "") {
        let line = padded(label, to: Self.labelWidth) + text
        lines.append(String(line.reversed().drop { $0 == " " }.reversed()))
    }

    /// - Parameter hanging: the indent of further lines.
    mutating func text(_ label: String, _ text: String, hanging: Int = 0) {
        var label = label
        for line in Self.wrapped(text, width: Self.width - Self.labelWidth, hanging: hanging) {
            self.line(line, label: label)
            label = ""
        }
    }

    /// Breaks lines between words. A word that is longer than a line is broken, too.
    static func wrapped(_ text: String, width: Int, hanging: Int = 0) -> [String] {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
            .flatMap { pieces(of: $0, length: width - hanging) }
        var lines: [String] = []
        var line = words.first.map(String.init) ?? ""
        for word in words.dropFirst() {
            if line.count + 1 + word.count <= width {
                line += " " + word
            } else {
                lines.append(line)
                line = String(repeating: " ", count: hanging) + word
            }
        }
        return lines + [line]
    }

    private static func pieces(of word: Substring, length: Int) -> [Substring] {
        guard word.count > length else { return [word] }
        return [word.prefix(length)] + pieces(of: word.dropFirst(length), length: length)
    }
}
