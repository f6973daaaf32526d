// The progress of a tool: a bar on a terminal, a line every few seconds in a log.

import Glibc
import Platform

/// Prints only some of its updates. One thread.
package struct ProgressBar {
    enum Style: Sendable, Equatable {
        /// One line, which is redrawn.
        case bar
        case lines
    }

    private let style: Style
    private let write: @Sendable (String) -> Void
    private let start: ContinuousClock.Instant
    private var last: ContinuousClock.Instant?
    private var drawnWidth = 0

    /// `write` gets the text exactly as it should appear, including line ends.
    init(_ style: Style, now: ContinuousClock.Instant = .now, write: @escaping @Sendable (String) -> Void) {
        self.style = style
        self.write = write
        start = now
    }

    /// Writes to standard error: a bar if it is a terminal.
    package static func standardError() -> ProgressBar {
        ProgressBar(isatty(2) == 1 ? .bar : .lines) { writeAll(Array($0.utf8), to: 2) }
    }

    /// A bar is redrawn ten times a second. A log gets a line every ten seconds, and none if the work ends sooner.
    private var interval: Duration { style == .bar ? .milliseconds(100) : .seconds(10) }

    /// - Parameters:
    ///   - fraction: of the whole, 0 to 1.
    ///   - words: further text, made only if it is printed.
    package mutating func update(_ fraction: Double, now: ContinuousClock.Instant = .now, _ words: () -> String) {
        guard now >= (last ?? (style == .bar ? start : start + interval)) + (last == nil ? .zero : interval) else {
            return
        }
        last = now
        let left = Self.timeLeft(fraction, after: start.duration(to: now))
        switch style {
        case .bar: draw(Self.bar(fraction) + " " + words() + (left.map { ", \($0) left" } ?? ""))
        case .lines:
            write("\(Self.percent(fraction)): \(words())" + (left.map { ", about \($0) left" } ?? "") + "\n")
        }
    }

    /// Erases the bar, so that the next message begins on an empty line.
    package mutating func end() {
        guard style == .bar, drawnWidth > 0 else { return }
        draw("")
        write("\r")
    }

    private mutating func draw(_ text: String) {
        // The text before may have been longer.
        write("\r" + padded(text, to: drawnWidth))
        drawnWidth = text.count
    }

    private static func percent(_ fraction: Double) -> String { "\(Int(min(max(fraction, 0), 1) * 100)) %" }

    private static func bar(_ fraction: Double) -> String {
        let width = 24
        let filled = Int(min(max(fraction, 0), 1) * Double(width))
        let drawn = String(repeating: "#", count: filled) + String(repeating: ".", count: width - filled)
        return "[\(drawn)] \(percent(fraction))"
    }

    /// nil while it is too early to estimate.
    private static func timeLeft(_ fraction: Double, after passed: Duration) -> String? {
        guard fraction >= 0.01, fraction < 1, passed >= .seconds(2) else { return nil }
        let seconds = Int((passed.fractionalSeconds * (1 - fraction) / fraction).rounded(.up))
        return seconds < 120 ? "\(seconds) s" : seconds < 7200 ? "\(seconds / 60) min" : "\(seconds / 3600) h"
    }
}
