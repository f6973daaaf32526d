import Log
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
            // A changelog says when timers are due, and nothing of where one store has them.
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
