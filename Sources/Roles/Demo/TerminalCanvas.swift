// Draws lines again in the same place.

import Glibc
import Platform

/// Makes the bytes for each drawing. There is one write per drawing and no clearing before it, so that nothing flickers.
struct TerminalCanvas {
    struct Size: Equatable {
        var width: Int
        var height: Int

        /// The usual size, for a terminal that does not report its size.
        static let usual = Size(width: 80, height: 24)
    }

    private let isColoured: Bool
    private var drawnLines = 0
    private var drawnWidth: Int?

    init(isColoured: Bool) { self.isColoured = isColoured }

    mutating func draw(_ lines: [ScreenLine], width: Int) -> String {
        var text = ""
        if let drawnWidth, drawnWidth != width {
            // After a resize the old lines are wrapped differently, so everything is cleared.
            text += "\u{1B}[H\u{1B}[2J"
        } else if drawnLines > 0 {
            text += "\u{1B}[\(drawnLines)F"
        }
        for line in lines { text += coloured(line) + "\u{1B}[K\n" }
        // Clears the rest of a taller drawing.
        text += "\u{1B}[J"
        drawnLines = lines.count
        drawnWidth = width
        return text
    }

    private func coloured(_ line: ScreenLine) -> String {
        guard isColoured, !line.text.isEmpty else { return line.text }
        let code =
            switch line.style {
            case .plain: ""
            case .title: "1"
            case .faint: "2"
            case .warning: "33"
            }
        return code.isEmpty ? line.text : "\u{1B}[\(code)m\(line.text)\u{1B}[0m"
    }

    /// The size of standard output. nil: it is not a terminal, or the terminal cannot move its cursor.
    static func size(of environment: [(name: String, value: String)]) -> Size? {
        guard isatty(1) == 1, environment.first(where: { $0.name == "TERM" })?.value != "dumb" else { return nil }
        var size = winsize()
        guard ioctl(1, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return .usual }
        return Size(width: Int(size.ws_col), height: Int(size.ws_row))
    }

    /// https://no-color.org: any value but an empty one.
    static func isColoured(in environment: [(name: String, value: String)]) -> Bool {
        !environment.contains { $0.name == "NO_COLOR" && !$0.value.isEmpty }
    }
}
