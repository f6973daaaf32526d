import Synchronization
import Testing

@testable import CommandLine

@Suite struct `A progress bar` {
    private let start = ContinuousClock.now

    /// What it writes when it gets these fractions at these seconds.
    private func written(_ style: ProgressBar.Style, _ steps: [(seconds: Double, fraction: Double)], ends: Bool = false)
        -> String
    {
        let text = Mutex("")
        var progress = ProgressBar(style, now: start) { part in text.withLock { $0 += part } }
        for step in steps { progress.update(step.fraction, now: start + .seconds(step.seconds)) { "words" } }
        if ends { progress.end() }
        return text.withLock { $0 }
    }

    @Test func `is one line in a log every ten seconds, and none of what is over sooner`() {
        #expect(written(.lines, [(0, 0), (5, 0.5), (9.9, 0.9)], ends: true) == "")
        let lines = written(.lines, (0...30).map { (Double($0), Double($0) / 40) })
        #expect(
            lines == "25 %: words, about 30 s left\n50 %: words, about 20 s left\n75 %: words, about 10 s left\n")
    }

    @Test func `is a bar on a terminal, ten times a second, and gone at the end`() {
        #expect(written(.bar, [(0, 0)]) == "\r[........................] 0 % words")
        #expect(written(.bar, [(0, 0), (0.05, 1)]) == "\r[........................] 0 % words")
        let drawn = written(.bar, [(0, 0), (10, 0.5)], ends: true)
        let last = "[############............] 50 % words, 10 s left"
        #expect(drawn.hasSuffix("\r\(last)\r\(String(repeating: " ", count: last.count))\r"))
    }

    @Test func `covers what stood there before`() {
        let text = written(.bar, [(0, 0), (10, 0.5), (20, 1)])
        let widths = text.split(separator: "\r").map(\.count)
        #expect(widths[2] == widths[1])
    }

    @Test(arguments: [-1, 0, 0.5, 1, 2, Double.infinity]) func `stays within its bar`(_ fraction: Double) {
        let text = written(.bar, [(3, fraction)])
        #expect(text.filter { $0 == "#" || $0 == "." }.count == 24)
    }
}
