import Contract
import Telemetry
import Testing

@testable import Demo

private func event(_ kind: String, _ number: Int = 1) -> DemoOutputs.Event {
    DemoOutputs.Event(
        at: 1_771_000_000_000, kind: kind, state: "active", originalTransactionId: "200000000000000\(number)")
}

/// A demo in the middle of its run.
private var busy: DemoScene {
    var scene = DemoScene()
    scene.running = .seconds(31)
    scene.storeTime = 1_771_000_000_000
    scene.pace = .running(daysPerSecond: 2.94)
    scene.posts = DemoBoard.Posts(sent: 1234, accepted: 1200, refused: 23)
    scene.postsPerSecond = 57.4
    scene.ingest = "https://127.0.0.1:40001/notifications"
    scene.lag = 3
    scene.latency = (half: 12.34, nearlyAll: 45.6)
    scene.firstOutput = .milliseconds(730)
    scene.subscriptions = 412
    scene.withAccess = 377
    scene.byState = ["active": 350, "grace": 12, "expired": 35, "billing_retry": 0, "novel": 2]
    scene.byKind = ["renewed": 120, "expired": 35, "refunded": 4]
    scene.events = (0..<30).map { event("renewed", $0) }
    scene.questions = ["curl -s http://127.0.0.1:40002/v1/subscriptions/2000000000000001"]
    return scene
}

@Suite struct `The screen of the demo` {
    private func text(_ scene: DemoScene, width: Int = 100, height: Int = 50) -> [String] {
        DemoScreen(width: width, height: height).lines(scene).map(\.text)
    }

    @Test func `shows what came in, what became of it, how long it took and whom to ask`() {
        let screen = text(busy).joined(separator: "\n")
        for words in [
            "2026-02-13 16:26 in the simulated store, 2.9 days a second", "running for 00:31",
            "the log is in memory", "1,234 posts, 57 a second",
            "1,200 accepted, 23 forgeries refused; https://127.0.0.1:40001/notifications",
            "3 behind; 12 ms from POST to this view (median), 99 of 100 within 46 ms",
            "412 subscriptions and purchases, 377 with access", "renewed", "20000000000000029",
            "curl -s http://127.0.0.1:40002/v1/subscriptions/2000000000000001",
        ] {
            #expect(screen.contains(words), "\(words) is missing in\n\(screen)")
        }
    }

    @Test func `has states in the order of a life, those that occur, and unknown ones last`() {
        #expect(busy.states.map(\.name) == ["active", "grace", "expired", "novel"])
    }

    @Test func `shows before anything has come that it is starting`() {
        let screen = text(DemoScene()).joined(separator: "\n")
        #expect(screen.contains("starting"))
        #expect(!screen.contains("curl"))
    }

    @Test func `says when its time goes with the one on the wall, and when it stands still`() {
        var scene = busy
        scene.pace = .present
        #expect(text(scene, width: 80)[0].hasSuffix(", now in real time"))
        scene.pace = .ended
        #expect(text(scene, width: 80)[0].hasSuffix(", no stories are left"))
        var report = DemoReport()
        #expect(report.status(scene)[0].contains("no stories are left"))
    }

    private static let refunds = RefundFigures(
        requests: 1234, waiting: 3, answered: ["mostly used up": 20, "anything else": 1100],
        withheld: ["no_consent": 100, "settled": 9], failed: 1, expired: 1, shortestMargin: 31_560_000,
        outcomes: ["declined": 500, "refunded": 600, "reversed": 7],
        saved: [
            "EUR": .init(amount: 1_234_565, purchases: 9), "JPY": .init(amount: 1_500_500, purchases: 9),
            "USD": .init(amount: 20, purchases: 8), "GBP": .init(amount: 0, purchases: 2),
            "KRW": .init(amount: 1, purchases: 1),
        ])

