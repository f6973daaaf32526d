import Testing

@testable import Tools

@Suite struct `A point in time` {
    private let now: Int64 = 1_771_000_000_000

    @Test(arguments: [("30s", 30), ("90m", 5400), ("2h", 7200), ("7d", 604_800), ("0d", 0)])
    func `is a length back from now`(text: String, seconds: Int64) {
        #expect(pointInTime(text, now: now) == now - seconds * 1000)
    }

    // According to GNU date(1).
    @Test(arguments: [
        ("1970-01-01", 0), ("2000-02-29", 951_782_400), ("2024-03-01", 1_709_251_200), ("2026-11-20", 1_795_132_800),
        ("2100-03-01", 4_107_542_400), ("2026-11-20T10:00", 1_795_168_800), ("2026-11-20T10:00:59Z", 1_795_168_859),
    ])
    func `is a day or a moment in UTC`(text: String, seconds: Int64) {
        #expect(pointInTime(text, now: now) == seconds * 1000)
    }

    @Test(arguments: [
        "", "d", "-1d", "1w", "1.5h", "99999999d", "2026-02-29", "2026-13-01", "2026-00-10", "2026-1-1", "2026-11-20Z",
        "2026-11-20T24:00", "2026-11-20T10", "2026-11-20T10:00:60", "2026-11-20 10:00", "20261120", "1969-12-31",
    ])
    func `is nothing else`(text: String) {
        #expect(pointInTime(text, now: now) == nil)
    }
}

@Suite struct `A letter's text` {
    @Test func `moves no cursor and hides nothing`() {
        #expect(printable("a\u{1b}[2Jb\nc\u{9b}d\u{202e}e") == #"a\u{1b}[2Jb\u{a}c\u{9b}d\u{202e}e"#)
        #expect(printable("wrong_app é") == "wrong_app é")
    }
}
