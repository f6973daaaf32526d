// A contribution changes with time alone only at the announced instants.

import Notices
import Simulation
import SubscriptionHistory
import Testing
import Zone

import struct MakeBelieve.Chance

@testable import Churn

@Suite struct `The next change` {
    /// Between now and the announced instant no cell changes, and no other instant is announced.
    private func expectQuiet(_ chain: Chain, _ chance: inout Chance, _ comment: Comment) throws {
        let end = chain.nextChange ?? chain.clock + 1_000 * day
        guard end > chain.clock + 1 else { return }
        let last = end - 1
        for instant in [chain.clock, chain.clock + 1 + chance.below(last - chain.clock), last] {
            try chain.desk.with(kept: chain.kept) { state in
                state.settle(at: instant, originalTransactionId: chain.purchase)
                let (changes, next) = (state.changes.count, state.nextChange)
                try #require(changes == 0, comment)
                try #require(next == chain.nextChange, comment)
            }
        }
    }

    @Test func `comes at no other instant, of 300 lives of nonsense`() throws {
        for seed in UInt64(40_000)..<40_300 {
            var chance = Chance(seed: seed)
            var chain = Chain("1")
            for word in Word.nonsense(1 + Int(chance.below(10)), &chance) {
                try chain.hear(word.record, at: word.at)
                try expectQuiet(chain, &chance, "seed \(seed)")
            }
            while let due = chain.nextChange {
                try chain.advance(to: due)
                try expectQuiet(chain, &chance, "seed \(seed), at \(due)")
            }
        }
    }

    @Test func `comes at no other instant, of every story of the simulator`() throws {
        let simulation = try simulation(1, subscribers: 120)
        var chance = Chance(seed: 5)
        for subscriber in 0..<simulation.configuration.subscribers {
            for (id, words) in Word.lives(of: subscriber, in: simulation) {
                var chain = Chain(id)
                for word in words {
                    try chain.hear(word.record, at: word.at)
                    try expectQuiet(chain, &chance, "subscriber \(subscriber), \(id)")
                }
            }
        }
    }

    @Test func `is the end of the row, of the grace, of the window, then none`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.fails(january, at: instant(1, 31), grace: instant(2, 17))
        var chain = Chain("1")
        for word in story.words { try chain.hear(word.record, at: word.at) }
        var told: [Int64] = []
        while let due = chain.nextChange {
            told.append(due)
            try chain.advance(to: due)
        }
        #expect(told == [instant(2, 1), instant(2, 17), instant(4, 2)])
    }

    @Test func `is a word signed ahead of the clock`() throws {
        var story = WrittenStory()
        story.begins(january)
        story.tell("DID_RENEW", at: instant(1, 20), february, arriving: instant(1, 10))
        var chain = Chain("1")
        for word in story.words { try chain.hear(word.record, at: word.at) }
        #expect(chain.nextChange == instant(1, 20))
        try chain.advance(to: instant(1, 20))
        #expect(chain.nextChange == instant(2, 1))
    }
}