    @Test func `shows what became of refund requests`() {
        var scene = busy
        #expect(!text(scene).joined().contains("Refunds"), "nobody has asked")
        scene.refunds = Self.refunds
        let screen = text(scene, width: 110)
        for line in [
            "Refunds: 1,234 requests, 3 waiting, 1,120 answered, 109 withheld, 1 failed, 1 expired",
            "  by rule        1,100 anything else, 20 mostly used up", "  withheld       100 no_consent, 9 settled",
            "  Apple decided  600 refunded, 500 declined, 7 reversed; shortest margin to a deadline: 8 h 46 min",
            "  declined after an answer: EUR 1,234.56, JPY 1,500, USD 0.02, GBP 0.00, 1 more currencies",
        ] {
            #expect(screen.contains(line), "\(line)\n\(screen.joined(separator: "\n"))")
        }
    }

    @Test func `has refunds and the commands on the usual terminal`() {
        var scene = busy
        scene.refunds = Self.refunds
        scene.figures = DemoFigures(bridges: [RevenueBridge(currency: "EUR"), RevenueBridge(currency: "USD")])
        scene.questions += ["curl a", "curl b"]
        let lines = text(scene, width: 80, height: 23)
        #expect(lines.contains { $0.hasPrefix("Refunds: 1,234 requests") })
        #expect(lines.contains { $0.hasPrefix("  declined after an answer: EUR 1,234.56") })
        #expect(lines.last == "curl b")
    }

    @Test func `does not hide what should not be`() {
        var scene = busy
        scene.posts.wrong = 2
        scene.posts.comeAgain = 7
        scene.unreadable = 1
        scene.troubles = (0..<5).map { "trouble \($0)" }
        let screen = text(scene, width: 200).joined(separator: "\n")
        #expect(screen.contains("2 ANSWERED WRONGLY") && screen.contains("7 to be retried"))
        #expect(screen.contains("1 records of the worker cannot be read"))
        #expect(screen.contains("trouble 4") && !screen.contains("trouble 1"), "the newest count")
    }

    @Test func `shows what is wrong for as long as it is news, or stays wrong`() {
        let troubles = DemoTroubles()
        let start = ContinuousClock.now
        let health = Health()
        let api = health.condition("api")
        func lines(at now: ContinuousClock.Instant, _ reason: String? = nil) -> [String] {
            if let reason { api.fail(reason) } else { api.pass() }
            return troubles.lines(at: now, standing: health.readiness.reasons, running: start.duration(to: now))
        }
        troubles.add(Array("first\n".utf8), at: start)
        troubles.add(Array("second".utf8), at: start + .seconds(4))
        #expect(lines(at: start + .seconds(5), "starting") == ["first", "second"])
        #expect(lines(at: start + .seconds(10), "starting") == ["second"])
        #expect(lines(at: start + .seconds(11), "still starting") == ["second", "api: still starting"])
        troubles.add(Array("first".utf8), at: start + .seconds(12))
        #expect(lines(at: start + .seconds(14)) == ["first"])
        #expect(lines(at: start + .seconds(60), "behind") == ["api: behind"])
        #expect(lines(at: start + .seconds(61)) == [])
        // As the service reports it at its end.
        _ = health.condition("service", failing: "stopping")
        #expect(lines(at: start + .seconds(62), "behind") == [])
        // For users who ask why it has ended.
        #expect(troubles.lines == ["first", "second", "first"])
    }

    @Test(arguments: [1, 2, 20, 40, 80, 81, 200], [0, 1, 5, 20, 24, 60])
    func `never leaves the screen`(width: Int, height: Int) {
        var scene = busy
        scene.troubles = [String(repeating: "x", count: 500)]
        let lines = text(scene, width: width, height: height)
        #expect(lines.count <= height)
        #expect(lines.allSatisfy { $0.count <= width })
    }

    @Test func `breaks a command as a shell puts it together again`() {
        let lines = text(busy, width: 40, height: 60)
        let first = lines.firstIndex { $0.hasPrefix("curl") } ?? 0
        let joined = lines[first...].map { $0.hasSuffix("\\") ? String($0.dropLast()) : $0 }.joined()
        #expect(joined == busy.questions[0])
    }

