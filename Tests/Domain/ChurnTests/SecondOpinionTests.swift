import PlainChurn
import Simulation
import Testing

import struct MakeBelieve.Chance

@testable import Churn

/// `PlainChurn` shares no code with the product, and evaluates a life at one instant after the other.
@Suite struct `A second implementation` {
    private static let parts = 8

    @Test(arguments: 0..<parts)
    func `agrees on 1,000 lives of nonsense, at every word of them`(_ part: Int) throws {
        for seed in UInt64(part * 125)..<UInt64((part + 1) * 125) {
            var chance = Chance(seed: seed)
            let words = Word.nonsense(1 + Int(chance.below(12)), &chance)
            let facts = words.compactMap { PlainFact(record: $0.record) }
            var chain = Chain("1")
            for (place, word) in words.enumerated() {
                try chain.hear(word.record, at: word.at)
                try #require(judge(chain, facts[...place]) == nil, "seed \(seed), after \(place + 1) words")
            }
            try chain.advance(to: chain.clock + 200 * day)
            try #require(judge(chain, facts[...]) == nil, "seed \(seed), long after")
        }
    }

    /// Apple's ids are numbers. Other ids are kept as text.
    @Test func `agrees on 300 lives of nonsense whose transactions have names`() throws {
        for seed in UInt64(2_000)..<2_300 {
            var chance = Chance(seed: seed)
            let words = Word.nonsense(2 + Int(chance.below(12)), &chance).map(named)
            let facts = words.compactMap { PlainFact(record: $0.record) }
            var chain = Chain("no. 1")
            for (place, word) in words.enumerated() {
                try chain.hear(word.record, at: word.at)
                try #require(judge(chain, facts[...place]) == nil, "seed \(seed), after \(place + 1) words")
            }
            #expect(try String(decoding: #require(chain.kept), as: UTF8.self).contains("no. "))
        }
    }

    private func named(_ word: Word) -> Word {
        let record = String(decoding: word.record, as: UTF8.self)
        let named = record.replacing("\"transactionId\":\"", with: "\"transactionId\":\"no. ")
        return Word(at: word.at, record: Array(named.utf8))
    }

    /// Every story equally often, some cut short, some in sandbox.
    @Test(arguments: 0..<parts)
    func `agrees on 10,000 lives of the simulator, on the way and at the end, and adds up`(_ part: Int) throws {
        let simulation = try simulation(part)
        var chance = Chance(seed: UInt64(part))
        var judged = 0
        for subscriber in 0..<simulation.configuration.subscribers where judged < 10_000 / Self.parts {
            for (id, words) in Word.lives(of: subscriber, in: simulation) where judged < 10_000 / Self.parts {
                let facts = words.compactMap { PlainFact(record: $0.record) }
                var chain = Chain(id)
                let stop = Int(chance.below(Int64(words.count)))
                for (place, word) in words.enumerated() {
                    try chain.hear(word.record, at: word.at)
                    try #require(try chain.violation == nil, "subscriber \(subscriber), \(id), \(place + 1)")
                    guard place == stop else { continue }
                    try #require(judge(chain, facts[...place]) == nil, "subscriber \(subscriber), \(id), \(place + 1)")
                }
                try chain.advance(to: simulation.configuration.end)
                try #require(try chain.violation == nil, "subscriber \(subscriber), \(id), at the end")
                try #require(judge(chain, facts[...]) == nil, "subscriber \(subscriber), \(id), at the end")
                judged += 1
            }
        }
        #expect(judged == 10_000 / Self.parts)
    }

    /// The differences between the two, as text.
    private func judge(_ chain: Chain, _ facts: ArraySlice<PlainFact>) -> String? {
        let plain = PlainChurn(facts: Array(facts), chain: chain.id, zone: "Etc/UTC", partition: 3)
        return difference(chain.plain, plain.cells(at: chain.clock))
    }
}

func simulation(_ part: Int, subscribers: Int = 2_500) throws -> Simulation {
    let start: Int64 = 1_767_225_600_000
    let months = [1, 2, 4, 15, 2, 3, 6, 14][part % 8]
    var configuration = Simulation.Configuration(
        seed: UInt64(1 + part), subscribers: subscribers,
        apps: [
            SimulatedApp(bundleId: "com.example.reader", appAppleId: 1, graceDays: 16),
            SimulatedApp(bundleId: "com.example.player", appAppleId: 2, graceDays: 28),
        ], start: start, end: start + Int64(months) * 30 * day)
    configuration.lastArrival = start + 30 * day
    configuration.sandboxPerMille = 150
    configuration.weights = Dictionary(uniqueKeysWithValues: Story.allCases.map { ($0, 1) })
    return try Simulation(configuration)
}
