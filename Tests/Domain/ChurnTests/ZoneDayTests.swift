// Days of a zone with daylight saving time. The instants are written out from the law; a failure message names the version of the
// zone's data.

import Churn
import Configuration
import Testing
import Zone

@Suite struct `Days of a zone` {
    /// Berlin: an hour ahead of UTC, two from the 29th of March at 1:00 UTC to the 25th of October at 1:00 UTC.
    private let berlin: Zone

    init() throws {
        berlin = try Zone(name: "Europe/Berlin")
        #expect(berlin.dataVersion.wholeMatch(of: /[0-9]{4}[a-z]/) != nil, "\(berlin.fingerprint)")
    }

    @Test(
        arguments: [
            // The day in March has 23 hours, from 23:00 UTC to 22:00 UTC.
            (instant(3, 28, 23) - 1, "2026-03-28"), (instant(3, 28, 23), "2026-03-29"),
            (instant(3, 29, 22) - 1, "2026-03-29"), (instant(3, 29, 22), "2026-03-30"),
            // The day in October has 25, from 22:00 UTC to 23:00 UTC.
            (instant(10, 24, 22) - 1, "2026-10-24"), (instant(10, 24, 22), "2026-10-25"),
            (instant(10, 25, 23) - 1, "2026-10-25"), (instant(10, 25, 23), "2026-10-26"),
        ] as [(Int64, String)])
    func `started on the day that it is there`(_ at: Int64, _ day: String) throws {
        var story = WrittenStory()
        // Thirty days: within two days of a month.
        story.begins(row("1", at, at + 30 * 24 * hour))
        try story.expect(at: at, [Cell(day): bought], zone: berlin)
    }

    @Test func `renewed over a year with both changes, on the 28th in winter and the 29th in summer`() throws {
        var story = WrittenStory()
        for month in 1...12 {
            let end = month == 12 ? instant(1, 28, 22, year: 2027) : instant(month + 1, 28, 22)
            let period = row("\(month)", instant(month, 28, 22) + hour / 2, end + hour / 2)
            if month == 1 { story.begins(period) } else { story.renews(period) }
        }
        // 22:30 UTC is 23:30 in winter and 0:30 of the next day in summer. In March it is the evening before the change.
        var cells: [Cell: Numbers] = ["2026-01-28": bought]
        for day in [
            "2026-02-28", "2026-03-28", "2026-04-29", "2026-05-29", "2026-06-29", "2026-07-29", "2026-08-29",
            "2026-09-29", "2026-10-28", "2026-11-28", "2026-12-28",
        ] { cells[Cell(day)] = [.renewed: 1, .charged: 1, .revenue: 10_000] }
        try story.expect(at: instant(1, 1, year: 2027), cells, zone: berlin)
    }

    @Test func `unpaidGrace and recoveredWithin count hours, not days of the calendar`() throws {
        let first = row("1", instant(2, 20, 12), instant(3, 20, 12))
        var story = WrittenStory()
        story.begins(first)
        story.fails(first, at: instant(3, 20, 12), grace: instant(4, 5, 12))
        story.recovers(row("2", instant(3, 20, 12), instant(4, 20, 12)), at: instant(4, 5, 12))
        try story.expect(
            at: instant(4, 20),
            [
                "2026-02-20": bought,
                // Sixteen periods of 24 hours; one of the days has 23 hours.
                "2026-03-20": [
                    .failed: 1, .graceEntered: 1, .recoveredWithin16: 1, .recoveredWithin28: 1,
                    .recoveredWithin60: 1, .recoveredWithin90: 1, .activeDelta: -1, .graceDelta: 1,
                    .atRiskDelta: 10_000,
                ],
                // At the instant that grace ends the payment was there, so there was no RETRY.
                "2026-04-05": [
                    .graceRecovered: 1, .charged: 1, .graceDelta: -1, .activeDelta: 1, .revenue: 10_000,
                    .recoveredRevenue: 10_000, .atRiskDelta: -10_000,
                ],
            ], zone: berlin)
        var unpaid = WrittenStory()
        unpaid.begins(first)
        unpaid.fails(first, at: instant(3, 20, 12), grace: instant(4, 5, 12))
        try unpaid.expect(
            at: instant(4, 20),
            [
                "2026-02-20": bought,
                "2026-03-20": [
                    .failed: 1, .graceEntered: 1, .failedOpen: 1, .activeDelta: -1, .graceDelta: 1,
                    .atRiskDelta: 10_000,
                ],
                "2026-04-05": [
                    .retryEntered: 1, .retryOpen: 1, .lapsedBilling: 1, .graceDelta: -1, .retryDelta: 1,
                    .unpaidGrace: 16_000, .mrrBilling: -10_000,
                ],
            ], zone: berlin)
    }

    @Test func `started on another day in New York and in UTC`() throws {
        let newYork = try Zone(name: "America/New_York")
        // Five hours behind UTC until the 8th of March at 7:00 UTC, then four.
        for (at, there, utc) in [
            (instant(3, 8, 4), "2026-03-07", "2026-03-08"), (instant(3, 8, 5), "2026-03-08", "2026-03-08"),
            (instant(3, 9, 4) - 1, "2026-03-08", "2026-03-09"), (instant(11, 2, 4), "2026-11-01", "2026-11-02"),
            (instant(11, 2, 5), "2026-11-02", "2026-11-02"),
        ] as [(Int64, Cell, Cell)] {
            var story = WrittenStory()
            story.begins(row("1", at, at + 30 * 24 * hour))
            try story.expect(at: at, [there: bought], zone: newYork)
            try story.expect(at: at, [utc: bought])
        }
    }
}