    @Test func `gives up events before it gives up the command`() {
        let lines = text(busy, height: 20)
        #expect(lines.contains(busy.questions[0]))
        #expect(lines.count { $0.contains("  renewed") } < 12)
    }
}

@Suite struct `A canvas on a terminal` {
    private let lines = [ScreenLine("one", .title), ScreenLine("two")]

    @Test func `draws over what it has drawn, without clearing it before`() {
        var canvas = TerminalCanvas(isColoured: false)
        #expect(canvas.draw(lines, width: 80) == "one\u{1B}[K\ntwo\u{1B}[K\n\u{1B}[J")
        #expect(canvas.draw([ScreenLine("three")], width: 80) == "\u{1B}[2Fthree\u{1B}[K\n\u{1B}[J")
        #expect(canvas.draw(lines, width: 80).hasPrefix("\u{1B}[1Fone"))
    }

    @Test func `begins anew on a window of another width`() {
        var canvas = TerminalCanvas(isColoured: false)
        _ = canvas.draw(lines, width: 80)
        #expect(canvas.draw(lines, width: 60).hasPrefix("\u{1B}[H\u{1B}[2Jone"))
    }

    @Test func `has colours unless NO_COLOR says otherwise`() {
        var canvas = TerminalCanvas(isColoured: true)
        #expect(canvas.draw(lines, width: 80).contains("\u{1B}[1mone\u{1B}[0m"))
        #expect(TerminalCanvas.isColoured(in: []))
        #expect(TerminalCanvas.isColoured(in: [("NO_COLOR", "")]))
        #expect(!TerminalCanvas.isColoured(in: [("NO_COLOR", "1")]))
    }
}

@Suite struct `The report of the demo` {
    @Test func `tells the first entitlements and the commands once, when they are there`() {
        var report = DemoReport()
        #expect(report.news(DemoScene()).isEmpty)
        let news = report.news(busy)
        #expect(news.first == "first entitlements after 0.7 s")
        #expect(news.contains(busy.questions[0]))
        #expect(report.news(busy).isEmpty)
    }

    @Test func `tells what happened since it was asked last`() {
        var report = DemoReport()
        #expect(report.status(busy).last == "  events: 120 renewed, 35 expired, 4 refunded")
        var later = busy
        later.byKind["refunded"] = 6
        #expect(report.status(later).last == "  events: 2 refunded")
        #expect(report.status(later).count == 2, "nothing has happened since")
    }

    @Test func `tells of refunds what the screen tells`() {
        var scene = busy
        scene.refunds = RefundFigures(
            requests: 2, answered: ["anything else": 1], withheld: ["no_consent": 1], shortestMargin: 59_999,
            outcomes: ["declined": 2], saved: ["EUR": .init(amount: 9990, purchases: 1)])
        let lines = [
            "refunds: 2 requests, 0 waiting, 1 answered, 1 withheld", "answered by rule: 1 anything else",
            "withheld: 1 no_consent", "shortest margin to a deadline: 0 h 0 min", "Apple decided: 2 declined",
            "declined after an answer: EUR 9.99",
        ]
        var report = DemoReport()
        let status = report.status(scene)
        for line in lines { #expect(status.contains("  \(line)"), "\(line) is missing in \(status)") }
        #expect(DemoReport.summary(scene).filter(lines.contains) == lines)
    }

    @Test func `says at the end how it stood`() {
        let summary = DemoReport.summary(busy)
        #expect(summary[0] == "ended after 00:31: 1,234 posts, 1,200 accepted, 23 forgeries refused")
        #expect(
            summary[1] == "412 subscriptions and purchases, 377 with access: 350 active, 12 grace, 35 expired, 2 novel")
    }
}

