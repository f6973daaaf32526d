import Log
import LogTestKit
import MemoryLog
import Platform
import Store
import Synchronization
import Testing

@testable import Runtime

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

    @Test func `reads nothing once it has ended`() throws {
        var shown: BrokenLog?
        let bench = try RestoreBench { memory in
            let log = BrokenLog(memory)
            shown = log
            return log
        }
        let log = try #require(shown)
        try bench.commit([("a", "1")], events: 1)
        _ = try bench.order(group: ["events": 1, "rows": 0])
        #expect(next(try bench.outcome()) == [1, 0])
        #expect(log.starts == [[TopicPartition("script.changelog", 0): NextOffset(0)], [:]])
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
        #expect(words.contains("has committed offset \(group) of events[0], but the state of this worker is at 5"))
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
        #expect(useless(try bench.outcome())?.contains("created again") == true)
        // At the end does not mean ahead.
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
        // A token that is unknown by now does no harm.
        bench.restorer.cancel(token)
        #expect(try bench.outcome(steps: 2) == nil)
    }

    /// The sum of the contents belongs to one note: with another one a good store would look incomplete.
    @Test func `that has to start anew goes on from what it has written`() throws {
        var shown: BrokenLog?
        let bench = try RestoreBench { memory in
            let log = BrokenLog(memory)
            shown = log
            return log
        }
        let log = try #require(shown)
        bench.life = 1
        try bench.commit((0..<20_000).map { ("\($0)", "1") }, events: 1)
        _ = try bench.order(group: ["events": 1, "rows": 0])
        #expect(next(try bench.outcome(steps: 30)) == [1, 0])
        try bench.commit((0..<12_000).map { ("\($0)", "2") }, events: 2)
        _ = try bench.order(bench.stored, group: ["events": 2, "rows": 0])
        #expect(try bench.outcome(steps: 11) == nil)
        log.faultOnce = LogFault(.stop, .positionGone, "the position is gone")
        #expect(next(try bench.outcome(steps: 30)) == [2, 0])
        #expect(log.starts.compactMap { $0.values.first?.value } == [0, 20_000, 20_000])
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

    /// Without the beginning of the changelog, what is left of the store may be the only copy of the state.
    @Test(arguments: [false, true])
    func `is of no use for a store that failed while it was used, and refused if that cannot be restored`(
        isBeginningLost: Bool
    ) throws {
        var shown: BrokenLog?
        let bench = try RestoreBench { memory in
            let log = BrokenLog(memory)
            shown = log
            return log
        }
        try bench.commit([("a", "1")], events: 1)
        _ = try bench.order(group: ["events": 1, "rows": 0])
        #expect(next(try bench.outcome()) == [1, 0])
        if isBeginningLost { shown?.beginning = NextOffset(1) }
        _ = try bench.order(bench.stored, group: ["events": 1, "rows": 0], damage: "a bad block")
        let outcome = try bench.outcome()
        if isBeginningLost {
            #expect(refusal(outcome)?.hasPrefix("a bad block, and cannot be restored") == true)
        } else {
            #expect(outcome == .damaged("a bad block"))
        }
    }

    @Test func `into a damaged store is of no use, and into one that cannot be written hindered`() throws {
        for cause in [StoreFault.Cause.corrupt, .system] {
            let bench = try RestoreBench()
            try bench.commit([("a", "1")], events: 1)
            bench.disk.fail { operation, _ in operation == .write ? StoreFault(cause, "no") : nil }
            _ = try bench.order(group: ["events": 1, "rows": 0])
            let outcome = try bench.outcome()
            #expect(outcome == (cause == .corrupt ? .damaged("no") : .hindered("no")))
        }
        var shown: BrokenLog?
        let bench = try RestoreBench { memory in
            let log = BrokenLog(memory)
            shown = log
            return log
        }
        try bench.commit([("a", "1")], events: 1)
        _ = try bench.order(group: ["events": 1, "rows": 0])
        #expect(next(try bench.outcome()) == [1, 0])
        try bench.commit([("a", "2")], events: 2)
        shown?.beginning = NextOffset(1)
        bench.disk.fail { operation, _ in operation == .write ? StoreFault(.corrupt, "no") : nil }
        _ = try bench.order(bench.stored, group: ["events": 2, "rows": 0])
        #expect(refusal(try bench.outcome())?.hasPrefix("no, and cannot be restored") == true)
    }

    @Test func `hands every store back when the process ends`() throws {
        let bench = try RestoreBench()
        _ = try bench.order(group: [:])
        bench.restorer.close(by: Deadline(after: .seconds(1)))
        #expect(try bench.taken() != nil)
    }
}

/// Returned one after the other at the polls of a restore; then none.
private final class ReaderFaults: LogFaults {
    private let left: Mutex<[InjectedFault.Kind]>

    init(_ kinds: [InjectedFault.Kind]) { left = Mutex(kinds.reversed()) }

    func fault(at step: LogStep, of identity: String) -> InjectedFault? {
        guard step == .restore else { return nil }
        return left.withLock { $0.popLast() }.map { InjectedFault($0, 1) }
    }
}
