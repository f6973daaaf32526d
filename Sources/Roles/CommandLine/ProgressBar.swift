// How far a tool is: a bar for a terminal, lines now and then for a log.

import Glibc
import Platform

/// Told often, says little. One thread.
struct ProgressBar {
    enum Style: Sendable, Equatable {
        /// One line, drawn again and again.
        case bar
        case lines
    }

    private let style: Style
    private let write: @Sendable (String) -> Void
    private let start: ContinuousClock.Instant
    private var last: ContinuousClock.Instant?
    private var drawnWidth = 0

    /// `write` is given text as it is to appear, line ends included.
    init(_ style: Style, now: ContinuousClock.Instant = .now, write: @escaping @Sendable (String) -> Void) {
        self.style = style
        self.write = write
        start = now
    }

    /// To the people in front of standard error: a bar when it is a terminal.
    static func standardError() -> ProgressBar {
        ProgressBar(isatty(2) == 1 ? .bar : .lines) { writeAll(Array($0.utf8), to: 2) }
    }

    /// A bar moves ten times a second; a log gets a line every ten seconds, and none of what is over sooner.
    private var interval: Duration { style == .bar ? .milliseconds(100) : .seconds(10) }

    /// - Parameters:
    ///   - fraction: of the whole, 0 to 1.
    ///   - words: what else there is to say, made only when it is said.
    mutating func update(_ fraction: Double, now: ContinuousClock.Instant = .now, _ words: () -> String) {
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

    /// Takes the bar away, so that what follows begins on an empty line.
    mutating func end() {
        guard style == .bar, drawnWidth > 0 else { return }
        draw("")
        write("\r")
    }

    private mutating func draw(_ text: String) {
        // What stood there before may have been longer.
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

    /// nil while there is too little to judge by.
    private static func timeLeft(_ fraction: Double, after passed: Duration) -> String? {
        guard fraction >= 0.01, fraction < 1, passed >= .seconds(2) else { return nil }
        let seconds = Int((passed.fractionalSeconds * (1 - fraction) / fraction).rounded(.up))
        return seconds < 120 ? "\(seconds) s" : seconds < 7200 ? "\(seconds / 60) min" : "\(seconds / 3600) h"
    }
}
