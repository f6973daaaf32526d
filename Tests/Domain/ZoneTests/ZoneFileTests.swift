import Contract
import Testing
import Zone

private func read(_ builder: ZoneFileBuilder) throws(ZoneFault) -> Zone {
    try Zone(name: "Test/Zone", file: builder.bytes, dataVersion: "2025b")
}

@Suite struct `A file of a zone` {
    private static let twoTypes = ZoneFileBuilder(
        transitions: [(-1000, 1), (1000, 0), (2000, 1)], types: [(0, 0, 0), (3600, 1, 0)], footer: "")

    @Test(arguments: ["1", "2", "3", "4"] as [Character]) func `is read in all its versions`(_ version: Character)
        throws
    {
        var builder = Self.twoTypes
        builder.version = version
        let zone = try read(builder)
        let seconds: [(Int64, Int64)] = [
            (.min / 1000, 0), (-1001, 0), (-1000, 3600), (999, 3600), (1000, 0), (1999, 0), (2000, 3600),
            (.max / 1000, 3600),
        ]
        for (second, offset) in seconds { #expect(zone.offset(at: second * 1000) == offset, "\(second)") }
        #expect(zone.offset(at: -1_000_001) == 0 && zone.offset(at: 999_999) == 3600)
    }

    @Test func `may have indicators, and transitions that change no clock`() throws {
        var builder = Self.twoTypes
        (builder.utIndicators, builder.standardIndicators) = (2, 2)
        builder.transitions += [(3000, 1), (4000, 0)]
        #expect(try read(builder).offset(at: 3_000_000) == 3600)
        #expect(try read(builder).offset(at: 4_000_000) == 0)
    }

    @Test func `may reach beyond all days`() throws {
        let builder = ZoneFileBuilder(
            transitions: [(.min, 0), (-(1 << 59), 1), (0, 0), (1 << 59, 1), (.max, 1)],
            types: [(7200, 0, 0), (3600, 0, 0)], footer: "CET-1CEST,M3.5.0,M10.5.0/3")
        let zone = try read(builder)
        #expect(zone.offset(at: .min) == 3600 && zone.offset(at: -1) == 3600)
        #expect(zone.offset(at: 0) == 7200 && zone.offset(at: .max) == 7200)
    }

    @Test func `without transitions follows its footer at all times`() throws {
        let zone = try read(ZoneFileBuilder(footer: "EST5EDT,M3.2.0,M11.1.0"))
        for year in [1, 2, 400, 1970, 2026, 9998, 9999] {
            let january = CivilDay(year: year, month: 1, day: 15).number * 86_400_000
            let july = CivilDay(year: year, month: 7, day: 15).number * 86_400_000
            #expect(zone.offset(at: january) == -5 * 3600, "\(year)")
            #expect(zone.offset(at: july) == -4 * 3600, "\(year)")
        }
    }

    @Test func `follows its footer from the last transition on`() throws {
        var builder = Self.twoTypes
        builder.footer = "<+02>-2"
        let zone = try read(builder)
        #expect(zone.offset(at: 1_999_999) == 0)
        #expect(zone.offset(at: 2_000_000) == 7200)
        #expect(zone.offset(at: .max) == 7200)
    }

    private static let refused: [(TZifFault, @Sendable (inout ZoneFileBuilder) -> Void)] = [
        (.notTZif, { $0.magic = "TZIF" }),
        (.unknownVersion(UInt8(ascii: "5")), { $0.version = "5" }),
        (.inconsistentHeader, { $0.types = [] }),
        (.inconsistentHeader, { $0.abbreviations = [] }),
        (.inconsistentHeader, { $0.utIndicators = 1 }),
        (.inconsistentHeader, { $0.standardIndicators = 3 }),
        (.inconsistentHeader, { $0.types = Array(repeating: (0, 0, 0), count: 257) }),
        (.countsLeapSeconds, { $0.leapSeconds = 1 }),
        (.transitionsOutOfOrder, { $0.transitions[1].second = -1000 }),
        (.transitionsOutOfOrder, { $0.transitions[0].second = 5000 }),
        (.unknownType(2), { $0.transitions[1].type = 2 }),
        (.unknownType(255), { $0.transitions[1].type = 255 }),
        (.offsetOutOfRange(seconds: 93_600), { $0.types[1].offset = 93_600 }),
        (.offsetOutOfRange(seconds: -90_000), { $0.types[1].offset = -90_000 }),
        (.offsetOutOfRange(seconds: -2_147_483_648), { $0.types[1].offset = .min }),
        (.badType(1), { $0.types[1].isSummer = 2 }),
        (.badType(0), { $0.types[0].name = 4 }),
        (.badFooter("CET"), { $0.footer = "CET" }),
    ]

    @Test(arguments: refused.indices) func `is refused with its fault`(_ index: Int) {
        var builder = Self.twoTypes
        Self.refused[index].1(&builder)
        #expect(throws: ZoneFault.unusable(name: "Test/Zone", Self.refused[index].0)) { try read(builder) }
    }

    /// Each count of the header has its greatest value, in either block.
    @Test(arguments: [0, 1], 0..<6) func `is refused when it counts more than there is`(_ block: Int, _ count: Int) {
        var bytes = Self.twoTypes.bytes
        let start = block == 0 ? 0 : 44 + 6 + 4
        for place in 0..<4 { bytes[start + 20 + count * 4 + place] = 0xff }
        #expect(throws: ZoneFault.unusable(name: "Test/Zone", .truncated)) {
            try Zone(name: "Test/Zone", file: bytes, dataVersion: "2025b")
        }
    }

