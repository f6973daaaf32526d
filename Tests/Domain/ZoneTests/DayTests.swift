import Configuration
import Contract
import Testing
import Zone

private func instant(_ text: String) throws -> Int64 {
    let parts = text.split(separator: " ")
    let day = try #require(CivilDay(String(parts[0])))
    let time = parts[1].split(separator: ":").compactMap { Int64($0) }
    return day.number * 86_400_000 + (time[0] * 60 + time[1]) * 60_000
}

private func day(_ text: String) throws -> CivilDay { try #require(CivilDay(text)) }

private let hour: Int64 = 3_600_000

@Suite struct `A day of a zone` {
    /// Written out from the laws. Instants are in UTC.
    struct Change: Sendable, CustomTestStringConvertible {
        let zone: String
        let at: String
        /// Offsets in hours, before and after.
        let offsets: (Int64, Int64)
        let day: String
        let starts: String
        let ends: String
        let hours: Int64

        var testDescription: String { "\(zone) \(at)" }
    }

    @Test(arguments: [
        Change(
            zone: "Europe/Berlin", at: "2026-03-29 01:00", offsets: (1, 2), day: "2026-03-29",
            starts: "2026-03-28 23:00",
            ends: "2026-03-29 22:00", hours: 23),
        Change(
            zone: "Europe/Berlin", at: "2026-10-25 01:00", offsets: (2, 1), day: "2026-10-25",
            starts: "2026-10-24 22:00",
            ends: "2026-10-25 23:00", hours: 25),
        Change(
            zone: "America/New_York", at: "2026-03-08 07:00", offsets: (-5, -4), day: "2026-03-08",
            starts: "2026-03-08 05:00", ends: "2026-03-09 04:00", hours: 23),
        Change(
            zone: "America/New_York", at: "2026-11-01 06:00", offsets: (-4, -5), day: "2026-11-01",
            starts: "2026-11-01 04:00", ends: "2026-11-02 05:00", hours: 25),
    ])
    func `has 23 hours when summer begins and 25 when it ends`(_ change: Change) throws {
        let zone = try Zone(name: change.zone)
        #expect(zone.dataVersion.wholeMatch(of: /[0-9]{4}[a-z]/) != nil, "\(zone.fingerprint)")
        let at = try instant(change.at)
        #expect(zone.offset(at: at - 1) == change.offsets.0 * 3600, "\(zone.fingerprint)")
        #expect(zone.offset(at: at) == change.offsets.1 * 3600, "\(zone.fingerprint)")
        let today = try day(change.day)
        let tomorrow = CivilDay(number: today.number + 1)
        let (start, end) = (zone.start(of: today), zone.start(of: tomorrow))
        #expect(start == (try instant(change.starts)))
        #expect(end == (try instant(change.ends)))
        #expect(end - start == change.hours * hour)
        #expect(zone.day(of: start) == today && zone.day(of: start - 1) < today)
        #expect(zone.day(of: end) == tomorrow && zone.day(of: end - 1) == today)
    }

    @Test(arguments: ["1996-02-29", "2026-03-29", "2400-02-29", "9999-12-31", "0001-01-01"])
    func `is that of the calendar in UTC`(_ text: String) throws {
        let today = try day(text)
        #expect(Zone.utc.start(of: today) == today.number * 24 * hour)
        #expect(Zone.utc.day(of: today.number * 24 * hour) == today)
        #expect(Zone.utc.day(of: today.number * 24 * hour + 24 * hour - 1) == today)
        #expect(Zone.utc.offset(at: today.number * 24 * hour) == 0)
    }

    @Test(arguments: [
        ("Pacific/Apia", "2011-12-30", "2011-12-30 10:00"), ("Pacific/Kwajalein", "1993-08-21", "1993-08-21 12:00"),
    ]) func `that was left out starts with the next one`(_ name: String, _ lost: String, _ start: String) throws {
        let zone = try Zone(name: name)
        let lost = try day(lost)
        let next = CivilDay(number: lost.number + 1)
        #expect(zone.start(of: lost) == (try instant(start)))
        #expect(zone.start(of: next) == (try instant(start)))
        #expect(zone.day(of: try instant(start)) == next)
        #expect(zone.day(of: try instant(start) - 1) == CivilDay(number: lost.number - 1))
    }

    @Test func `without a midnight starts when clocks have skipped it`() throws {
        let zone = try Zone(name: "America/Sao_Paulo")
        let today = try day("2018-11-04")
        #expect(zone.start(of: today) == (try instant("2018-11-04 03:00")))
        #expect(zone.offset(at: zone.start(of: today)) == -2 * 3600)
        #expect(zone.start(of: CivilDay(number: today.number + 1)) - zone.start(of: today) == 23 * hour)
    }

    /// A minute after midnight it was 23:01 again in St. John's.
    @Test func `that is begun twice starts at the first time`() throws {
        let zone = try Zone(name: "America/St_Johns")
        let today = try day("2006-10-29")
        let start = try instant("2006-10-29 02:30")
        #expect(zone.start(of: today) == start)
        #expect(zone.day(of: start + 59_999) == today)
        #expect(zone.day(of: start + 60_000) == (try day("2006-10-28")))
        #expect(zone.day(of: start + hour) == today)
    }

    @Test func `of a winter that is the exception is counted as well`() throws {
        let zone = try Zone(name: "Europe/Dublin")
        #expect(zone.offset(at: try instant("2030-01-15 12:00")) == 0)
        #expect(zone.offset(at: try instant("2030-07-15 12:00")) == 3600)
        #expect(zone.offset(at: try instant("2390-07-15 12:00")) == 3600)
    }

    /// The rule of 9998 is that of 1998 plus 8,000 years.
    @Test func `is found as well thousands of years from now`() throws {
        let zone = try Zone(name: "Europe/Berlin")
        let era: Int64 = 146_097 * 24 * hour
        for text in [
            "2040-03-25 00:59", "2040-03-25 01:00", "2040-10-28 00:59", "2040-10-28 01:00", "2239-07-01 00:00",
        ] {
            let now = try instant(text)
            for eras in 1...19 as ClosedRange<Int64> {
                #expect(zone.offset(at: now + eras * era) == zone.offset(at: now), "\(text) \(eras)")
                let later = CivilDay(number: zone.day(of: now).number + eras * 146_097)
                #expect(zone.start(of: later) == zone.start(of: zone.day(of: now)) + eras * era)
            }
        }
    }

    @Test(arguments: ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Europe/Berlin", "America/New_York"])
    func `is one of four digits of a year at the ends of time`(_ name: String) throws {
        let zone = try Zone(name: name)
        for ends in [(Int64.min, CivilDay.first), (.min + 1, .first), (.max, .last), (.max - 1, .last)] {
            #expect(zone.day(of: ends.0) == ends.1)
            _ = zone.offset(at: ends.0)
        }
        for number in [Int64.min, .max] {
            let day = CivilDay(number: number)
            #expect(zone.day(of: zone.start(of: day)) == (number < 0 ? .first : .last))
        }
        // No more days than these, each one after the one before.
        let last = CivilDay.last.number
        for number in (CivilDay.first.number..<(CivilDay.first.number + 1000)).map({ $0 }) + ((last - 1000)...last) {
            let start = zone.start(of: CivilDay(number: number))
            #expect(Int64(zone.dayNumber(of: start)) == number)
            if number > CivilDay.first.number { #expect(Int64(zone.dayNumber(of: start - 1)) == number - 1) }
        }
    }

    @Test func `depends on the name and the version of the data`() throws {
        #expect(Zone.utc.fingerprint == "UTC@UTC")
        let file = try zoneFile("Europe/Berlin")
        let prints = try [("Europe/Berlin", "2025a"), ("Europe/Berlin", "2025b"), ("Europe/Paris", "2025b")].map {
            try Zone(name: $0.0, file: file, dataVersion: $0.1).fingerprint
        }
        #expect(prints == ["Europe/Berlin@2025a", "Europe/Berlin@2025b", "Europe/Paris@2025b"])
    }
}

@Suite struct `Found days` {
    /// Some clocks change at midnight, and Apia left out a whole day.
    @Test(arguments: [
        "Etc/UTC", "Europe/Berlin", "America/Sao_Paulo", "America/New_York", "Asia/Beirut", "Australia/Lord_Howe",
        "Pacific/Apia",
    ])
    func `are the same days, of instants in any order`(_ name: String) throws {
        let zone = try Zone(name: name)
        var finder = DayFinder(zone)
        var random = SystemRandomNumberGenerator()
        var instants: [Int64] = [.min, .max, 0, -1, 1_325_239_199_999, 1_325_239_200_000, 1_325_239_200_001]
        var start = try instant("1900-01-01 00:00")
        // Each hour of a day with a change, from the last century to one in which only the rule is known.
        while start < (try instant("2450-01-01 00:00")) {
            if zone.dayNumber(of: start) != zone.dayNumber(of: start + 24 * hour) - 1 || Int.random(in: 0..<40) == 0 {
                instants += (0..<25).flatMap { [start + $0 * hour - 1, start + $0 * hour] }
            }
            start += 24 * hour
        }
        for _ in 0..<500 { instants.append(Int64.random(in: .min ... .max, using: &random)) }
        for instant in instants { try #require(finder.number(of: instant) == zone.dayNumber(of: instant), "\(instant)") }
        for instant in instants.shuffled() {
            try #require(finder.number(of: instant) == zone.dayNumber(of: instant), "\(instant)")
        }
    }
}
