// Whatever the order of notifications, and however often they repeat: the cells are the same, byte for byte.

import Contract
import Notices
import Simulation
import SubscriptionHistory
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
        try straight.advance(to: end + 400 * day)
        let records = try straight.records()
        var shuffled = (words + words.filter { _ in chance.yes(30) }).shuffled(using: &chance).map(\.record)
        let instants = shuffled.indices.map { words[min($0, words.count - 1)].at }
        for isShuffled in [true, false] {
            if !isShuffled { shuffled.reverse() }
            var other = Chain(id)
            for (record, instant) in zip(shuffled, instants) { try other.hear(record, at: instant) }
            try other.advance(to: end + 400 * day)
            try #require(other.cells == straight.cells, comment)
            try #require(try other.records() == records, comment)
            try #require(try other.contribution == straight.contribution, comment)
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
            #expect(try chain.noticeCount == 1)
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

extension Chain {
    /// The places of parts are those of each chain's own table. What counts is how many numbers there are, and their sums.
    fileprivate var contribution: [[Int64]] {
        get throws {
            try desk.with(kept: kept) { state in
                state.postings.map { [$0.day, Int64($0.counter?.rawValue ?? .max), $0.value] }.sorted {
                    $0.lexicographicallyPrecedes($1)
                }
            }
        }
    }

    fileprivate var noticeCount: Int {
        get throws { try desk.with(kept: kept) { $0.timeline.facts.count } }
    }
}

/// What is known after many notifications, without reading kept bytes between them.
private final class Known {
    private let desk = Desk()
    private var texts: [UnsafeMutableBufferPointer<UInt8>] = []

    init(_ records: some Sequence<[UInt8]>) throws {
        for record in records { try hear(record) }
    }

    deinit { for text in texts { text.deallocate() } }

    func hear(_ record: [UInt8]) throws {
        var news = try #require(try desk.news(record))
        // The next record takes the place of this one.
        news.bundle = kept(news.bundle)
        news.product = kept(news.product)
        news.plan = kept(news.plan)
        news.storefront = kept(news.storefront)
        news.currency = kept(news.currency)
        news.id = kept(news.id)
        news.nextProduct = kept(news.nextProduct)
        news.nextPlan = kept(news.nextPlan)
        news.nextCommitmentProduct = kept(news.nextCommitmentProduct)
        news.nextCommitmentPlan = kept(news.nextCommitmentPlan)
        _ = desk.state.merge(news)
    }

    private func kept(_ text: TextPlace?) -> TextPlace? {
        guard let text else { return nil }
        let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: text.count)
        _ = copy.initialize(from: text.bytes)
        texts.append(copy)
        return TextPlace(start: copy.baseAddress!, count: text.count)
    }

    var count: Int { desk.state.timeline.facts.count }
    var bytes: [UInt8] { get throws { try desk.state.written() } }

    /// From the same bytes each time: nothing was counted before.
    func totals(at clock: Int64) throws -> Sums {
        let kept = try bytes
        return try Desk().with(kept: kept) { $0.settled(at: clock, purchaseId("1")) }
    }
}

@Suite struct `Limits of facts` {
    private func told(_ count: Int, _ record: (Int) -> [UInt8]) -> [[UInt8]] { (0..<count).map(record) }

    private func totals(_ records: some Sequence<[UInt8]>, at clock: Int64) throws -> Sums {
        try Known(records).totals(at: clock)
    }

    @Test func `refundDeclined counts the 4,096 newest, in any order`() throws {
        let count = Facts.limit + 40
        let first = january
        let news = told(count) { number in
            var story = WrittenStory()
            story.tell("REFUND_DECLINED", at: instant(1, 1) + Int64(number) * 60 * second, first)
            return story.records[0]
        }
        var chance = Chance(seed: 11)
        let straight = try Known(news)
        #expect(straight.count == Facts.limit)
        let sums = try straight.totals(at: instant(1, 31))
        #expect(sums[.refundDeclined] == Int64(Facts.limit))
        let newest = try Known(news.suffix(Facts.limit))
        #expect(try straight.bytes == newest.bytes)
        for other in [try Known(news.reversed()), try Known(news.shuffled(using: &chance))] {
            #expect(other.count == Facts.limit)
            #expect(try other.bytes == straight.bytes)
            #expect(try other.totals(at: instant(1, 31)) == sums)
        }
        // The oldest do not count even before their time has come.
        #expect(try straight.totals(at: instant(1, 1) + 39 * 60 * second) == Sums())
        #expect(try straight.totals(at: instant(1, 1) + 40 * 60 * second)[.refundDeclined] == 1)
    }

    /// Apple would not send this: 3,000 products with names of 250 letters.
    @Test func `what is kept of a subscription stays small, and is the same in any order`() throws {
        let start = instant(1, 1)
        let news = told(3_000) { number in
            let from = start + Int64(number) * hour
            var story = WrittenStory()
            let name = String(repeating: "n", count: 245) + "\(10_000 + number)"
            story.renews(row("\(number)", from, from + hour, ["productId": name]))
            return story.records[0].replacing("n0", "n\(number)")
        }
        let clock = start + 3_000 * hour - 1
        let straight = try totals(news, at: clock)
        // 200,000 bytes hold 799 names beside the few short texts.
        #expect((790...800).contains(straight[.charged]))
        var chance = Chance(seed: 13)
        #expect(try totals(news.reversed(), at: clock) == straight)
        #expect(try totals(news.shuffled(using: &chance), at: clock) == straight)
        // One after the other, as in a worker.
        let desk = Desk()
        var kept: [UInt8]?
        var sums = Sums()
        for (number, one) in news.enumerated() {
            let told = try #require(try desk.news(one))
            kept = try desk.with(kept: kept) { state in
                let isNew = state.merge(told)
                #expect(isNew)
                if number % 100 == 99 { sums.add(state.settled(at: clock, purchaseId("1"))) }
                var writer = ByteWriter()
                state.write(to: &writer)
                return writer.bytes
            }
        }
        #expect(sums == straight)
        let bytes = try #require(kept)
        #expect(bytes.count < 600_000)
        let written = try desk.with(kept: bytes) { try $0.written() }
        #expect(written == bytes)
    }

    @Test func `adopted and renewed count the 1,000 newest rows, in any order`() throws {
        let count = Row.limit + 20
        let news = told(count) { number in
            let from = instant(1, 1) + Int64(number) * day
            var story = WrittenStory()
            story.renews(row("r\(number)", from, from + day))
            return story.records[0].replacing("n0", "n\(number)")
        }
        let clock = instant(1, 1) + Int64(count) * day - 1
        let straight = try totals(news, at: clock)
        #expect(straight[.adopted] == 1)
        #expect(straight[.renewed] == 999)
        #expect(straight[.charged] == 1_000)
        var chance = Chance(seed: 12)
        #expect(try totals(news.reversed(), at: clock) == straight)
        #expect(try totals(news.shuffled(using: &chance), at: clock) == straight)
        // Only rows that have begun count: of 1,010 of them, the oldest ten do not.
        #expect(try totals(news, at: instant(1, 1) + 1_010 * day - 1)[.charged] == 1_000)
    }
}

extension [UInt8] {
    /// The first one.
    fileprivate func replacing(_ old: String, _ new: String) -> [UInt8] {
        Array(String(decoding: self, as: UTF8.self).replacing("\"\(old)\"", with: "\"\(new)\"").utf8)
    }
}
