// Of a long life usually only the tail is counted. The numbers are those of the whole life.

import Configuration
import Glibc
import JSON
import Notices
import PlainChurn
import SubscriptionHistory
import Testing
import Zone

import struct MakeBelieve.Chance

@testable import Churn

/// What a worker does at each step, by the tail if possible, and as a whole: both must be the same.
private struct Both {
    struct Counted: Equatable {
        var changes: [[UInt8]: Sums] = [:]
        var kept: [UInt8] = []
        var due: Int64?
        var isTail = false

        static func == (left: Counted, right: Counted) -> Bool {
            left.changes == right.changes && left.kept == right.kept && left.due == right.due
        }
    }

    private let desk: Desk
    private let id = purchaseId("1")
    private(set) var last: Counted?
    private(set) var due: Int64?
    private(set) var steps = 0
    private(set) var tails = 0

    init(_ zone: Zone = .utc) { desk = Desk(zone) }

    /// As when it could not be processed.
    mutating func loseTimer() { due = nil }

    /// - Returns: whether it was new.
    mutating func hear(_ word: Word) throws -> Bool {
        try fire(until: word.at)
        return try step(word.record, at: word.at)
    }

    mutating func fire(until clock: Int64) throws {
        while let instant = due, instant <= clock { _ = try step(nil, at: instant) }
    }

    private mutating func step(_ record: [UInt8]?, at clock: Int64) throws -> Bool {
        let isInStep = record == nil || due != nil
        guard let whole = try count(record, at: clock, isInStep: false) else { return false }
        let counted = try #require(try count(record, at: clock, isInStep: isInStep))
        try #require(counted == whole, "step \(steps), at \(clock)")
        steps += 1
        tails += counted.isTail ? 1 : 0
        last = counted
        due = counted.due
        return true
    }

    private func count(_ record: [UInt8]?, at clock: Int64, isInStep: Bool) throws -> Counted? {
        let news = try record.flatMap { try desk.news($0) }
        if record != nil, news == nil { return nil }
        return try desk.with(kept: last?.kept) { state in
            if let news { guard state.merge(news) else { return nil } }
            state.settle(at: clock, originalTransactionId: id, isInStep: isInStep)
            var counted = Counted(due: state.nextChange, isTail: state.hasCountedTail)
            for number in state.changes.indices {
                let change = state.changes[number]
                var sums = Sums()
                sums.add(state.sums(of: change))
                counted.changes[state.key(of: change, partition: 3)] = sums
            }
            counted.kept = try state.written()
            return counted
        }
    }
}

