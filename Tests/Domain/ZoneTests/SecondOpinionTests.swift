import Configuration
import Contract
import Foundation
import Testing

@testable import Zone

/// Every name that this machine has, with this machine's data.
@Suite struct `A zone of this machine` {
    private static let years = CivilDay(year: 1900, month: 1, day: 1)..<CivilDay(year: 2400, month: 12, day: 31)

    /// Seconds on both sides of every change, and some others.
    private func seconds(of name: String, count: Int) throws -> [Int64] {
        let content = try TZif(try zoneFile(name))
        let changes = content.changes + (content.rule?.changes(ofYears: 2037...2400) ?? [])
        let range = (Self.years.lowerBound.number * secondsPerDay)..<(Self.years.upperBound.number * secondsPerDay)
        var random = Seeded(state: 20_260_101)
        let others = (0..<count).map { _ in Int64.random(in: range, using: &random) }
        return others + changes.map(\.second).filter(range.contains).flatMap { [$0 - 1, $0] }
    }

    @Test func `is one of many`() { #expect(installedZones.count > 400) }

    /// The C library reads the same files with its own code.
    @Test(arguments: installedZones) func `shows what date shows, from 1900 to 2400`(_ name: String) throws {
        let zone = try Zone(name: name)
        let seconds = try seconds(of: name, count: 200)
        let theirs = try offsetsOfDate(seconds, zone: name)
        try #require(theirs.count == seconds.count)
        for (second, theirs) in zip(seconds, theirs) {
            for milliseconds in [0, 999] as [Int64] {
                let instant = second * 1000 + milliseconds
                guard zone.offset(at: instant) != theirs else { continue }
                Issue.record("\(zone.fingerprint) at \(instant): \(zone.offset(at: instant)), of date \(theirs)")
                return
            }
        }
    }

    /// Foundation has its own data. Before 1970 it differs from Debian's, which keeps every place's history (in Foundation
    /// Amsterdam is a link to Brussels); for future years it has laws of another date.
    @Test func `shows what Foundation shows, from 2000 to 2020`() throws {
        let range = CivilDay(year: 2000, month: 1, day: 1).number..<CivilDay(year: 2021, month: 1, day: 1).number
        var count = 0
        for name in installedZones {
            let zone = try Zone(name: name)
            guard let theirs = TimeZone(identifier: name) else { continue }
            for second in try seconds(of: name, count: 5000) where range.contains(second / secondsPerDay) {
                let expected = theirs.secondsFromGMT(for: Date(timeIntervalSince1970: Double(second)))
                #expect(zone.offset(at: second * 1000) == Int64(expected), "\(zone.fingerprint) at \(second)")
                count += 1
            }
        }
        #expect(count > 100_000)
    }

    @Test(arguments: installedZones) func `starts every day at its first instant`(_ name: String) throws {
        let zone = try Zone(name: name)
        let ends = [CivilDay.first.number, CivilDay.last.number].map { $0 * secondsPerDay }
        // The days around every change, those around the ends of the table, and a few others.
        let days = Set((try seconds(of: name, count: 50) + ends).map { $0.floorDivided(by: secondsPerDay) })
        for number in Set(days.flatMap { [$0 - 1, $0, $0 + 1] }).sorted() {
            let day = CivilDay(number: min(max(number, CivilDay.first.number), CivilDay.last.number))
            let start = zone.start(of: day)
            let isReached = Int64(zone.dayNumber(of: start)) >= day.number
            // Clocks may be turned back over midnight: then an hour before the day it may already have been that day.
            let before = [1, 1_800_000, 3_600_000, 7_200_000, 86_400_000] as [Int64]
            let isEarly = day > .first && before.contains { Int64(zone.dayNumber(of: start - $0)) >= day.number }
            guard isReached, !isEarly else {
                Issue.record("\(zone.fingerprint): \(day) does not start at \(start)")
                return
            }
        }
    }

    /// All seconds in one process: a process for each would take an hour.
    private func offsetsOfDate(_ seconds: [Int64], zone: String) throws -> [Int64] {
        let folder = FileManager.default.temporaryDirectory
        let input = folder.appendingPathComponent("perennial-\(UUID().uuidString)")
        try Data(seconds.map { "@\($0)\n" }.joined().utf8).write(to: input)
        defer { try? FileManager.default.removeItem(at: input) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/date")
        process.arguments = ["-f", input.path, "+%::z"]
        process.environment = ["TZ": ":\(zoneFolder)/\(zone)", "LC_ALL": "C"]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        // +hh:mm:ss
        return text.split(separator: "\n").map { line in
            let parts = line.dropFirst().split(separator: ":").compactMap { Int64($0) }
            guard parts.count == 3 else { return .max }
            return (line.hasPrefix("-") ? -1 : 1) * (parts[0] * 3600 + parts[1] * 60 + parts[2])
        }
    }
}
