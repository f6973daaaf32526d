import Log
import MemoryLog
import Platform
import Store
import Synchronization
import Testing

@testable import Runtime

/// A changelog of one partition, a store, and a restorer that brings the one into the other.
private final class RestoreBench {
    let script = Script()
    let clock = MemoryLog.Clock.manual(startingAt: 1_700_000_000_000)
    let log: MemoryLog
    let disk = MemoryDisk()
    let restorer: Restorer
    private let writer: any LogWriter
    private let heard = Heard()
    private(set) var tokens: UInt64 = 0

    init(faults: (any LogFaults)? = nil, format: UInt8 = 3, oldest: UInt8 = 2) throws {
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
            definition, log: log, name: "restorer", wallClock: { clock.now },
            remaining: { left in heard.remaining.withLock { $0.append(left) } })
    }

    private final class Heard: Sendable {
        let remaining = Mutex<[Int64]>([])
        let replies = Mutex<[RestoreReply]>([])
    }

    var remainingTold: [Int64] { heard.remaining.withLock { $0 } }

    // MARK: The changelog

    /// A commit of some keys, with the note of its position; nil deletes.
    func commit(_ entries: [(String, String?)], events: Int64, format: UInt8 = 3) throws {
        let batch = OutputBatch()
        for (key, value) in entries {
            var bytes: [UInt8]?
            if let value {
                bytes = []
                EntryCoding.encode(
                    .init(value: Array(value.utf8), format: format, timers: []), withPlaces: false, into: &bytes!)
            }
            batch.append(topic: 2, partition: 0, timestamp: clock.now, key: [1] + Array(key.utf8), value: bytes)
        }
        batch.append(
            topic: 2, partition: 0, timestamp: clock.now, key: ChangelogKey.note,
            value: Self.note(events: events, format: format).encoded)
        _ = try writer.append(batch, by: Deadline(after: .seconds(1)))
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

    func order(_ note: Note? = nil, group: [String: Int64]) throws -> UInt64 {
        let store = try MemoryStores(disk: disk).open(0)
        let heard = heard
        tokens += 1
        restorer.restore(
            RestoreOrder(
                store: store, partition: 0, token: tokens, note: note, committed: group.mapValues { NextOffset($0) },
                reply: { reply in heard.replies.withLock { $0.append(reply) } }))
        return tokens
    }

    /// The outcome, when it comes within so many steps; the store is closed.
    func outcome(steps: Int = 20) throws -> RestoreReply.Outcome? {
        for _ in 0..<steps {
            restorer.step(wait: .zero)
            if let outcome = try taken() { return outcome }
        }
        return nil
    }

    func taken() throws -> RestoreReply.Outcome? {
        guard let reply = heard.replies.withLock({ $0.popLast() }) else { return nil }
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
    private(set) var values: [String: String] = [:]
}

private func refusal(_ outcome: RestoreReply.Outcome?) -> String? {
    if case .refused(let words) = outcome { words } else { nil }
}
private func useless(_ outcome: RestoreReply.Outcome?) -> String? {
    if case .useless(let words) = outcome { words } else { nil }
}
private func next(_ outcome: RestoreReply.Outcome?) -> [Int64]? {
    if case .restored(_, let next, _) = outcome { next.map(\.value) } else { nil }
}

@Suite struct `A restore` {
    @Test func `brings an empty store to the end of the changelog, and reading to the group's position`() throws {
        let bench = try RestoreBench()
        try bench.commit([("a", "1"), ("b", "1"), ("c", "1")], events: 3)
        try bench.commit([("a", "2"), ("b", nil)], events: 5)
        _ = try bench.order(group: ["events": 5, "rows": 0])
        #expect(next(try bench.outcome()) == [5, 0])
        #expect(bench.values == ["a": "2", "c": "1"])
        #expect(bench.stored?.changelog == NextOffset(7))
        #expect(bench.stored?.positions["events"] == NextOffset(5))
        #expect(bench.remainingTold.last == 0)
    }

    @Test func `reads only what the store does not have`() throws {
        let bench = try RestoreBench()
        try bench.commit([("a", "1")], events: 1)
        try bench.commit([("b", "1")], events: 2)
        _ = try bench.order(RestoreBench.note(events: 1, changelog: 2), group: ["events": 2, "rows": 0])
        #expect(next(try bench.outcome()) == [2, 0])
        #expect(bench.values == ["b": "1"])
    }

    @Test func `goes on from the changelog where the group has forgotten its position`() throws {
        let bench = try RestoreBench()
        try bench.commit([("a", "1")], events: 9)
        _ = try bench.order(group: [:])
        #expect(next(try bench.outcome()) == [9, 0])
    }

    @Test func `starts at the beginning where nobody has ever worked`() throws {
        let bench = try RestoreBench()
        try bench.log.configure("events") { $0.retainedRecords = 10 }
        for _ in 0..<100 { try bench.append(0, key: nil, value: []) }
        _ = try bench.order(group: [:])
        let found = try #require(next(try bench.outcome()))
        #expect(found[0] > 50 && found[1] == 0)
        #expect(bench.stored == nil)
    }

    @Test func `takes the group's position of an input that the state does not know yet`() throws {
        let bench = try RestoreBench()
        var note = RestoreBench.note(events: 2)
        note.positions["rows"] = nil
        try bench.append(2, key: ChangelogKey.note, value: note.encoded)
        _ = try bench.order(group: ["events": 2, "rows": 4])
        #expect(next(try bench.outcome()) == [2, 4])
    }

    @Test(arguments: [4, 6] as [Int64])
    func `is refused where the group stands before or behind the state`(group: Int64) throws {
        let bench = try RestoreBench()
        try bench.commit([("a", "1")], events: 5)
        _ = try bench.order(group: ["events": group, "rows": 0])
        let words = try #require(refusal(try bench.outcome()))
        #expect(words.contains("is at \(group) of events[0], and the state of this worker at 5"))
    }

    @Test func `is refused where the group has a position and the changelog nothing`() throws {
        let bench = try RestoreBench()
        _ = try bench.order(group: ["events": 5, "rows": 0])
        #expect(refusal(try bench.outcome())?.contains("script.changelog is empty") == true)
    }

    @Test func `is of no use for a store that is ahead of the changelog`() throws {
        let bench = try RestoreBench()
        try bench.commit([("a", "1")], events: 1)
        _ = try bench.order(RestoreBench.note(events: 9, changelog: 3), group: ["events": 9, "rows": 0])
        #expect(useless(try bench.outcome())?.contains("made anew") == true)
        // At the end is not ahead.
        _ = try bench.order(RestoreBench.note(events: 1, changelog: 2), group: ["events": 1, "rows": 0])
        #expect(next(try bench.outcome()) == [1, 0])
    }

    @Test func `is of no use for a store so old that it may have missed deletions, when there is something to read`()
        throws
    {
        let bench = try RestoreBench()
        try bench.commit([("a", "1")], events: 1)
        bench.clock.advance(by: .seconds(6 * 86_400 + 1))
        _ = try bench.order(RestoreBench.note(events: 1, changelog: 2), group: ["events": 1, "rows": 0])
        #expect(next(try bench.outcome()) == [1, 0])
        try bench.commit([("a", nil)], events: 2)
        _ = try bench.order(RestoreBench.note(events: 1, changelog: 2), group: ["events": 2, "rows": 0])
        #expect(useless(try bench.outcome())?.contains("missed deletions") == true)
    }

    @Test func `is of no use for a store from before the changelog's beginning`() throws {
        let bench = try RestoreBench()
        // A topic that is not compacted, so that its beginning moves.
        let log = MemoryLog(clock: bench.clock)
        try log.create(
            ["events", "rows", "script.changelog"].map { NewTopic($0, partitions: 1) }, by: Deadline(after: .seconds(1))
        )
        try log.configure("script.changelog") { $0.retainedRecords = 10 }
        let writer = try log.openWriter(WriterOptions(name: "w", topics: ["script.changelog"]))
        let batch = OutputBatch()
        for _ in 0..<100 { batch.append(topic: 0, partition: 0, timestamp: 0, key: [1, 2], value: [1, 0]) }
        _ = try writer.append(batch, by: Deadline(after: .seconds(1)))
        let found = Mutex<RestoreReply.Outcome?>(nil)
        let clock = bench.clock
        let restorer = Restorer(
            Script().definition, log: log, name: "r", wallClock: { clock.now }, remaining: { _ in })
        restorer.restore(
            RestoreOrder(
                store: try MemoryStores().open(0), partition: 0, token: 1,
                note: RestoreBench.note(events: 1, changelog: 2, format: 1), committed: [:],
                reply: { reply in found.withLock { $0 = reply.outcome } }))
        restorer.step(wait: .zero)
        #expect(useless(found.withLock { $0 })?.contains("does not reach back") == true)
    }

    @Test func `refuses a state of a later build, and of one too old, in store and changelog`() throws {
        let bench = try RestoreBench(format: 3, oldest: 2)
        for (format, words) in [(4, "later build"), (1, "too old")] as [(UInt8, String)] {
            _ = try bench.order(RestoreBench.note(events: 1, format: format), group: [:])
            #expect(refusal(try bench.outcome())?.contains(words) == true)
        }
        try bench.commit([("a", "1")], events: 1, format: 4)
        _ = try bench.order(group: ["events": 1])
        #expect(refusal(try bench.outcome())?.contains("later build") == true)
    }

    @Test func `refuses a changelog that holds something else`() throws {
        for (key, value) in [([1, 2], [1]), ([0], [9, 9]), ([7], [0])] as [([UInt8], [UInt8])] {
            let bench = try RestoreBench()
            try bench.append(2, key: key, value: value)
            _ = try bench.order(group: [:])
            #expect(refusal(try bench.outcome()) != nil)
        }
    }

    @Test func `waits for an open transaction of an earlier owner, whose commit belongs to the state`() throws {
        let bench = try RestoreBench()
        try bench.commit([("a", "1")], events: 1)
        var options = SessionOptions(
            group: "script", identity: "old", inputs: ["events", "rows"], outputs: ["script.changelog"])
        options.transactionTimeout = .seconds(3600)
        let session = try bench.log.openSession(options, by: Deadline(after: .seconds(1)))
        let batch = OutputBatch()
        var bytes: [UInt8] = []
        EntryCoding.encode(.init(value: Array("2".utf8), format: 3, timers: []), withPlaces: false, into: &bytes)
        batch.append(topic: 0, partition: 0, timestamp: 0, key: [1] + Array("a".utf8), value: bytes)
        batch.append(
            topic: 0, partition: 0, timestamp: 0, key: ChangelogKey.note,
            value: RestoreBench.note(events: 2).encoded)
        try session.append(batch)
        _ = try bench.order(group: ["events": 2, "rows": 0])
        #expect(try bench.outcome(steps: 50) == nil)
        try session.commit([:])
        #expect(next(try bench.outcome()) == [2, 0])
        #expect(bench.values == ["a": "2"])
    }

    @Test func `that is called off hands the store back, and what comes next ends well`() throws {
        let bench = try RestoreBench()
        try bench.commit((0..<3).map { ("a", "\($0)") }, events: 1)
        let token = try bench.order(group: ["events": 1, "rows": 0])
        bench.restorer.cancel(token)
        #expect(try bench.outcome() == .withdrawn)
        _ = try bench.order(group: ["events": 1, "rows": 0])
        #expect(next(try bench.outcome()) == [1, 0])
        // A token that is not known any more does no harm.
        bench.restorer.cancel(token)
        #expect(try bench.outcome(steps: 2) == nil)
    }

    @Test func `that is called off in the middle leaves nothing remaining`() throws {
        let bench = try RestoreBench(faults: ReaderFaults([.stall, .stall, .stall, .stall]))
        try bench.commit([("a", "1")], events: 1)
        let token = try bench.order(group: ["events": 1, "rows": 0])
        #expect(try bench.outcome(steps: 1) == nil)
        #expect(bench.remainingTold.last == 2)
        bench.restorer.cancel(token)
        #expect(try bench.outcome() == .withdrawn)
        #expect(bench.remainingTold.last == 0)
    }

    @Test func `survives a reader that does not answer`() throws {
        let bench = try RestoreBench(faults: ReaderFaults([.retry, .stall, .retry, .slow, .retry, .slow]))
        try bench.commit([("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")], events: 1)
        _ = try bench.order(group: ["events": 1, "rows": 0])
        #expect(next(try bench.outcome(steps: 60)) == [1, 0])
        #expect(bench.values.count == 4)
    }

    @Test func `is refused with the log's words where only a person can help`() throws {
        let bench = try RestoreBench()
        let found = Mutex<RestoreReply.Outcome?>(nil)
        var definition = Script().definition
        definition.changelog = "nowhere"
        let restorer = Restorer(definition, log: bench.log, name: "r", wallClock: { 0 }, remaining: { _ in })
        restorer.restore(
            RestoreOrder(
                store: try MemoryStores().open(0), partition: 0, token: 1, note: nil, committed: [:],
                reply: { reply in found.withLock { $0 = reply.outcome } }))
        restorer.step(wait: .zero)
        #expect(refusal(found.withLock { $0 })?.contains("nowhere") == true)
    }

    @Test func `into a damaged store is of no use, and into one that cannot be written hindered`() throws {
        for cause in [StoreFault.Cause.corrupt, .system] {
            let bench = try RestoreBench()
            try bench.commit([("a", "1")], events: 1)
            bench.disk.fail { operation, _ in operation == .write ? StoreFault(cause, "no") : nil }
            _ = try bench.order(group: ["events": 1, "rows": 0])
            let outcome = try bench.outcome()
            #expect(outcome == (cause == .corrupt ? .useless("no") : .hindered("no")))
        }
    }

    @Test func `hands every store back when the process ends`() throws {
        let bench = try RestoreBench()
        _ = try bench.order(group: [:])
        bench.restorer.close(by: Deadline(after: .seconds(1)))
        #expect(try bench.taken() != nil)
    }
}

/// One after the other at the polls of a restore; then none.
private final class ReaderFaults: LogFaults {
    private let left: Mutex<[InjectedFault.Kind]>

    init(_ kinds: [InjectedFault.Kind]) { left = Mutex(kinds.reversed()) }

    func fault(at step: LogStep, of identity: String) -> InjectedFault? {
        guard step == .restore else { return nil }
        return left.withLock { $0.popLast() }.map { InjectedFault($0, 1) }
    }
}
