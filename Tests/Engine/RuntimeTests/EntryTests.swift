import Log
import LogTestKit
import MemoryLog
import Testing

@testable import Runtime

@Suite struct `An entry of the state` {
    private func encoded(_ content: Entry.Content, withPlaces: Bool = true) -> [UInt8] {
        var bytes: [UInt8] = []
        EntryCoding.encode(content, withPlaces: withPlaces, into: &bytes)
        return bytes
    }

    private func decoded(_ bytes: [UInt8]) -> Entry.Content? { EntryCoding.decode(bytes.span) }

    @Test func `has one timer of each kind, in order of the kinds`() {
        let entry = Entry(key: [1], hash: 0, content: .init(value: [1], format: 1, timers: []))
        for kind in [5, 1, 3, 120, 0] as [UInt8] { entry.setTimer(kind, due: Int64(kind)) }
        entry.setTimer(3, due: 33)
        entry.setTimer(1, due: nil)
        entry.setTimer(7, due: nil)
        #expect(entry.timers.map(\.kind) == [0, 3, 5, 120])
        #expect(entry.timer(3)?.due == 33)
        #expect(entry.timer(1) == nil)
    }

    @Test func `leaves a timer that moves later where it is, until it is put where it belongs`() {
        let entry = Entry(key: [1], hash: 0, content: .init(value: [1], format: 1, timers: []))
        #expect(entry.setTimer(1, due: 50))
        #expect(!entry.setTimer(1, due: 70))
        #expect(!entry.setTimer(1, due: 60))
        #expect(entry.timer(1) == EntryTimer(kind: 1, due: 60, place: 50))
        #expect(entry.setTimer(1, due: 40))
        #expect(entry.timer(1) == EntryTimer(kind: 1, due: 40))
        #expect(!entry.setTimer(1, due: 90))
        entry.settleTimer(1)
        #expect(entry.timer(1) == EntryTimer(kind: 1, due: 90))
    }

    @Test func `is read as it was written`() throws {
        var dice = SplitMix64(seed: 1)
        for count in 0..<200 {
            let value = (0..<count).map { _ in UInt8.random(in: 0 ... .max, using: &dice) }
            let timers = (0..<UInt8.random(in: 0...20, using: &dice)).map { kind in
                let due = Int64(bitPattern: dice.next())
                return EntryTimer(
                    kind: kind, due: due,
                    place: Bool.random(using: &dice) ? due : Int64.random(in: .min...due, using: &dice))
            }
            let content = Entry.Content(
                value: value, format: UInt8.random(in: 0 ... .max, using: &dice), timers: timers)
            let bytes = encoded(content)
            let read = try #require(decoded(bytes))
            #expect(read.value == value)
            #expect(read.format == content.format)
            #expect(read.timers == timers)
            // A changelog contains when timers are due, but not where one store keeps them.
            let logged = encoded(content, withPlaces: false)
            #expect(decoded(logged)?.timers == timers.map { EntryTimer(kind: $0.kind, due: $0.due) })
        }
    }

    @Test func `that was cut short is none, as far as that can be seen`() {
        let bytes = encoded(
            .init(value: [], format: 1, timers: [.init(kind: 1, due: 5), .init(kind: 2, due: 6, place: 4)]))
        for count in bytes.indices {
            let isNone = decoded(Array(bytes[..<count])) == nil
            #expect(isNone)
        }
    }

    @Test func `with any bit turned over is none, or another entry`() {
        let bytes = encoded(
            .init(value: [7, 8], format: 1, timers: [.init(kind: 1, due: 5), .init(kind: 2, due: 9, place: 8)]))
        for index in bytes.indices {
            for bit in 0..<8 {
                var turned = bytes
                turned[index] ^= 1 << bit
                guard let content = decoded(turned) else { continue }
                #expect(encoded(content) == turned)
            }
        }
    }
}

@Suite struct `The hash of an entry` {
    private func hash(_ key: [UInt8], _ entry: [UInt8]) -> UInt64 { EntryHash.hash(key: key.span, entry: entry.span) }

    /// Notes in logs and on disks contain sums of entries.
    @Test func `is the same in every build`() {
        #expect(hash([], []) == 17_299_426_708_889_911_597)
        #expect(hash([1], [1, 0]) == 13_886_776_137_765_850_876)
        #expect(hash(Array("subscription".utf8), [1, 0] + (0..<100).map { UInt8($0) }) == 4_615_270_983_851_783_609)
    }

