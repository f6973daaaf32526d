import Log
import MemoryLog
import Platform
import Store
import Synchronization

@testable import Runtime

/// A changelog of one partition, a store, and a restorer that restores the store from the changelog.
final class RestoreBench {
    let script = Script()
    let clock = MemoryLog.Clock.manual(startingAt: 1_700_000_000_000)
    let log: MemoryLog
    let disk = MemoryDisk()
    let restorer: Restorer
    private let writer: any LogWriter
    private let heard = Heard()
    private(set) var tokens: UInt64 = 0
    /// The life of the changelog in the notes of commits; nil: the notes are of a build without lives.
    var life: UInt64?
    /// How often the state of a replay has replaced this one.
    var epoch: UInt32 = 0
    /// The committed state, as in the changelog.
    private var entries: [String: [UInt8]] = [:]
    /// The offset of the next record.
    private(set) var end: Int64 = 0

    /// - Parameter shown: what the restorer gets instead of the log.
    init(
        faults: (any LogFaults)? = nil, format: UInt8 = 3, oldest: UInt8 = 2,
        shown: (MemoryLog) -> any RecordLog = { $0 }
    ) throws {
        log = MemoryLog(clock: clock, faults: faults)
        var definition = script.definition
        definition.stateFormat = format
        definition.oldestReadableFormat = oldest
        let topics = [definition.events.topic, "rows", definition.changelog]
        try log.create(
            topics.map { NewTopic($0, partitions: 1, isCompacted: $0 == definition.changelog) },
            by: Deadline(after: .seconds(1)))
        writer = try log.openWriter(WriterOptions(name: "writer", topics: topics))
        let (clock, heard) = (clock, heard)
        restorer = Restorer(
            definition, log: shown(log), name: "restorer", wallClock: { clock.now },
            remaining: { left in heard.remaining.withLock { $0.append(left) } })
    }

    private final class Heard: Sendable {
        let remaining = Mutex<[Int64]>([])
        let replies = Mutex<[RestoreReply]>([])
    }

    var remainingTold: [Int64] { heard.remaining.withLock { $0 } }

    // MARK: The changelog

    /// A commit of some keys, with the note of its position; nil deletes a key. The `lost` changes do not reach the changelog.
    func commit(_ changes: [(String, String?)], events: Int64, format: UInt8 = 3, lost: Set<String> = []) throws {
        let batch = OutputBatch()
        for (key, value) in changes {
            var bytes: [UInt8]?
            if let value {
                bytes = []
                EntryCoding.encode(
                    .init(value: Array(value.utf8), format: format, timers: []), withPlaces: false, into: &bytes!)
            }
            entries[key] = bytes
            if lost.contains(key) { continue }
            batch.append(topic: 2, partition: 0, timestamp: clock.now, key: [1] + Array(key.utf8), value: bytes)
        }
        var note = Self.note(events: events, format: format)
        if let life { (note.life, note.sum) = (life, sum) }
        note.epoch = epoch
        batch.append(
            topic: 2, partition: 0, timestamp: clock.now, key: ChangelogKey.note, value: note.encoded)
        _ = try writer.append(batch, by: Deadline(after: .seconds(1)))
        end += Int64(batch.count)
    }

    /// The sum of the committed state.
    var sum: StateSum {
        var sum = StateSum()
        for (key, entry) in entries { sum.add(EntryHash.hash(key: Array(key.utf8).span, entry: entry.span)) }
        return sum
    }

    /// The changelog is deleted and created again.
    func makeAnew(isCompacted: Bool = true) throws {
        log.delete(topic: "script.changelog")
        try log.create(
            [NewTopic("script.changelog", partitions: 1, isCompacted: isCompacted)], by: Deadline(after: .seconds(1)))
        (entries, end) = ([:], 0)
    }

    func append(_ topic: Int, key: [UInt8]?, value: [UInt8]?) throws {
        let batch = OutputBatch()
        batch.append(topic: topic, partition: 0, timestamp: clock.now, key: key, value: value)
        _ = try writer.append(batch, by: Deadline(after: .seconds(1)))
    }

    static func note(
        events: Int64, changelog: Int64 = 0, format: UInt8 = 3, writtenAt: Int64 = 1_700_000_000_000
    ) -> Note {
        var note = Note(format: format)
        note.positions = ["events": NextOffset(events), "rows": NextOffset(0)]
        note.changelog = NextOffset(changelog)
        note.writtenAt = writtenAt
        return note
    }

    // MARK: Restoring

    func order(_ note: Note? = nil, group: [String: Int64], damage: String? = nil) throws -> UInt64 {
        let store = try MemoryStores(disk: disk).open(0)
        let heard = heard
        tokens += 1
        restorer.restore(
            RestoreOrder(
                store: store, partition: 0, token: tokens, note: note, committed: group.mapValues { NextOffset($0) },
                damage: damage,
                reply: { reply in heard.replies.withLock { $0.append(reply) } }))
        return tokens
    }

    /// The outcome, if it comes within this many steps; then the store is closed.
    func outcome(steps: Int = 20) throws -> RestoreReply.Outcome? {
        for _ in 0..<steps {
            restorer.step(wait: .zero)
            if let outcome = try taken() { return outcome }
        }
        return nil
    }

    func taken() throws -> RestoreReply.Outcome? {
        guard let reply = heard.replies.withLock({ $0.popLast() }) else { return nil }
        warning = reply.warning
        stored = try reply.order.store.note().flatMap { Note(decoding: $0) }
        for key in ["a", "b", "c", "d"] {
            var value: [UInt8] = []
            if try reply.order.store.read(Array(key.utf8).span, into: &value) {
                values[key] = EntryCoding.decode(value.span)?.value.map { String(decoding: $0, as: UTF8.self) }
            } else {
                values[key] = nil
            }
        }
        try reply.order.store.close()
        return reply.outcome
    }

    private(set) var stored: Note?
    private(set) var warning: String?
    private(set) var values: [String: String] = [:]
}

func refusal(_ outcome: RestoreReply.Outcome?) -> String? {
    if case .refused(let words) = outcome { words } else { nil }
}
func useless(_ outcome: RestoreReply.Outcome?) -> String? {
    if case .useless(let words) = outcome { words } else { nil }
}
func next(_ outcome: RestoreReply.Outcome?) -> [Int64]? {
    if case .restored(_, let next, _) = outcome { next.map(\.value) } else { nil }
}
