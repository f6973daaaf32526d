import Contract
import Testing

@Suite struct `A civil day` {
    @Test(
        arguments: [
            ("0001-01-01", -719_162), ("1600-02-29", -135_081), ("1969-12-31", -1), ("1970-01-01", 0),
            ("2000-02-29", 11_016),
            ("2024-12-31", 20_088), ("2100-03-01", 47_541), ("9999-12-31", 2_932_896),
        ] as [(String, Int64)])
    func `has a number`(_ text: String, _ number: Int64) throws {
        let day = try #require(CivilDay(text))
        #expect(day.number == number)
        #expect(CivilDay(number: number) == day)
        #expect(day.description == text)
    }

    /// Counts only with the lengths of months, as a printed calendar does.
    @Test func `follows the one before, from the first to the last`() {
        var (year, month, day) = (1, 1, 1)
        var wrong: String?
        for number in CivilDay.first.number...CivilDay.last.number where wrong == nil {
            let byNumber = CivilDay(number: number)
            let byDate = CivilDay(year: year, month: month, day: day)
            let isRight =
                byNumber == byDate && (byDate.year, byDate.month, byDate.day) == (year, month, day)
                && (byNumber.year, byNumber.month, byNumber.day) == (year, month, day) && byDate.number == number
            if !isRight { wrong = "\(year)-\(month)-\(day), \(byNumber), \(byDate)" }
            let isLeap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0
            let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
            day += 1
            if day > lengths[month - 1] { (month, day) = (month + 1, 1) }
            if month > 12 { (year, month) = (year + 1, 1) }
        }
        #expect(wrong == nil)
        #expect((year, month, day) == (10_000, 1, 1))
    }

    @Test(arguments: [
        "", "2026-1-01", "2026-01-1", "02026-01-01", "2026/01/01", "2026-01-01 ", " 2026-01-01", "+026-01-01",
        "2026-00-01", "2026-13-01", "2026-01-00", "2026-04-31", "2026-02-29", "1900-02-29", "0000-01-01", "-001-01-01",
        "2026-01-32", "٢٠٢٦-01-01", "2026-01-0a", "20260101", "2026-01-01T",
    ])
    func `is not read from any other text`(_ text: String) { #expect(CivilDay(text) == nil) }

    @Test func `takes the nearest day that there is`() {
        #expect(CivilDay(year: 2026, month: 2, day: 31).description == "2026-02-28")
        #expect(CivilDay(year: 2026, month: 2, day: 0).description == "2026-02-01")
        #expect(CivilDay(year: 2026, month: 0, day: 9).description == "2026-01-09")
        #expect(CivilDay(year: 2026, month: 13, day: 9).description == "2026-12-09")
    }

    @Test(arguments: [
        ("2026-01-31", 1, "2026-02-28"), ("2024-01-31", 1, "2024-02-29"), ("2026-01-31", 13, "2027-02-28"),
        ("2026-03-31", -1, "2026-02-28"), ("2026-01-15", -1, "2025-12-15"), ("2026-12-31", 12, "2027-12-31"),
        ("2026-01-15", -25, "2023-12-15"), ("2026-05-05", 0, "2026-05-05"), ("2024-02-29", 12, "2025-02-28"),
    ])
    func `is moved by months, to the last day of a shorter one`(_ from: String, _ months: Int, _ to: String) throws {
        #expect(try #require(CivilDay(from)).adding(months: months).description == to)
    }

    @Test func `is compared by time`() {
        #expect(CivilDay.first < CivilDay.last)
        #expect(CivilDay(year: 2025, month: 12, day: 31) < CivilDay(year: 2026, month: 1, day: 1))
        #expect(CivilDay.first.description == "0001-01-01" && CivilDay.last.description == "9999-12-31")
    }

    @Test func `stands for any number at the ends of time`() {
        for number in [Int64.min, .min + 1, .max - 1, .max] {
            let day = CivilDay(number: number)
            #expect((day.number < 0) == (number < 0))
            #expect(CivilDay(year: day.year, month: day.month, day: day.day) == day)
        }
        for year in [Int.min, .max] {
            let day = CivilDay(year: year, month: 12, day: 31)
            #expect((day.number < 0) == (year < 0))
            for months in [Int.min, -1, 1, .max] { _ = day.adding(months: months) }
        }
        #expect(CivilDay(year: -5, month: 3, day: 4).description == "-0005-03-04")
    }

    @Test(arguments: [1600, 1996, 2000, 2024]) func `may be of a leap year`(_ year: Int) {
        #expect(CivilDay.isLeap(year: year) && CivilDay.length(ofMonth: 2, year: year) == 29)
    }

    @Test(arguments: [1700, 1900, 2100, 2025, 2026, 2027]) func `may be of no leap year`(_ year: Int) {
        #expect(!CivilDay.isLeap(year: year) && CivilDay.length(ofMonth: 2, year: year) == 28)
    }
}

@Suite struct `A division that rounds down` {
    @Test func `leaves a rest from nothing up to the divisor`() {
        for value in (-50...50 as ClosedRange<Int64>).map({ $0 }) + [.min, .max] {
            for divisor in [1, 2, 7, 10] as [Int64] {
                let quotient = value.floorDivided(by: divisor)
                // The product is below the smallest number, so it wraps around, and back.
                #expect((0..<divisor).contains(value &- quotient &* divisor), "\(value) by \(divisor)")
            }
        }
        #expect((-1 as Int64).floorDivided(by: 10) == -1)
    }
}
