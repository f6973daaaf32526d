import Foundation
import Testing

@testable import AppStoreAPI

/// Dates as servers write them, made with another calendar than the product's.
struct DateTexts {
    private let formatter = DateFormatter()

    init() {
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    }

    func text(_ milliseconds: Int64) -> String {
        formatter.string(from: Date(timeIntervalSince1970: Double(milliseconds / 1000)))
    }
}

@Suite struct `A date in the head of an answer` {
    @Test func `is read as RFC 9110 writes it`() {
        #expect(HTTPDate.milliseconds("Sun, 06 Nov 1994 08:49:37 GMT") == 784_111_777_000)
        #expect(HTTPDate.milliseconds("Thu, 01 Jan 1970 00:00:00 GMT") == 0)
        #expect(HTTPDate.milliseconds("Wed, 31 Dec 1969 23:59:59 GMT") == -1000)
        #expect(HTTPDate.milliseconds("Sat, 29 Feb 2020 23:59:59 GMT") == 1_583_020_799_000)
    }

    private let dates = DateTexts()

    @Test func `is that of another calendar, at random moments of two centuries`() {
        let seed = UInt64.random(in: 0...999_999)
        var random = Numbers(seed: seed)
        for _ in 0..<2000 {
            let time = Int64.random(in: -2_000_000_000...5_000_000_000, using: &random) * 1000
            #expect(HTTPDate.milliseconds(dates.text(time)) == time, "seed \(seed)")
        }
    }

    @Test(arguments: [
        "", "Sun", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Mon, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 +00", "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT ", "Wed, 30 Feb 2020 00:00:00 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT", "Sun, 06 Nov 1994 08:49:60 GMT", "Sun, 06 Nov 1994 -8:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT\n", "Sun, 06 Nov ١٩٩٤ 08", "1994-11-06T08:49:37Z", "1781256600",
    ])
    func `is none when it is written in another way`(_ text: String) {
        #expect(HTTPDate.milliseconds(text) == nil)
    }

    /// A text that is read as a time is the only text for it.
    @Test func `survives texts that are nearly dates`() {
        let seed = UInt64.random(in: 0...999_999)
        var random = Numbers(seed: seed)
        var taken = 0
        for _ in 0..<50_000 {
            var bytes = Array(dates.text(Int64.random(in: 0...4_000_000_000, using: &random) * 1000).utf8)
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0...3, using: &random) {
                case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes[place] = UInt8.random(in: 0x30...0x39, using: &random)
                case 2: bytes.remove(at: place)
                default: bytes.insert(bytes[place], at: place)
                }
            }
            let text = String(decoding: bytes, as: UTF8.self)
            // Before 1583 the other calendar is Julian.
            guard let time = HTTPDate.milliseconds(text), time > -12_200_000_000_000 else { continue }
            taken += 1
            #expect(dates.text(time) == text, "seed \(seed)")
        }
        #expect(taken > 10_000)
    }
}

@Suite struct `When Apple wants to be asked again` {
    /// 12 June 2026.
    private static let now: Int64 = 1_781_256_600_000
    private static let day: Int64 = 24 * 3600 * 1000

    @Test(
        arguments: [
            // As Apple writes it, also if the time has passed.
            ("1781256660000", now + 60_000), ("1781256600000", now), ("1781250000000", 1_781_250_000_000),
            ("1000000000000", 1_000_000_000_000), ("\(now + day)", now + day),
            // As RFC 9110 defines it: seconds to wait, or a date.
            ("0", now), ("60", now + 60_000), ("86400", now + day), ("Fri, 12 Jun 2026 09:31:00 GMT", now + 60_000),
        ] as [(String, Int64)])
    func `is a time in milliseconds`(_ text: String, _ time: Int64) {
        #expect(RetryAfter.milliseconds(text, now: Self.now) == time)
    }

    @Test(arguments: [
        "", " ", "soon", "-1", "+60", "1.5", "60s", "٦٠", "\(now + day + 1)",
        // Neither seconds to wait nor milliseconds since 1970.
        "86401", "1781256660", "999999999999",
        // Microseconds; more than 64 bits; a date far in the future.
        "1781256660000000", "99999999999999999999", "Fri, 12 Jun 2027 09:31:00 GMT",
    ])
    func `is not known when it is no time, or more than a day ahead`(_ text: String) {
        #expect(RetryAfter.milliseconds(text, now: Self.now) == nil)
    }

    @Test func `does not overflow at the ends of time`() {
        for now in [Int64.min, .min + 1, -1, 0, .max - 1, .max] {
            for text in ["0", "60", "86400", "1000000000000", "\(Int64.max)", "Sun, 06 Nov 1994 08:49:37 GMT"] {
                guard let time = RetryAfter.milliseconds(text, now: now) else { continue }
                #expect(time <= now || time - now <= Self.day)
            }
        }
    }
}

/// SplitMix64: one seed, one row.
struct Numbers: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
