// What workers keep, as bytes: read as it was written; damaged it is refused or is something else, and stops nothing.

import Contract
import Notices
import Testing
import Zone

import struct MakeBelieve.Chance

@testable import Churn

@Suite struct `Bytes of a state` {
    private func state(_ seed: UInt64, words: Int) throws -> ChainState {
        var chance = Chance(seed: seed)
        var chain = Chain("1")
        for word in Word.nonsense(words, &chance) { try chain.hear(word.record, at: word.at) }
        return chain.state
    }

    @Test func `are read as they were written`() throws {
        for seed in UInt64(50_000)..<50_100 {
            let state = try state(seed, words: 1 + Int(seed % 15))
            let read = try #require(ChainState(state.bytes))
            #expect(read.facts.notices == state.facts.notices)
            #expect(read.contribution == state.contribution)
            #expect(read.bytes == state.bytes)
        }
        #expect(try #require(ChainState(ChainState().bytes)).bytes == ChainState().bytes)
    }

    @Test func `cut short anywhere stop nothing`() throws {
        for seed in UInt64(51_000)..<51_010 {
            let bytes = try state(seed, words: 12).bytes
            for end in 0..<bytes.count { try settle(ChainState(Array(bytes[..<end]))) }
            #expect(ChainState(bytes + [0]) == nil)
        }
        #expect(ChainState([]) == nil)
    }

    @Test func `changed anywhere stop nothing`() throws {
        var chance = Chance(seed: 52_000)
        for seed in UInt64(52_000)..<52_020 {
            let bytes = try state(seed, words: 12).bytes
            for _ in 0..<100 {
                var damaged = bytes
                for _ in 0...chance.below(3) {
                    damaged[Int(chance.below(Int64(damaged.count)))] = UInt8(truncatingIfNeeded: chance.next())
                }
                try settle(ChainState(damaged))
            }
        }
    }

    /// As a worker would go on with it.
    private func settle(_ state: ChainState?) throws {
        guard var state else { return }
        _ = state.settle(at: 1_790_000_000_000, originalTransactionId: "1", .utc)
        #expect(ChainState(state.bytes) != nil)
    }

    @Test func `of a cell and of the overview are read as they were written, and cut short are none`() throws {
        var cell = CellState(at: .init(asOf: 5, offset: 3))
        var overview = Overview(day: 20_000, zone: "America/New_York")
        var offset: Int64 = 4
        for seed in UInt64(53_000)..<53_020 {
            let state = try state(seed, words: 12)
            for change in state.contribution.changes(since: Contribution()) {
                cell.add(change.sums, at: .init(asOf: offset * 10, offset: offset))
                offset += 1
                overview.add(change.sums, of: change.day.number, currency: change.parts % 2 == 0 ? "EUR" : "USD")
            }
        }
        #expect(!cell.sums.isEmpty)
        #expect(CellState(cell.bytes) == cell)
        #expect(Overview(overview.bytes) == overview)
        #expect(Overview(overview.bytes)?.zone == "America/New_York")
        // What no zone is called: a path.
        let slash = overview.bytes.lastIndex(of: UInt8(ascii: "/"))!
        for byte in [UInt8(ascii: "."), 0, 0xff] {
            var damaged = overview.bytes
            damaged[slash] = byte
            #expect(Overview(damaged) == nil)
        }
        for end in 0..<cell.bytes.count { #expect(CellState(Array(cell.bytes[..<end])) == nil) }
        for end in 0..<overview.bytes.count { #expect(Overview(Array(overview.bytes[..<end])) == nil) }
    }
}
