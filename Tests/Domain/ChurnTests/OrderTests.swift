// Whatever the order of notifications, and however often they repeat: the cells are the same, byte for byte.

import Contract
import Notices
import Simulation
import Testing
import Zone

import struct MakeBelieve.Chance

@testable import Churn

@Suite struct `Order and repetition` {
    /// Notifications arrive at the same instants in another order, some of them twice; in the end all have arrived.
    private func expectSame(_ words: [Word], _ id: String, _ chance: inout Chance, _ comment: Comment) throws {
        guard let end = words.map(\.at).max() else { return }
        var straight = Chain(id)
        for word in words { try straight.hear(word.record, at: word.at) }
        straight.advance(to: end + 400 * day)
        let records = try straight.records()
        var shuffled = (words + words.filter { _ in chance.yes(30) }).shuffled(using: &chance).map(\.record)
        let instants = shuffled.indices.map { words[min($0, words.count - 1)].at }
        for isShuffled in [true, false] {
            if !isShuffled { shuffled.reverse() }
            var other = Chain(id)
            for (record, instant) in zip(shuffled, instants) { try other.hear(record, at: instant) }
            other.advance(to: end + 400 * day)
            try #require(other.cells == straight.cells, comment)
            try #require(try other.records() == records, comment)
            try #require(other.state.contribution.isSame(as: straight.state.contribution), comment)
        }
    }

    @Test func `give the same cells of 150 lives of nonsense`() throws {
        for seed in UInt64(20_000)..<20_150 {
            var chance = Chance(seed: seed)
            let words = Word.nonsense(2 + Int(chance.below(14)), &chance)
            try expectSame(words, "1", &chance, "seed \(seed)")
        }
    }

    @Test func `give the same cells of every story of the simulator`() throws {
        let simulation = try simulation(3, subscribers: 150)
        var chance = Chance(seed: 7)
        for subscriber in 0..<simulation.configuration.subscribers {
            for (id, words) in Word.lives(of: subscriber, in: simulation) {
                try expectSame(words, id, &chance, "subscriber \(subscriber), \(id)")
            }
        }
    }

    @Test func `matter neither when one notification was told in different words`() throws {
        // Same id, same date, three contents: one of them counts, the same one in every order.
        let prices = [9_000, 10_000, 11_000] as [Int64]
        var records: [[UInt8]] = []
        for price in prices {
            var story = WrittenStory()
            story.begins(row("1", instant(1, 1), instant(2, 1), price: price))
            records += story.records
        }
        var seen: Set<[[UInt8]]> = []
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0], [0, 1, 0, 2, 1]] {
            var chain = Chain("1")
            for place in order { try chain.hear(records[place], at: instant(1, 1)) }
            #expect(chain.state.facts.count == 1)
            seen.insert(try chain.records())
        }
        #expect(seen.count == 1)
        let revenue = try #require(try Chain.of(records).totals.values.first)[.revenue]
        #expect(prices.contains(revenue))
    }
}

extension Chain {
    fileprivate static func of(_ records: [[UInt8]]) throws -> Chain {
        var chain = Chain("1")
        for record in records { try chain.hear(record, at: instant(1, 1)) }
        return chain
    }
}

extension Contribution {
    /// The places of parts are those of each chain's own table. What counts is how many numbers there are, and their sums.
    fileprivate func isSame(as other: Contribution) -> Bool {
        func shape(_ contribution: Contribution) -> [[Int64]] {
            contribution.postings.map { [$0.day, Int64($0.counter?.rawValue ?? .max), $0.value] }.sorted {
                $0.lexicographicallyPrecedes($1)
            }
        }
        return shape(self) == shape(other)
    }
}

