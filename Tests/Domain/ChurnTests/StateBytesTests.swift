// The stored state as bytes: it reads as it was written. Damaged bytes are refused or read as something else, and crash nothing.

import Contract
import Crypto
import Foundation
import Notices
import SubscriptionHistory
import Testing
import Zone

import struct MakeBelieve.Chance

@testable import Churn

@Suite struct `Bytes of a state` {
    private func state(_ seed: UInt64, words: Int) throws -> [UInt8] {
        var chance = Chance(seed: seed)
        var chain = Chain("1")
        for word in Word.nonsense(words, &chance) { try chain.hear(word.record, at: word.at) }
        return chain.kept ?? [UInt8](repeating: 0, count: 4)
    }

    @Test func `are read as they were written`() throws {
        let desk = Desk()
        for seed in UInt64(50_000)..<50_100 {
            let kept = try state(seed, words: 1 + Int(seed % 15))
            let written = try desk.with(kept: kept) { try $0.written() }
            #expect(written == kept)
        }
        let nothing = try desk.with(kept: nil) { try $0.written() }
        #expect(nothing == [0, 0, 0, 0])
        let same = try desk.with(kept: nothing) { try $0.written() }
        #expect(same == nothing)
    }

    @Test func `cut short anywhere stop nothing`() throws {
        for seed in UInt64(51_000)..<51_010 {
            let bytes = try state(seed, words: 12)
            for end in 0..<bytes.count { try settle(Array(bytes[..<end])) }
            #expect(!isState(bytes + [0]))
        }
        #expect(!isState([]))
    }

    @Test func `changed anywhere stop nothing`() throws {
        var chance = Chance(seed: 52_000)
        for seed in UInt64(52_000)..<52_020 {
            let bytes = try state(seed, words: 12)
            for _ in 0..<100 {
                var damaged = bytes
                for _ in 0...chance.below(3) {
                    damaged[Int(chance.below(Int64(damaged.count)))] = UInt8(truncatingIfNeeded: chance.next())
                }
                try settle(damaged)
            }
        }
    }

    private static let keptBytes =
        "00060f636f6d2e6578616d706c652e6170700b70726f2e6d6f6e74686c790e42494c4c45445f555046524f4e540355534103"
        + "555344067365636f6e6401010203040500021180a0d5edee66820d5d8baf762ec66dcd56fed15c78bf950101007e8ce07f20"
        + "7ff16d00008090a9fa13a09c012480d0f4c316676b8bb84ce7267dd520deca4811c8f1938114060015478e94961b4e32ffbf"
        + "cbc9020080c0908312a09c01001132687896cb68180280c0e2dc0700ccbf020500020a02550280a09c0191a09c01003e0a19"
        + "021a0220022102220223022402550157028ca09c0100080706020a025502570180a09c0181a09c018c9f9c01"

    /// No worker can have written these.
    @Test(arguments: [
        "a text twice": ["0006": "0007", "7365636f6e64": "7365636f6e6403555344"],
        "a number as a text": ["7365636f6e64": "313233343536"],
        "a negative price": ["8090a9fa13a09c01": "8090a9fa1301"],
        "a cell without postings": ["8c9f9c01": "8c9f9c01000000"],
        "a cell in two groups": ["8c9f9c01": "8c9f9c010000019102"],
    ])
    func `that no worker can have written are none`(_ name: String, _ changes: [String: String]) throws {
        #expect(isState(try bytes(Self.keptBytes)))
        var changed = Self.keptBytes
        for (part, other) in changes {
            let place = try #require(changed.range(of: part))
            changed.replaceSubrange(place, with: other)
        }
        #expect(!isState(try bytes(changed)), "\(name)")
    }

    private func bytes(_ hexadecimal: String) throws -> [UInt8] {
        try stride(from: 0, to: hexadecimal.count, by: 2).map { place in
            try #require(UInt8(hexadecimal.dropFirst(place).prefix(2), radix: 16))
        }
    }

    private func isState(_ bytes: [UInt8], format: UInt8 = ChainState.format) -> Bool {
        let desk = Desk()
        return bytes.withUnsafeBufferPointer { desk.state.read($0, format: format) }
    }

