import Contract
import Testing

@testable import Demo

private func cell(
    _ day: String, _ currency: String, counts: String = "", money: String = "", partition: Int = 0
) -> [UInt8] {
    Array(
        """
        {"v":1,"partition":\(partition),"day":"\(day)","bundleId":"a.b","productId":"p","billingPlan":null,\
        "storefront":"DEU","currency":"\(currency)","counts":{\(counts)},"money":{\(money)},"asOf":1,"offset":2}
        """.utf8)
}

/// The figures after records with these keys, in order.
private func counted(_ records: [(key: UInt8, value: [UInt8]?)]) -> (figures: DemoFigures?, unreadable: Int) {
    var counts = DemoCounts()
    for record in records { counts.take(cell: record.value, key: [record.key]) }
    return (counts.figures(today: today), counts.unreadable)
}

private let today = CivilDay(year: 2026, month: 2, day: 13)

@Suite struct `What the demo reads of the counts` {
    @Test func `are the last records of the cells, added up over partitions and days`() throws {
        #expect(counted([]).figures == nil)
        let january = #""activeDelta":6,"trialDelta":2,"failed":9,"failedOpen":2,"earlyRecovered":1,"retryLost":3"#
        let february = #""activeDelta":-1,"graceDelta":4,"retryDelta":5,"graceRecovered":1,"retryRecovered":2"#
        let (counted, unreadable) = counted([
            (1, cell("2026-01-31", "EUR", counts: #""activeDelta":7,"trialDelta":3,"failed":9,"failedOpen":9"#)),
            // The same day again, another partition, and a cell that has returned to zero.
            (1, cell("2026-01-31", "EUR", counts: january)),
            (2, cell("2026-02-13", "USD", counts: february, partition: 3)),
            (3, cell("2026-02-13", "USD", counts: #""activeDelta":100,"failed":50"#)),
            (3, nil),
        ])
        let figures = try #require(counted)
        #expect([figures.cells, figures.active, figures.trials, figures.inGrace, figures.inRetry] == [2, 5, 2, 4, 5])
        #expect([figures.recovered, figures.failed, figures.undecided] == [4, 9, 2])
        #expect(figures.recovery == "57.1 % = 4 recovered / (9 failed - 2 undecided)")
        #expect(unreadable == 0)
    }

    @Test func `lead from midnight to now, every step under its name`() throws {
        let steps: [(String, Int64)] = [
            ("mrrNew", 1), ("mrrReactivation", 20), ("mrrRecovery", 300), ("mrrExpansion", 4000),
            ("mrrContraction", -50_000), ("mrrVoluntary", -600_000), ("mrrBilling", -7_000_000),
            ("mrrPrice", -80_000_000), ("mrrRefund", -900_000_000), ("mrrOther", -1_000_000_000),
            ("mrrMoved", 20_000_000_000), ("mrrAdopted", 300_000_000_000),
        ]
        let money = steps.map { #""\#($0.0)":\#($0.1)"# }.joined(separator: ",")
        let figures = counted([
            (1, cell("2026-02-13", "EUR", counts: #""activeDelta":1"#, money: money)),
            (2, cell("2026-02-12", "EUR", money: #""mrrNew":5,"mrrBilling":-2,"revenue":99"#)),
        ]).figures
        let bridge = try #require(figures?.bridges.first)
        #expect(
            bridge
                == RevenueBridge(
                    currency: "EUR", start: 3, new: 1, wonBack: 320, expansion: 4000, contraction: -50_000,
                    churn: -1_987_600_000, other: 320_000_000_000))
        #expect(bridge.end == 3 + steps.reduce(0) { $0 + $1.1 })
    }

    @Test func `show the two currencies that most customers pay in, whatever the amounts`() {
        let currencies = [("KRW", 2), ("EUR", 9), ("USD", 3), ("CHF", 0), ("GBP", 3)]
        let records = currencies.enumerated().map { number, currency in
            let counts = #""activeDelta":\#(currency.1)"#
            return (
                key: UInt8(number),
                value: Optional(cell("2026-02-13", currency.0, counts: counts, money: #""mrrNew":9000000"#))
            )
        }
        #expect(counted(records).figures?.bridges.map(\.currency) == ["EUR", "GBP"])
    }

    @Test func `tell how many records cannot be read`() {
        let texts = ["", "{", "[]", "null", #"{"v":1}"#, #"{"partition":0,"day":"2026-02-30","asOf":1,"offset":1}"#]
        let (figures, unreadable) = counted(texts.map { (1, Array($0.utf8)) })
        #expect(unreadable == 6 && figures == nil)
    }
}

@Suite struct `The written monthly revenue` {
    @Test func `adds up as it is written, however the thousandths fall`() {
        var bridge = RevenueBridge(currency: "EUR", start: 1_234_566)
        (bridge.new, bridge.wonBack, bridge.expansion, bridge.contraction) = (4_166, 4_166, 4_166, -833)
        bridge.churn = -12_345_678
        // If each were rounded by itself, the sum would be -11,099.43.
        #expect(
            bridge.words
                == "EUR -11,099.45 = 1,234.57 at midnight +4.16 new +4.17 won back +4.16 expansion -0.83 contraction "
                + "-12,345.68 churn")
        for end in Int64(-30)...30 {
            for step in Int64(-30)...30 {
                let bridge = RevenueBridge(currency: "EUR", start: end - step, new: step, churn: -7)
                let written = bridge.written
                let sum = ([written.start] + written.steps.map(\.amount)).reduce(0) { $0 + hundredths($1) }
                #expect(sum == hundredths(written.end), "\(bridge)")
            }
        }
    }

    @Test func `has no hundredths where the currency has none, and no steps of nothing`() {
        let bridge = RevenueBridge(currency: "KRW", start: 11_900_000, new: 23_900_000)
        #expect(bridge.words == "KRW 35,800 = 11,900 at midnight +23,900 new")
        #expect(RevenueBridge(currency: "USD").words == "USD 0.00 = 0.00 at midnight")
    }

    @Test func `is rounded half to even`() {
        for (amount, text) in [
            (10_125, "10.12"), (10_126, "10.13"), (10_135, "10.14"), (-10_125, "-10.12"), (-10_135, "-10.14"),
            (5, "0.00"),
        ] as [(Int64, String)] {
            #expect(RevenueBridge(currency: "EUR", start: amount).written.start == text)
        }
    }

    private func hundredths(_ text: String) -> Int { Int(text.filter { $0 != "." && $0 != "," && $0 != "+" }) ?? .min }
}

@Suite struct `The counts on the screen of the demo` {
    private var scene: DemoScene {
        var scene = DemoScene()
        scene.storeTime = 1_771_000_000_000
        scene.subscriptions = 412
        scene.withAccess = 377
        scene.byState = [
            "active": 3500, "grace": 120, "billing_retry": 340, "expired": 3500, "superseded": 800, "revoked": 99,
            "owned": 230,
        ]
        scene.ingest = "https://127.0.0.1:40001/in"
        scene.churnLag = 2
        scene.events = (0..<30).map {
            DemoOutputs.Event(at: 1_771_000_000_000, kind: "renewed", state: "active", originalTransactionId: "\($0)")
        }
        scene.questions = ["curl -s one", "curl -s two", "curl -s three"]
        scene.figures = DemoFigures(
            cells: 1234, active: 3488, trials: 12, inGrace: 120, inRetry: 340, recovered: 412, failed: 1210,
            undecided: 460,
            bridges: [
                RevenueBridge(
                    currency: "EUR", start: 23_456_780, new: 119_880, wonBack: 7990, churn: -12_990),
                RevenueBridge(
                    currency: "KRW", start: 14_982_000_000, expansion: 11_900_000, contraction: -23_900_000),
            ])
        return scene
    }

    @Test func `fit with all else on the smallest screen`() {
        let lines = DemoScreen(width: 80, height: 23).lines(scene).map(\.text)
        #expect(
            lines[2...] == [
                "  App Store      0 posts, 0.0 a second, repetitions and forgeries among them",
                "  ingest         0 accepted, 0 forgeries refused; https://127.0.0.1:40001/in",
                "  entitlements   nothing written yet",
                "  churn          2 behind; 1,234 cells",
                "412 subscriptions and purchases, 377 with access",
                "  3,500 active, 120 grace, 340 billing_retry, 3,500 expired, 800 superseded,",
                "  99 revoked, 230 owned",
                "Churn: 3,488 active, 12 on trial, 120 in grace, 340 in billing retry",
                "  recovery rate  54.9 % = 412 recovered / (1,210 failed - 460 undecided)",
                "  MRR        now   midnight      new won back expansion contraction    churn",
                "  EUR  23,571.66  23,456.78  +119.88    +7.99      0.00        0.00   -12.99",
                "  KRW 14,970,000 14,982,000        0        0   +11,900     -23,900        0",
                "Last events",
                "  2026-02-13 16:26  renewed                 active         26",
                "  2026-02-13 16:26  renewed                 active         27",
                "  2026-02-13 16:26  renewed                 active         28",
                "  2026-02-13 16:26  renewed                 active         29",
                "Ask the API, in another terminal:",
                "curl -s one",
                "curl -s two",
                "curl -s three",
            ])
    }

    @Test func `leave bars their room on a tall screen, and need no empty lines on a low one`() {
        let tall = DemoScreen(width: 80, height: 40).lines(scene).map(\.text)
        #expect(tall.contains { $0.hasPrefix("  billing_retry  340     ####") })
        #expect(tall.contains("  recovery rate  54.9 % = 412 recovered / (1,210 failed - 460 undecided)"))
        let low = DemoScreen(width: 80, height: 20).lines(scene).map(\.text)
        #expect(low.count == 20 && !low.contains(""))
        #expect(low.contains("Last events") && low.last == "curl -s three")
    }

    @Test func `show a step that has no name only when there is one`() {
        var moved = scene
        moved.figures?.bridges[0].other = -10
        let lines = DemoScreen(width: 100, height: 40).lines(moved).map(\.text)
        #expect(lines.contains { $0.hasPrefix("  MRR ") && $0.hasSuffix("    churn    other") })
        #expect(lines.contains { $0.hasPrefix("  EUR ") && $0.hasSuffix("   -12.99    -0.01") })
    }

    @Test func `claim no rate before anything is decided`() {
        var early = scene
        early.figures?.undecided = 1210
        #expect(early.figures?.recovery == nil)
        let lines = DemoScreen(width: 80, height: 40).lines(early).map(\.text)
        #expect(lines.contains("  recovery rate  no failed payment is decided yet"))
        early.figures = nil
        let without = DemoScreen(width: 80, height: 40).lines(early).map(\.text)
        #expect(without.contains("  churn          2 behind; nothing counted yet"))
        #expect(!without.contains { $0.contains("MRR") })
    }

    @Test func `are lines of the report, and of its end`() {
        let counted = [
            "churn: 3,488 active, 12 on trial, 120 in grace, 340 in billing retry; "
                + "recovery 54.9 % = 412 recovered / (1,210 failed - 460 undecided)",
            "MRR of 2026-02-13: EUR 23,571.66 = 23,456.78 at midnight +119.88 new +7.99 won back -12.99 churn",
            "MRR of 2026-02-13: KRW 14,970,000 = 14,982,000 at midnight +11,900 expansion -23,900 contraction",
        ]
        var report = DemoReport()
        #expect(report.status(scene).suffix(3) == counted.map { "  " + $0 })
        #expect(DemoReport.summary(scene).suffix(3) == counted[...])
    }
}
