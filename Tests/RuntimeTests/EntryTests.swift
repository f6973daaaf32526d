import Log
import MemoryLog
import Testing

@testable import Runtime

@Suite struct `An entry of the state` {
    @Test func `has one timer of each kind, in order of the kinds`() {
        let entry = Entry(key: [1], hash: 0, value: [1], format: 1, timers: [])
        for kind in [5, 1, 3, 200, 0] as [UInt8] { entry.setTimer(kind, due: Int64(kind)) }
        entry.setTimer(3, due: 33)
        entry.setTimer(1, due: nil)
        entry.setTimer(7, due: nil)
        #expect(entry.timers.map(\.kind) == [0, 3, 5, 200])
        #expect(entry.due(3) == 33)
        #expect(entry.due(1) == nil)
    }

    @Test func `is read as it was written`() throws {
        var dice = SplitMix64(seed: 1)
        for count in 0..<200 {
            let value = (0..<count).map { _ in UInt8.random(in: 0 ... .max, using: &dice) }
            let timers = (0..<UInt8.random(in: 0...20, using: &dice)).map { kind in
                EntryTimer(kind: kind, due: Int64(bitPattern: dice.next()))
            }
            let format = UInt8.random(in: 0 ... .max, using: &dice)
            var bytes: [UInt8] = []
            EntryCoding.encode(value, format: format, timers: timers, into: &bytes)
            let read = try #require(EntryCoding.decode(bytes))
            #expect(read.value == value)
            #expect(read.format == format)
            #expect(read.timers == timers)
        }
    }

    @Test func `that was cut short is none, as far as that can be seen`() {
        var bytes: [UInt8] = []
        EntryCoding.encode([], format: 1, timers: [.init(kind: 1, due: 5), .init(kind: 2, due: 6)], into: &bytes)
        for count in bytes.indices { #expect(EntryCoding.decode(Array(bytes[..<count])) == nil) }
    }

    @Test func `with any bit turned over is none, or another entry`() {
        var bytes: [UInt8] = []
        EntryCoding.encode([7, 8], format: 1, timers: [.init(kind: 1, due: 5)], into: &bytes)
        for index in bytes.indices {
            for bit in 0..<8 {
                var turned = bytes
                turned[index] ^= 1 << bit
                guard let (value, format, timers) = EntryCoding.decode(turned) else { continue }
                var again: [UInt8] = []
                EntryCoding.encode(value, format: format, timers: timers, into: &again)
                #expect(again == turned)
            }
        }
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
        return note
    }

    @Test func `is read as it was written`() {
        #expect(Note(decoding: full.encoded) == full)
        #expect(Note(decoding: Note(format: 1).encoded) == Note(format: 1))
    }

    @Test func `has the same bytes whatever the order in which topics came`() {
        var other = Note(format: 3)
        for (topic, next) in full.positions.sorted(by: { $0.key > $1.key }) { other.positions[topic] = next }
        other.epoch = 7
        other.clock = full.clock
        other.emitted = 42
        other.changelog = NextOffset(12)
        other.writtenAt = 55
        #expect(other.encoded == full.encoded)
    }

    @Test func `that was cut short, goes on or has another version is none`() {
        let bytes = full.encoded
        for count in bytes.indices { #expect(Note(decoding: Array(bytes[..<count])) == nil) }
        #expect(Note(decoding: bytes + [0]) == nil)
        #expect(Note(decoding: [2] + bytes.dropFirst()) == nil)
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
