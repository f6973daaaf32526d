// The demo without a terminal: a few lines every five seconds.

import Platform

/// Makes lines from scenes. Pure.
struct DemoReport {
    private var toldFirst = false
    private var toldQuestions = false
    private var toldKinds: [String: Int] = [:]

    /// Lines about what happened for the first time since the last call.
    mutating func news(_ scene: DemoScene) -> [String] {
        var lines: [String] = []
        if !toldFirst, let first = scene.firstOutput {
            toldFirst = true
            lines.append("first entitlements after \(rounded(first.fractionalSeconds)) s")
        }
        if !toldQuestions, !scene.questions.isEmpty {
            toldQuestions = true
            lines += ["ask the API, in another terminal:"] + scene.questions
        }
        return lines
    }

    /// The current state, and what happened since the last call.
    mutating func status(_ scene: DemoScene) -> [String] {
        let posts = scene.posts
        var parts = [
            "\(clockText(scene.running))  \(day(scene.storeTime)) in the store, \(scene.pace.words)",
            "\(grouped(posts.sent)) posts (\(rounded(scene.postsPerSecond))/s), \(grouped(posts.accepted)) accepted, "
                + "\(grouped(posts.refused)) forgeries refused",
        ]
        if posts.comeAgain > 0 { parts.append("\(grouped(posts.comeAgain)) to be retried") }
        if posts.wrong > 0 { parts.append("\(grouped(posts.wrong)) answered wrongly") }
        if let lag = scene.lag { parts.append("\(grouped(lag)) behind") }
        if let latency = scene.latency {
            parts.append(
                "POST to this report \(rounded(latency.half)) ms (median), 99 of 100 within \(rounded(latency.nearlyAll)) ms"
            )
        }
        var lines = [parts.joined(separator: "; ")]
        if scene.subscriptions > 0 { lines.append("  \(Self.standing(scene))") }
        lines += (Self.counted(scene) + Self.refunds(scene)).map { "  \($0)" }
        let new = scene.kinds.compactMap { kind -> String? in
            let count = kind.count - toldKinds[kind.name, default: 0]
            return count > 0 ? "\(grouped(count)) \(kind.name)" : nil
        }
        toldKinds = scene.byKind
        if !new.isEmpty { lines.append("  events: " + new.joined(separator: ", ")) }
        return lines
    }

    /// The last lines, also on a terminal.
    static func summary(_ scene: DemoScene) -> [String] {
        let posts = scene.posts
        var lines = [
            "ended after \(clockText(scene.running)): \(grouped(posts.sent)) posts, "
                + "\(grouped(posts.accepted)) accepted, \(grouped(posts.refused)) forgeries refused",
            standing(scene),
        ]
        lines += counted(scene) + refunds(scene)
        if !scene.kinds.isEmpty {
            lines.append("events: " + scene.kinds.map { "\(grouped($0.count)) \($0.name)" }.joined(separator: ", "))
        }
        if posts.wrong > 0 { lines.append("\(grouped(posts.wrong)) forgeries accepted, or refused for a wrong reason") }
        if scene.unreadable > 0 { lines.append("\(grouped(scene.unreadable)) records of the worker cannot be read") }
        return lines
    }

    private static func counted(_ scene: DemoScene) -> [String] {
        guard let figures = scene.figures else { return [] }
        var lines = ["churn: \(figures.standing)" + (figures.recovery.map { "; recovery \($0)" } ?? "")]
        lines += figures.bridges.map { "MRR of \(day(scene.storeTime)): \($0.words)" }
        return lines
    }

    private static func refunds(_ scene: DemoScene) -> [String] {
        guard let figures = scene.refunds else { return [] }
        var lines = ["refunds: \(figures.standing)"]
        if let rules = figures.rules { lines.append("answered by rule: \(rules)") }
        if let reasons = figures.reasons { lines.append("withheld: \(reasons)") }
        if let margin = figures.margin { lines.append("shortest margin to a deadline: \(margin)") }
        if let decisions = figures.decisions { lines.append("Apple decided: \(decisions)") }
        if let amounts = figures.amounts { lines.append("declined after an answer: \(amounts)") }
        return lines
    }

    private static func standing(_ scene: DemoScene) -> String {
        let states = scene.states.map { "\(grouped($0.count)) \($0.name)" }.joined(separator: ", ")
        return "\(grouped(scene.subscriptions)) subscriptions and purchases, \(grouped(scene.withAccess)) with access"
            + (states.isEmpty ? "" : ": \(states)")
    }
}
