// The stored state as bytes: it reads as it was written. Damaged bytes are refused or read as something else, and crash nothing.

import Contract
import Crypto
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

    /// Another build must be able to read the stored state: if the bytes change, `ChainState.format` must change.
    @Test func `are those of the format's number`() throws {
        #expect(ChainState.format == 1)
        var story = WrittenStory()
        story.begins(january)
        story.recovers(february.with(["transactionId": "second"]), at: instant(2, 5), grace: instant(2, 17))
        var chain = Chain("1")
        for word in story.words { try chain.hear(word.record, at: word.at) }
        #expect(
            hexadecimal(chain.state.bytes)
                == "00060f636f6d2e6578616d706c652e6170700b70726f2e6d6f6e74686c790e42494c4c45445f555046524f4e540355534103"
                + "555344067365636f6e6401010203040500021180a0d5edee66820d5d8baf762ec66dcd56fed15c78bf950101007e8ce07f20"
                + "7ff16d00008090a9fa13a09c012480d0f4c316676b8bb84ce7267dd520deca4811c8f1938114060015478e94961b4e32ffbf"
                + "cbc9020080c0908312a09c01001132687896cb68180280c0e2dc0700ccbf020500020a02550280a09c0191a09c01003e0a19"
                + "021a0220022102220223022402550157028ca09c0100080706020a025502570180a09c0181a09c018c9f9c01")
        #expect(ChainState(chain.state.bytes, format: 1)?.bytes == chain.state.bytes)
        #expect(ChainState(chain.state.bytes, format: 2) == nil)
        var overview = Overview(day: 20_000, zone: "Asia/Tokyo")
        var cell = CellState(at: .init(asOf: 1_767_225_600_000, offset: 300))
        for change in chain.state.contribution.changes(since: Contribution()) {
            overview.add(change.sums, of: change.day.number, currency: "USD")
            cell.add(change.sums, at: .init(asOf: 1_767_225_600_001, offset: 301))
        }
        #expect(hexadecimal(overview.bytes) == "015502c0b802000103555344a09c010a417369612f546f6b796f")
        #expect(
            hexadecimal(cell.bytes)
                == "82a0d5edee66da0480a0d5edee66d804da040e000206020a0419021a0220022102220223022402550280c0b80281a09c0191"
                + "a09c010e000206020a0419021a0220022102220223022402550280c0b80281a09c0191a09c01")
    }

    /// Continues from the state as a worker would.
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
        // A text that is not the name of a zone: a path.
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
