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
        for line in wrapped(text, width: Self.width - Self.labelWidth, hanging: hanging) {
            self.line(line, label: label)
            label = ""
        }
    }
}