    /// Continues from the state as a worker would.
    private func settle(_ bytes: [UInt8]) throws {
        let desk = Desk()
        let written = try bytes.withUnsafeBufferPointer { bytes -> [UInt8]? in
            guard desk.state.read(bytes) else { return nil }
            desk.state.settle(at: 1_790_000_000_000, originalTransactionId: purchaseId("1"))
            return try desk.state.written()
        }
        if let written { #expect(isState(written)) }
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
            try hexadecimal(#require(chain.kept)) == Self.keptBytes)
        let kept = try #require(chain.kept)
        #expect(isState(kept, format: 1))
        #expect(!isState(kept, format: 2))
        var overview = Overview(day: 20_000, zone: "Asia/Tokyo")
        var cell = CellState(at: .init(asOf: 1_767_225_600_000, offset: 300))
        for (_, change) in try changes(since: kept) {
            overview.add(change, of: 20_489, currency: "USD")
            cell.add(change, at: .init(asOf: 1_767_225_600_001, offset: 301))
        }
        #expect(hexadecimal(overview.bytes) == "015502c0b802000103555344a09c010a417369612f546f6b796f")
        #expect(
            hexadecimal(cell.bytes)
                == "82a0d5edee66da0480a0d5edee66d804da040e000206020a0419021a0220022102220223022402550280c0b80281a09c0191"
                + "a09c010e000206020a0419021a0220022102220223022402550280c0b80281a09c0191a09c01")
    }

    @Test func `of a cell and of the overview are read as they were written, and cut short are none`() throws {
        var cell = CellState(at: .init(asOf: 5, offset: 3))
        var overview = Overview(day: 20_000, zone: "America/New_York")
        var offset: Int64 = 4
        for seed in UInt64(53_000)..<53_020 {
            for (day, change) in try changes(since: state(seed, words: 12)) {
                cell.add(change, at: .init(asOf: offset * 10, offset: offset))
                offset += 1
                overview.add(change, of: day, currency: offset % 2 == 0 ? "EUR" : "USD")
            }
        }
        #expect(!cell.sums.isEmpty)
        #expect(CellState(cell.bytes) == cell)
        #expect(Overview(overview.bytes) == overview)
        #expect(Overview(overview.bytes)?.zone == "America/New_York")
        // No calendar has this day, and its end could not be found.
        #expect(Overview(Overview(day: .max, zone: "UTC").bytes) == nil)
        // A text that is not the name of a zone: a path.
        let slash = overview.bytes.lastIndex(of: UInt8(ascii: "/"))!
        for byte in [UInt8(ascii: "."), 0, 0xff] {
            var damaged = overview.bytes
            damaged[slash] = byte
            #expect(Overview(damaged) == nil)
            // The same memory does not learn the name.
            var used = overview
            for _ in 0..<2 {
                let isRead = damaged.withUnsafeBufferPointer { used.read($0) }
                #expect(!isRead)
            }
        }
        for end in 0..<cell.bytes.count { #expect(CellState(Array(cell.bytes[..<end])) == nil) }
        for end in 0..<overview.bytes.count { #expect(Overview(Array(overview.bytes[..<end])) == nil) }
    }
}

/// The contribution of a state, by cell.
private func changes(since kept: [UInt8]) throws -> [(day: Int64, sums: Sums)] {
    try Desk().with(kept: kept) { state in
        var cells: [(cell: UInt64, day: Int64, sums: Sums)] = []
        for posting in state.postings {
            if cells.last?.cell != posting.cell { cells.append((posting.cell, posting.day, Sums())) }
            cells[cells.count - 1].sums.add(posting.value, to: try #require(posting.counter))
        }
        return cells.map { ($0.day, $0.sums) }
    }
}

extension Overview {
    fileprivate init?(_ bytes: [UInt8]) {
        self.init(day: 0, zone: "UTC")
        guard bytes.withUnsafeBufferPointer({ read($0) }) else { return nil }
    }

    fileprivate var bytes: [UInt8] {
        var writer = ByteWriter()
        write(to: &writer)
        return writer.bytes
    }

    fileprivate mutating func add(_ sums: Sums, of day: Int64, currency: Text) {
        sums.all.withUnsafeBufferPointer { sums in
            currency.bytes.withUnsafeBufferPointer { add(sums, of: day, currency: $0) }
        }
    }
}

extension CellState {
    fileprivate init?(_ bytes: [UInt8]) {
        self.init(at: Mark(asOf: 0, offset: 0))
        guard bytes.withUnsafeBufferPointer({ read($0) }) else { return nil }
    }

    fileprivate var bytes: [UInt8] {
        var writer = ByteWriter()
        write(to: &writer)
        return writer.bytes
    }

    fileprivate mutating func add(_ sums: Sums, at mark: Mark) {
        sums.all.withUnsafeBufferPointer { add($0, at: mark) }
    }
}

@Suite struct `Numbers of kept bytes` {
    /// Those at which one more byte is needed, and their neighbours.
    private static let values: [UInt64] = {
        var values: [UInt64] = [0, 1, .max, .max - 1]
        for length in 1...9 {
            let first = UInt64(1) << UInt64(7 * length)
            values += [first - 1, first, first + 1]
        }
        return values
    }()

    /// Some are read eight bytes at once.
    @Test func `are read as they were written, whatever follows`() {
        for value in Self.values {
            for rest in 0..<10 {
                var writer = ByteWriter()
                writer.unsigned(value)
                let length = writer.written.count
                for _ in 0..<rest { writer.byte(0xff) }
                var reader = KeptReader(writer.written)
                let read = reader.unsigned()
                #expect(read == value && reader.isValid && reader.rest == rest)
                // Cut short, and in a longer form.
                var short = KeptReader(UnsafeBufferPointer(rebasing: writer.written[..<(length - 1)]))
                _ = short.unsigned()
                #expect(!short.isValid)
                guard length < 10 else { continue }
                var longer = Array(writer.written[..<length])
                longer[length - 1] |= 0x80
                longer.append(0)
                longer += [UInt8](repeating: 0xff, count: rest)
                longer.withUnsafeBufferPointer { bytes in
                    var long = KeptReader(bytes)
                    _ = long.unsigned()
                    #expect(!long.isValid)
                }
            }
        }
    }

    @Test func `as ids have the order of their digits`() {
        var numbers: [UInt64] = [0, 1, 2, TransactionId.limitNumber - 1]
        var power: UInt64 = 10
        while power < TransactionId.limitNumber / 10 {
            numbers += [power - 1, power, power + 1, power * 2]
            power *= 10
        }
        for one in numbers {
            for other in numbers {
                #expect(TransactionId.precedes(one, other) == (String(one) < String(other)), "\(one), \(other)")
            }
        }
    }
}