@Suite struct `A long life` {
    /// - Returns: how many steps there were, and in how many the tail was enough.
    private func compareLives(_ count: Int, seed: UInt64) throws -> (steps: Int, tails: Int) {
        var chance = Chance(seed: seed)
        var (steps, tails) = (0, 0)
        for _ in 0..<count {
            let life = LongLife(
                periods: 40 + Int(chance.below(40)), unrest: chance.of(4, 12, 30), Chance(seed: chance.next()))
            var both = Both(try Zone(name: chance.of("Europe/Berlin", "America/Los_Angeles", "Pacific/Apia")))
            var clock = Int64.min
            for word in life.words {
                clock = max(clock, word.at)
                if chance.yes(3) { both.loseTimer() }
                _ = try both.hear(Word(at: clock, record: word.record))
                // The same again says nothing new.
                if chance.yes(3) { #expect(!(try both.hear(Word(at: clock, record: word.record)))) }
            }
            try both.fire(until: .max - 1)
            steps += both.steps
            tails += both.tails
        }
        return (steps, tails)
    }

    @Test(arguments: 0..<6 as Range<UInt64>)
    func `counts by its tail what it counts as a whole`(_ part: UInt64) throws {
        let (steps, tails) = try compareLives(3, seed: 80_000 + part)
        #expect(steps > 250 && tails > 40, "\(steps), \(tails)")
    }

    private static let lives = getenv("PERENNIAL_LIVES").flatMap { Int(String(cString: $0)) }

    @Test(.enabled(if: lives != nil, "PERENNIAL_LIVES says how many: a thousand take some minutes"))
    func `counts the same by its tail in as many lives as one wants`() throws {
        let lives = try #require(Self.lives)
        var (steps, tails) = (0, 0)
        for part in 0..<UInt64(max(lives / 10, 1)) {
            let compared = try compareLives(10, seed: 81_000 + part)
            steps += compared.steps
            tails += compared.tails
        }
        print("\(lives) long lives: \(steps) steps, \(tails) by the tail")
        #expect(steps > 80 * lives && tails > 20 * lives)
    }

    /// A lost timer leaves out a number. The next notification makes it good, whatever it is about.
    @Test(arguments: 0..<4 as Range<UInt64>)
    func `makes good what a lost timer has left out`(_ seed: UInt64) throws {
        var chance = Chance(seed: 82_000 + seed)
        let life = LongLife(periods: 60, unrest: 12, Chance(seed: chance.next()))
        var (straight, other) = (Both(), Both())
        var clock = Int64.min
        var lost = 0
        for word in life.words {
            clock = max(clock, word.at)
            let word = Word(at: clock, record: word.record)
            if let due = other.due, due <= clock, chance.yes(20) {
                other.loseTimer()
                lost += 1
            }
            let isNew = try straight.hear(word)
            #expect(try other.hear(word) == isNew)
            if isNew { try #require(other.last == straight.last || other.last?.kept == straight.last?.kept) }
        }
        #expect(lost > 3 && other.tails > 10, "\(lost), \(other.tails)")
    }

    /// It is dated long before the tail, so the numbers of the last days do not show that it is missing.
    @Test func `makes good a number of old days that a lost timer has left out`() throws {
        var story = Weeks.story
        let start = Weeks.start
        let bought = start + 277 * day
        let once = row("900", bought, bought, ["type": "Consumable", "revocationDate": start + day])
        story.tell("REFUND", at: bought - 2 * day, once)
        story.turnsOff(Weeks.row(39), at: bought + day)
        var (straight, other) = (Chain("1"), Chain("1"))
        for (place, word) in story.words.enumerated() {
            if place == story.words.count - 1 {
                #expect(other.nextChange == bought)
                other.loseTimer()
            }
            try straight.hear(word.record, at: word.at)
            try other.hear(word.record, at: word.at)
        }
        #expect(straight.totals.values.reduce(0) { $0 + $1[.oneTimeRefunded] } == 1)
        #expect(other.cells == straight.cells && other.kept == straight.kept)
        #expect(straight.tails > other.tails)
    }

    /// Nothing guarantees that ids are unique. Both are one row, so the old period is gone.
    @Test func `is counted as a whole when a new period has the id of an old one`() throws {
        let start = instant(1, 1, year: 2025)
        func week(_ number: Int64, id: Int64) -> [String: Any] {
            row("\(100 + id)", start + 7 * number * day, start + 7 * (number + 1) * day)
        }
        var story = WrittenStory()
        story.begins(week(0, id: 0))
        for number in 1..<40 as Range<Int64> { story.renews(week(number, id: number)) }
        let last = start + 7 * 40 * day - hour
        story.renews(week(40, id: 3), at: last)
        var both = Both()
        for word in story.words {
            let before = both.tails
            #expect(try both.hear(word))
            #expect(both.tails == before || word.at < last)
        }
        try both.fire(until: last + 100 * day)
        #expect(both.tails > 0)
    }

    /// Then the notices that are read at first are not enough: the rest is read, and what is new is behind it.
    @Test func `is counted by its tail when much has happened in its last period`() throws {
        var story = Weeks.story
        let quiet = story.words.count
        let last = Weeks.start + 7 * 39 * day
        for number in 1...10 as ClosedRange<Int64> {
            story.turnsOff(Weeks.row(39), at: last + 2 * number * hour)
            story.turnsOn(Weeks.row(39), at: last + (2 * number + 1) * hour)
        }
        story.renews(Weeks.row(40), at: last + 7 * day - hour)
        var both = Both()
        for (place, word) in story.words.enumerated() {
            #expect(try both.hear(word))
            #expect(both.last?.isTail ?? false || place < quiet, "\(place)")
        }
    }

    /// Days of another zone are not those that were counted, so the tail alone cannot be subtracted.
    @Test(arguments: 1...20)
    func `is counted as a whole when its days have changed`(_ left: Int) throws {
        let words = LongLife(periods: 60, unrest: 0, Chance(seed: 83_000)).words
        let zone = try Zone(name: "America/Los_Angeles")
        var (moved, straight) = (Chain("1"), Chain("1"))
        straight.zone = zone
        for (place, word) in words.dropLast(left - 1).enumerated() {
            if place == words.count - left {
                #expect(moved.kept != straight.kept, "the days of the two zones do not differ")
                moved.zone = zone
            }
            try moved.hear(word.record, at: word.at)
            try straight.hear(word.record, at: word.at)
        }
        #expect(moved.kept == straight.kept && moved.cells == straight.cells)
        #expect(moved.tails > 5)
    }

    @Test func `of 260 periods has the numbers of the second opinion`() throws {
        let life = LongLife(periods: 260, unrest: 5, Chance(seed: 84_000))
        var chain = Chain("1")
        var clock = Int64.min
        for word in life.words {
            clock = max(clock, word.at)
            try chain.hear(word.record, at: clock)
        }
        let plain = PlainChurn(records: life.words.map(\.record), chain: "1", zone: "Etc/UTC", partition: 3)
        #expect(difference(chain.plain, plain.cells(at: clock)) == nil)
        #expect(chain.tails > 280, "\(chain.tails)")
    }
}

/// Forty weeks that were paid for.
private enum Weeks {
    static let start = instant(1, 1, year: 2025)

    static func row(_ number: Int64) -> [String: Any] {
        ChurnTests.row("\(100 + number)", start + 7 * number * day, start + 7 * (number + 1) * day)
    }

    static var story: WrittenStory {
        var story = WrittenStory()
        story.begins(row(0))
        for number in 1..<40 as Range<Int64> { story.renews(row(number)) }
        return story
    }
}