    @Test func `depends on each bit, and on where the key ends`() {
        let bytes = (0..<40).map { UInt8($0 * 5) }
        var seen: Set<UInt64> = []
        for end in 0...bytes.count { seen.insert(hash(Array(bytes[..<end]), Array(bytes[end...]))) }
        for index in bytes.indices {
            for bit in 0..<8 {
                var turned = bytes
                turned[index] ^= 1 << bit
                seen.insert(hash(Array(turned[..<20]), Array(turned[20...])))
            }
        }
        // Zeros at the end count as bytes, too.
        for count in 1..<20 { seen.insert(hash([], [UInt8](repeating: 0, count: count))) }
        #expect(seen.count == 41 + 320 + 19)
    }

    @Test func `is that of the changelog's bytes, whatever places the store knows`() throws {
        let content = Entry.Content(
            value: [7, 8], format: 2,
            timers: [EntryTimer(kind: 1, due: 500, place: 300), EntryTimer(kind: 2, due: 900)])
        var (stored, logged): ([UInt8], [UInt8]) = ([], [])
        EntryCoding.encode(content, withPlaces: true, into: &stored)
        EntryCoding.encode(content, withPlaces: false, into: &logged)
        let key: [UInt8] = [1, 2, 3]
        #expect(stored != logged)
        #expect(EntryHash.hash(key: key.span, stored: stored.span) == hash(key, logged))
        #expect(EntryHash.hash(key: key.span, stored: logged.span) == hash(key, logged))
        #expect(EntryHash.hash(key: key.span, stored: Array(stored.prefix(9)).span) == nil)
    }
}

@Suite struct `The note of a partition` {
    private var full: Note {
        var note = Note(format: 3)
        note.epoch = 7
        note.clock = 1_700_000_000_000
        note.emitted = 42
        note.positions = ["events": NextOffset(9), "rows": NextOffset(.max), "": NextOffset(0)]
        note.changelog = NextOffset(12)
        note.writtenAt = 55
        note.life = 0x0102_0304_0506_0708
        note.sum = StateSum(keys: 5, checksum: .max)
        note.noteOffset = NextOffset(11)
        return note
    }

    @Test func `is read as it was written`() {
        #expect(Note(decoding: full.encoded) == full)
        #expect(Note(decoding: Note(format: 1).encoded) == Note(format: 1))
    }

    /// These bytes are in logs and on disks: the code that reads them may change, but the bytes may not.
    @Test func `is read as other builds have written it`() throws {
        func bytes(_ hexadecimal: String) -> [UInt8] {
            let digits = Array(hexadecimal.utf8)
            return stride(from: 0, to: digits.count, by: 2).map { index in
                UInt8(String(decoding: digits[index..<(index + 2)], as: UTF8.self), radix: 16)!
            }
        }
        let common =
            "03" + "07000000" + "0068e5cf8b010000" + "2a000000" + "0c00000000000000" + "3700000000000000" + "0100"
            + "0400"
            + "726f7773" + "0900000000000000"
        let first = try #require(Note(decoding: bytes("01" + common)))
        var expected = full
        expected.positions = ["rows": NextOffset(9)]
        let second = bytes(
            "02" + common + "0807060504030201" + "01" + "0500000000000000" + "ffffffffffffffff" + "0b00000000000000")
        #expect(Note(decoding: second) == expected)
        #expect(expected.encoded == second)
        (expected.life, expected.sum, expected.noteOffset) = (nil, nil, nil)
        #expect(first == expected)
    }

    @Test func `has the same bytes whatever the order in which topics came`() {
        var other = Note(format: 3)
        for (topic, next) in full.positions.sorted(by: { $0.key > $1.key }) { other.positions[topic] = next }
        other.epoch = 7
        other.clock = full.clock
        other.emitted = 42
        other.changelog = NextOffset(12)
        other.writtenAt = 55
        (other.life, other.sum, other.noteOffset) = (full.life, full.sum, full.noteOffset)
        #expect(other.encoded == full.encoded)
    }

    @Test func `that was cut short, goes on or has another version is none`() {
        let bytes = full.encoded
        for count in bytes.indices { #expect(Note(decoding: Array(bytes[..<count])) == nil) }
        #expect(Note(decoding: bytes + [0]) == nil)
        for version: UInt8 in [0, 1, 3] { #expect(Note(decoding: [version] + bytes.dropFirst()) == nil) }
    }

    @Test func `with any bit turned over is none, or another note`() {
        let bytes = full.encoded
        for index in bytes.indices {
            for bit in 0..<8 {
                var turned = bytes
                turned[index] ^= 1 << bit
                #expect(Note(decoding: turned) != full)
            }
        }
    }
}
