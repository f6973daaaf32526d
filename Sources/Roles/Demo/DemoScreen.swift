// The demo on a terminal: from a scene to lines.

import CommandLine
import Telemetry

struct ScreenLine: Equatable {
    enum Style { case plain, title, faint, warning }

    var text: String
    var style = Style.plain

    init(_ text: String, _ style: Style = .plain) {
        self.text = text
        self.style = style
    }
}

/// A pure function of scene and size. No line is wider than the screen, and there are never more lines than rows.
struct DemoScreen {
    let width: Int
    let height: Int

    private static let labelWidth = 15
    private static let currencyWidth = 3
    /// Fixed widths of columns, so that they do not move when numbers change. Together they are less than the usual 80.
    private static let amountWidth = 10
    private static let stepWidth = 8
    /// Events that are shown at most: on a tall screen, more events would only scroll by.
    private static let limitEvents = 12
    private static let limitTroubles = 3

    /// From tall screens to low ones.
    private enum Layout: CaseIterable {
        case roomy
        /// Words in place of bars.
        case close
        /// Words in place of bars, and no empty lines.
        case dense
    }

    func lines(_ scene: DemoScene) -> [ScreenLine] {
        // The most important lines are first and last; events fill the rest.
        let bottom = troubles(scene) + questions(scene)
        var lines: [ScreenLine] = []
        for layout in Layout.allCases {
            let top = top(scene, layout)
            let empty = layout == .dense ? [] : [ScreenLine("")]
            let end = bottom.isEmpty ? [] : empty + bottom
            let room = height - top.count - end.count - empty.count - 1
            let shown = scene.events.suffix(max(0, min(room, Self.limitEvents)))
            let events = shown.isEmpty ? [] : empty + [ScreenLine("Last events", .title)] + shown.map(line)
            lines = top + events + end
            if room > 0 { break }
        }
        return lines.prefix(max(0, height)).map(cut)
    }

    private func top(_ scene: DemoScene, _ layout: Layout) -> [ScreenLine] {
        let empty = [ScreenLine("")]
        let (head, flow) = (head(scene), flow(scene, layout))
        let blocks = [counts(scene), refunds(scene, layout)].filter { !$0.isEmpty }
        switch layout {
        case .roomy:
            return head + empty + flow + empty + title(scene) + bars(scene) + blocks.flatMap { empty + $0 }
        case .close:
            return head + flow + empty + title(scene) + words(scene) + blocks.flatMap { empty + $0 }
        case .dense: return head + flow + title(scene) + words(scene) + blocks.flatMap(\.self)
        }
    }

    private func head(_ scene: DemoScene) -> [ScreenLine] {
        return [
            ScreenLine(
                "Perennial demo   \(day(scene.storeTime)) \(timeOfDay(scene.storeTime)) in the simulated store, \(scene.pace.words)",
                .title),
            ScreenLine("running for \(clockText(scene.running)), the log is \(scene.log); Ctrl-C ends it", .faint),
        ]
    }

    private func flow(_ scene: DemoScene, _ layout: Layout) -> [ScreenLine] {
        let posts = scene.posts
        var answers = "\(grouped(posts.accepted)) accepted, \(grouped(posts.refused)) forgeries refused"
        if posts.comeAgain > 0 { answers += ", \(grouped(posts.comeAgain)) to be retried" }
        if posts.wrong > 0 { answers += ", \(grouped(posts.wrong)) ANSWERED WRONGLY" }
        let latency =
            scene.latency.map {
                "\(rounded($0.half)) ms from POST to this view (median), 99 of 100 within \(rounded($0.nearlyAll)) ms"
            } ?? "nothing written yet"
        return [
            row(
                "App Store",
                "\(grouped(posts.sent)) posts, \(rounded(scene.postsPerSecond)) a second, repetitions and forgeries among them"
            ),
            row("ingest", scene.ingest.map { "\(answers); \($0)" } ?? "starting"),
            row("entitlements", scene.lag.map { "\(grouped($0)) behind; \(latency)" } ?? latency),
            row(
                "churn",
                (scene.churnLag.map { "\(grouped($0)) behind; " } ?? "")
                    + (scene.figures.map { "\(grouped($0.cells)) cells" } ?? "nothing counted yet")),
        ]
            // Without room, only its figures are shown.
            + (layout == .dense
                ? [] : [row("consumption", scene.consumptionLag.map { "\(grouped($0)) behind" } ?? "starting")])
            // When the API answers, the questions below show it.
            + (scene.questions.isEmpty ? [row("api", "starting")] : [])
    }

    private func title(_ scene: DemoScene) -> [ScreenLine] {
        [
            ScreenLine(
                "\(grouped(scene.subscriptions)) subscriptions and purchases, \(grouped(scene.withAccess)) with access",
                .title)
        ]
    }