@Suite struct `Limits of facts` {
    private func told(_ count: Int, _ record: (Int) -> [UInt8]) throws -> [Facts] {
        try (0..<count).map { try #require(try facts(record($0))) }
    }

    private func merged(_ news: some Sequence<Facts>) -> ChainState {
        var state = ChainState()
        for facts in news { state.facts.merge(facts) }
        return state
    }

    private func totals(_ state: ChainState, at clock: Int64) -> Sums {
        var state = state
        var sums = Sums()
        for change in state.settle(at: clock, originalTransactionId: "1", .utc).changes { sums.add(change.sums) }
        return sums
    }

    @Test func `refundDeclined counts the 4,096 newest, in any order`() throws {
        let count = Facts.limit + 40
        let first = january
        let news = try told(count) { number in
            var story = WrittenStory()
            story.tell("REFUND_DECLINED", at: instant(1, 1) + Int64(number) * 60 * second, first)
            return story.records[0]
        }
        var chance = Chance(seed: 11)
        let straight = merged(news)
        #expect(straight.facts.count == Facts.limit)
        let sums = totals(straight, at: instant(1, 31))
        #expect(sums[.refundDeclined] == Int64(Facts.limit))
        let newest = merged(news.suffix(Facts.limit))
        #expect(straight.facts.bytes == newest.facts.bytes)
        for other in [merged(news.reversed()), merged(news.shuffled(using: &chance))] {
            #expect(other.facts.count == Facts.limit)
            #expect(other.facts.notices == straight.facts.notices)
            #expect(totals(other, at: instant(1, 31)) == sums)
        }
        // The oldest do not count even before their time has come.
        #expect(totals(straight, at: instant(1, 1) + 39 * 60 * second) == Sums())
        #expect(totals(straight, at: instant(1, 1) + 40 * 60 * second)[.refundDeclined] == 1)
    }

    /// Apple would not send this: 3,000 products with names of 250 letters.
    @Test func `what is kept of a subscription stays small, and is the same in any order`() throws {
        let start = instant(1, 1)
        let news = try told(3_000) { number in
            let from = start + Int64(number) * hour
            var story = WrittenStory()
            let name = String(repeating: "n", count: 245) + "\(10_000 + number)"
            story.renews(row("\(number)", from, from + hour, ["productId": name]))
            return story.records[0].replacing("n0", "n\(number)")
        }
        let clock = start + 3_000 * hour - 1
        let straight = totals(merged(news), at: clock)
        // 200,000 bytes hold 799 names beside the few short texts.
        #expect((790...800).contains(straight[.charged]))
        var chance = Chance(seed: 13)
        #expect(totals(merged(news.reversed()), at: clock) == straight)
        #expect(totals(merged(news.shuffled(using: &chance)), at: clock) == straight)
        // One after the other, as in a worker.
        var state = ChainState()
        var sums = Sums()
        for (number, one) in news.enumerated() {
            state.facts.merge(one)
            guard number % 100 == 99 else { continue }
            let settled = state.settle(at: clock, originalTransactionId: "1", .utc)
            for change in settled.changes { sums.add(change.sums) }
        }
        #expect(sums == straight)
        #expect(state.bytes.count < 600_000)
        #expect(ChainState(state.bytes)?.bytes == state.bytes)
    }

    @Test func `adopted and renewed count the 1,000 newest rows, in any order`() throws {
        let count = Row.limit + 20
        let news = try told(count) { number in
            let from = instant(1, 1) + Int64(number) * day
            var story = WrittenStory()
            story.renews(row("r\(number)", from, from + day))
            return story.records[0].replacing("n0", "n\(number)")
        }
        let clock = instant(1, 1) + Int64(count) * day - 1
        let straight = totals(merged(news), at: clock)
        #expect(straight[.adopted] == 1)
        #expect(straight[.renewed] == 999)
        #expect(straight[.charged] == 1_000)
        var chance = Chance(seed: 12)
        #expect(totals(merged(news.reversed()), at: clock) == straight)
        #expect(totals(merged(news.shuffled(using: &chance)), at: clock) == straight)
        // Only rows that have begun count: of 1,010 of them, the oldest ten do not.
        #expect(totals(merged(news), at: instant(1, 1) + 1_010 * day - 1)[.charged] == 1_000)
    }
}

extension Facts {
    fileprivate var bytes: [UInt8] {
        var state = ChainState()
        state.facts = self
        return state.bytes
    }
}

extension [UInt8] {
    /// The first one.
    fileprivate func replacing(_ old: String, _ new: String) -> [UInt8] {
        Array(String(decoding: self, as: UTF8.self).replacing("\"\(old)\"", with: "\"\(new)\"").utf8)
    }
}