    @Test func `is refused when its headers are of two versions`() {
        var bytes = Self.twoTypes.bytes
        bytes[44 + 6 + 4 + 4] = UInt8(ascii: "3")
        #expect(throws: ZoneFault.unusable(name: "Test/Zone", .inconsistentHeader)) {
            try Zone(name: "Test/Zone", file: bytes, dataVersion: "2025b")
        }
    }

    @Test(arguments: ["Europe/Berlin", "America/New_York", "Africa/Casablanca", "Asia/Tokyo", "Europe/Dublin"])
    func `is refused when it ends too early`(_ name: String) throws {
        let file = try zoneFile(name)
        for count in file.indices {
            #expect(throws: ZoneFault.unusable(name: name, .truncated), "the first \(count) bytes") {
                try Zone(name: name, file: Array(file.prefix(count)), dataVersion: "2025b")
            }
        }
    }

    /// A changed byte may still give a zone, but it must never trap.
    @Test func `with wrong bytes is refused or answers`() throws {
        let files = try ["Europe/Berlin", "America/New_York", "Africa/Casablanca", "Asia/Tokyo"].map(zoneFile)
        var random = Seeded(state: 8536)
        var (refused, answered) = (0, 0)
        for round in 0..<20_000 {
            var file = files[round % files.count]
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                // Half of them are where they matter most: in a header or in the footer.
                let second = file.indices.dropFirst(5).first { file[$0...].starts(with: "TZif".utf8) } ?? 0
                let places = [
                    0..<file.count, 0..<44, second..<min(second + 44, file.count), (file.count - 30)..<file.count,
                ]
                let place = Int.random(in: places.randomElement(using: &random)!, using: &random)
                file[place] = Bool.random(using: &random) ? UInt8.random(in: 0...255, using: &random) : file[place] ^ 1
            }
            do throws(ZoneFault) {
                let zone = try Zone(name: "Test/Zone", file: file, dataVersion: "2025b")
                answered += 1
                var instants: [Int64] = [.min, -1, 0, .max]
                for _ in 0..<20 {
                    instants.append(Int64.random(in: -62_135_596_800_000...253_402_300_799_999, using: &random))
                }
                for instant in instants {
                    let day = zone.day(of: instant)
                    let start = zone.start(of: day)
                    let isDay = (CivilDay.first...CivilDay.last).contains(day)
                    let isStart = zone.day(of: start) >= day && (day == .first || zone.day(of: start - 1) < day)
                    guard isDay, isStart, abs(zone.offset(at: instant)) <= 93_599 else {
                        Issue.record("round \(round): \(day) does not start at \(start)")
                        return
                    }
                }
            } catch {
                refused += 1
                #expect(error.description.contains("Test/Zone"))
            }
        }
        #expect(refused > 1000 && answered > 1000, "\(refused) refused, \(answered) answered")
    }
}

@Suite struct `A name of a zone` {
    @Test func `is that of every zone`() {
        for name in zoneNames { #expect(Zone.isName(name), "\(name)") }
    }

    @Test(arguments: [
        "", "/", "/etc/passwd", "../etc/passwd", "Europe/../../etc/passwd", "Europe//Berlin", "Europe/",
        "Europe/Berlin\0", "Europe/Berlin\n", "tzdata.zi", ".", "..", "Europe/B\u{e9}rlin", "localtime", "a b",
        String(repeating: "a", count: 65),
    ]) func `is no other text, and the fault says what to write`(_ text: String) throws {
        let file = try zoneFile("Europe/Berlin")
        let fault = #expect(throws: ZoneFault.notAName(text)) {
            try Zone(name: text, file: file, dataVersion: "2025b")
        }
        let words = fault?.description ?? ""
        #expect(words.contains("use a name such as Europe/Berlin"))
        #expect(words.unicodeScalars.allSatisfy { $0.value >= 0x20 })
    }
}