    private func bars(_ scene: DemoScene) -> [ScreenLine] {
        let most = max(1, scene.states.map(\.count).max() ?? 1)
        let bar = max(0, min(50, width - Self.labelWidth - 12))
        return scene.states.map { name, count in
            let filled = (count * bar + most - 1) / most
            return row(name, padded(grouped(count), to: 8) + String(repeating: "#", count: filled))
        }
    }

    /// As many states in a line as fit.
    private func words(_ scene: DemoScene) -> [ScreenLine] {
        var lines: [String] = []
        for (name, count) in scene.states {
            let word = "\(grouped(count)) \(name)"
            if let last = lines.last, last.count + word.count + 3 <= width {
                lines[lines.count - 1] = "\(last), \(word)"
            } else {
                if let last = lines.popLast() { lines.append("\(last),") }
                lines.append("  \(word)")
            }
        }
        return lines.map { ScreenLine($0) }
    }

    private func counts(_ scene: DemoScene) -> [ScreenLine] {
        guard let figures = scene.figures else { return [] }
        return [
            ScreenLine("Churn: \(figures.standing)", .title),
            row("recovery rate", figures.recovery ?? "no failed payment is decided yet"),
        ] + table(figures.bridges)
    }

    private func refunds(_ scene: DemoScene, _ layout: Layout) -> [ScreenLine] {
        guard let figures = scene.refunds else { return [] }
        let title = ScreenLine("Refunds: \(figures.standing)", .title)
        let saved = ScreenLine("  declined after an answer: \(figures.amounts ?? "nothing yet")")
        guard layout != .dense else { return [title, saved] }
        let margin = figures.margin.map { "; shortest margin to a deadline: \($0)" } ?? ""
        return [
            title, row("by rule", figures.rules ?? "nothing answered yet"),
            row("withheld", figures.reasons ?? "none"),
            row("Apple decided", (figures.decisions ?? "nothing yet") + margin), saved,
        ]
    }

    /// In each line, the amount now is the amount at midnight plus the steps.
    private func table(_ bridges: [RevenueBridge]) -> [ScreenLine] {
        guard let first = bridges.first else { return [] }
        let hasOther = bridges.contains { $0.other != 0 }
        func isShown(_ step: String) -> Bool { step != RevenueBridge.otherName || hasOther }
        let head = ["now", "midnight"] + first.written.steps.map(\.name).filter(isShown)
        let rows = bridges.map { bridge in
            let written = bridge.written
            return [written.end, written.start] + written.steps.filter { isShown($0.name) }.map(\.amount)
        }
        let widths = head.indices.map { column in
            ([head] + rows).reduce(column < 2 ? Self.amountWidth : Self.stepWidth) { max($0, $1[column].count) }
        }
        func line(_ label: String, _ cells: [String]) -> String {
            "  " + padded(label, to: Self.currencyWidth)
                + zip(cells, widths).map { " " + String(repeating: " ", count: $1 - $0.count) + $0 }.joined()
        }
        return [ScreenLine(line("MRR", head), .faint)]
            + zip(bridges, rows).map { ScreenLine(line($0.currency, $1)) }
    }

    private func line(_ event: DemoOutputs.Event) -> ScreenLine {
        ScreenLine(
            "  \(day(event.at)) \(timeOfDay(event.at))  \(padded(event.kind, to: 24))\(padded(event.state, to: 15))"
                + event.originalTransactionId)
    }

    private func troubles(_ scene: DemoScene) -> [ScreenLine] {
        var lines = scene.troubles.suffix(Self.limitTroubles).map { ScreenLine($0, .warning) }
        if scene.unreadable > 0 {
            lines.append(ScreenLine("\(grouped(scene.unreadable)) records of the worker cannot be read", .warning))
        }
        return lines
    }

    private func questions(_ scene: DemoScene) -> [ScreenLine] {
        guard !scene.questions.isEmpty else { return [] }
        return [ScreenLine("Ask the API, in another terminal:", .title)] + scene.questions.flatMap(command)
    }

    /// A command is never cut: on a narrow screen it continues in the next line, after a backslash.
    private func command(_ text: String) -> [ScreenLine] {
        var rest = Substring(text)
        var lines: [ScreenLine] = []
        while rest.count > max(width, 2) {
            lines.append(ScreenLine(rest.prefix(max(width, 2) - 1) + "\\"))
            rest = rest.dropFirst(max(width, 2) - 1)
        }
        return lines + [ScreenLine(String(rest))]
    }

    private func row(_ label: String, _ text: String) -> ScreenLine {
        ScreenLine("  " + padded(label, to: Self.labelWidth) + text)
    }

    private func cut(_ line: ScreenLine) -> ScreenLine {
        line.text.count <= width ? line : ScreenLine(String(line.text.prefix(max(0, width))), line.style)
    }
}

/// `2026-03-01`
func day(_ time: Int64) -> String { String(rfc3339(milliseconds: time).prefix(10)) }
/// `09:30`
func timeOfDay(_ time: Int64) -> String { String(rfc3339(milliseconds: time).dropFirst(11).prefix(5)) }