@Suite struct `What the demo reads of the worker` {
    private func record(_ state: String, access: Bool, cause: String? = nil, token: String? = nil) -> [UInt8] {
        let causeText = cause.map { #"{"notificationUUID":"\#($0)"}"# } ?? "null"
        let tokenText = token.map { #""\#($0)""# } ?? "null"
        return Array(
            #"{"originalTransactionId":"1","state":"\#(state)","access":\#(access),"appAccountToken":\#(tokenText),"cause":\#(causeText)}"#
                .utf8)
    }

    @Test func `counts each subscription once, in its newest state`() {
        var outputs = DemoOutputs()
        #expect(outputs.take(entitlement: record("active", access: true, cause: "u"), key: [1]) == "u")
        #expect(outputs.take(entitlement: record("active", access: true), key: [2]) == nil)
        _ = outputs.take(entitlement: record("expired", access: false), key: [1])
        #expect(outputs.byState == ["active": 1, "expired": 1])
        #expect(outputs.subscriptionCount == 2 && outputs.withAccess == 1)
        _ = outputs.take(entitlement: nil, key: [2])
        #expect(outputs.subscriptionCount == 1 && outputs.withAccess == 0)
    }

    @Test func `offers one to ask about that has access and an account`() {
        var outputs = DemoOutputs()
        _ = outputs.take(entitlement: record("active", access: true), key: [1])
        _ = outputs.take(entitlement: record("expired", access: false, token: "t"), key: [1])
        #expect(outputs.example == nil)
        _ = outputs.take(entitlement: record("active", access: true, token: "t"), key: [1])
        #expect(outputs.example?.appAccountToken == "t")
    }

    @Test(arguments: [
        "", "{", "[]", "null", #"{"state":1,"access":true}"#, #"{"state":"active","access":"yes"}"#, "\u{0}",
    ])
    func `counts what it cannot read, and goes on`(_ text: String) {
        var outputs = DemoOutputs()
        #expect(outputs.take(entitlement: Array(text.utf8), key: [1]) == nil)
        outputs.take(event: Array(text.utf8))
        #expect(outputs.unreadable == 2 && outputs.subscriptionCount == 0 && outputs.events.isEmpty)
    }

    @Test func `keeps the newest events only, and counts all of them`() {
        var outputs = DemoOutputs()
        for number in 0..<1000 {
            outputs.take(
                event: Array(
                    #"{"kind":"renewed","at":\#(number),"originalTransactionId":"1","after":{"state":"active"}}"#.utf8))
        }
        #expect(outputs.byKind == ["renewed": 1000])
        #expect(outputs.events.count <= 64 && outputs.events.last?.at == 999)
    }

    @Test func `tells how long a notification took from its first post to its output`() {
        let board = DemoBoard()
        let start = ContinuousClock.now
        #expect(board.latency == nil)
        board.sending("a", at: start, waitsForOutput: true)
        board.sending("a", at: start + .seconds(1), waitsForOutput: true)
        board.sending("b", at: start, waitsForOutput: false)
        board.committed("a", at: start + .milliseconds(1500))
        board.committed("a", at: start + .seconds(9))
        board.committed("b", at: start + .seconds(9))
        #expect(board.latency?.half == 1500 && board.latency?.nearlyAll == 1500)
        #expect(board.posts.sent == 3)
    }

    @Test func `adds figures up over the labels of a series`() {
        let page = MetricsReading(
            Array("# HELP lag records\n# TYPE lag gauge\nlag{p=\"0\"} 2\nlag{p=\"1\"} 3\nlag_seconds 7\n".utf8))
        #expect(page.sum(of: "lag") == 5)
        #expect(page.sum(of: "lag_seconds") == 7)
        #expect(page.sum(of: "la") == nil)
    }

    @Test func `tells the lag of each worker`() {
        let page = MetricsReading(
            Array(
                """
                perennial_lag_records{partition="0",topic="t",worker="entitlements"} 2
                perennial_lag_records{partition="1",topic="t",worker="entitlements"} 3
                perennial_lag_records{partition="0",topic="t",worker="churn"} 7

                """.utf8))
        #expect(page.lag(of: .entitlements) == 5 && page.lag(of: .churn) == 7)
        #expect(page.lag(of: .consumption) == nil)
    }
}
