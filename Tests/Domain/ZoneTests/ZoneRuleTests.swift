import Contract
import Testing

@testable import Zone

private func parsed(_ text: String) -> ZoneRule? { ZoneRule(Array(text.utf8)[...]) }

/// The changes of one year as "month-day hour:minute" in UTC.
private func changes(_ text: String, year: Int) throws -> [String] {
    try #require(parsed(text)).changes(ofYears: year...year).map { change in
        let number = change.second.floorDivided(by: 86_400)
        let minute = (change.second - number * 86_400) / 60
        return "\(CivilDay(number: number)) \(minute / 60):\(minute % 60) \(change.offset)"
    }
}

@Suite struct `A rule of a footer` {
    @Test(
        arguments: [
            ("UTC0", 0), ("JST-9", 32_400), ("<+0545>-5:45", 20_700), ("<-0330>+3:30:15", -12_615),
            ("<+14>-14", 50_400),
            ("ABCDEFGH24", -86_400), ("IST-24:59:59", 89_999), ("<-12>12", -43_200),
        ] as [(String, Int64)])
    func `may be one offset`(_ text: String, _ offset: Int64) throws {
        let rule = try #require(parsed(text))
        #expect(rule.offset == offset && rule.summer == nil)
    }

    @Test(
        arguments: [
            ("CET-1CEST,M3.5.0,M10.5.0/3", 2026, ["2026-03-29 1:0 7200", "2026-10-25 1:0 3600"]),
            ("EST5EDT,M3.2.0,M11.1.0", 2026, ["2026-03-08 7:0 -14400", "2026-11-01 6:0 -18000"]),
            // South of the equator summer ends first.
            ("AEST-10AEDT,M10.1.0,M4.1.0/3", 2026, ["2026-04-04 16:0 36000", "2026-10-03 16:0 39600"]),
            // In Ireland winter time is the exception.
            ("IST-1GMT0,M10.5.0,M3.5.0/1", 2026, ["2026-03-29 1:0 3600", "2026-10-25 1:0 0"]),
            // Before and after the named day.
            ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 2026, ["2026-03-29 1:0 -3600", "2026-10-25 1:0 -7200"]),
            ("IST-2IDT,M3.4.4/26,M10.5.0", 2026, ["2026-03-27 0:0 10800", "2026-10-24 23:0 7200"]),
            ("EET-2EEST,M3.4.4/50,M10.4.4/50", 2026, ["2026-03-28 0:0 10800", "2026-10-23 23:0 7200"]),
            // J does not count the 29th of February; a plain number does.
            ("AAA0BBB,J59/0,J60/0", 2024, ["2024-02-28 0:0 3600", "2024-02-29 23:0 0"]),
            ("AAA0BBB,J59/0,J60/0", 2025, ["2025-02-28 0:0 3600", "2025-02-28 23:0 0"]),
            ("AAA0BBB,59/0,60/0", 2024, ["2024-02-29 0:0 3600", "2024-02-29 23:0 0"]),
            ("AAA0BBB,58/0,59/0", 2025, ["2025-02-28 0:0 3600", "2025-02-28 23:0 0"]),
            ("AAA0BBB,0/0,J365/25", 2026, ["2026-01-01 0:0 3600", "2027-01-01 0:0 0"]),
            // The fifth Sunday means the last one, in months with four and with five.
            ("AAA0BBB-2:30,M2.5.0/0:30:00,M5.5.0/167", 2026, ["2026-02-22 0:30 9000", "2026-06-06 20:30 0"]),
            ("AAA0BBB,M1.1.6/-167,M6.1.1", 2026, ["2025-12-27 1:0 3600", "2026-06-01 1:0 0"]),
        ] as [(String, Int, [String])])
    func `has its changes in the order of time`(_ text: String, _ year: Int, _ expected: [String]) throws {
        #expect(try changes(text, year: year) == expected)
    }

    @Test func `of a summer without end has no gap at the turn of the year`() throws {
        let rule = try #require(parsed("EST5EDT,0/0,J365/25"))
        let table = OffsetTable(before: 0, changes: [OffsetChange(second: 0, offset: -18_000)], rule: rule)
        for year in 2000...2500 {
            let newYear = CivilDay(year: year, month: 1, day: 1).number * 86_400_000
            for hours in -48...48 as ClosedRange<Int64> {
                #expect(table.milliseconds(at: newYear + hours * 3_600_000) == -4 * 3_600_000)
            }
        }
    }

    @Test(arguments: [
        "", "CET", "CE-1", "<CE>-1", "<CET-1", "C3T-1", "CET-", "CET-25", "CET-1:60", "CET-1:5", "CET-1:00:60",
        "CET-1 ",
        "CET-1CEST", "CET-1CEST-2", "CET-1CEST,", "CET-1CEST,M3.5.0", "CET-1CEST,M3.5.0,", "CET-1CEST,M3.5.0,M10.5.0/",
        "CET-1CEST,M0.5.0,M10.5.0", "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.0.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0",
        "CET-1CEST,M3.5.7,M10.5.0", "CET-1CEST,M3.5,M10.5.0", "CET-1CEST,J0,J300", "CET-1CEST,J366,J300",
        "CET-1CEST,366,300", "CET-1CEST,M3.5.0/168,M10.5.0", "CET-1CEST,M3.5.0,M10.5.0/3x", "CET-1CEST,M3.5.0,M10.5.0,",
        "CET-1CE,M3.5.0,M10.5.0", ":Europe/Berlin", "CET--1", "CET-+1", "CET-001",
    ]) func `is refused when it is not understood`(_ text: String) { #expect(parsed(text) == nil) }
}
