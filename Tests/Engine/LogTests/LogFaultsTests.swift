import Log
import LogTestKit
import MemoryLog
import Platform
import Testing

/// The expected effect of one fault on one cycle: two records in, four out, one commit.
struct FaultCase: Sendable, CustomStringConvertible {
    var step: LogStep
    var kind: InjectedFault.Kind
    /// The error that the cycle ends with; nil: it ends without an error.
    var remedy: LogFault.Remedy?
    var cause: LogFault.Cause?
    var isDone = false
    var isGone = false
    /// Number of outputs appended when the cycle ended, visible or not.
    var appended = 4

    var description: String { "\(kind.rawValue) at \(step.rawValue)" }

    static let all: [FaultCase] = [
        .init(step: .poll, kind: .crashBefore, remedy: .rebuild, cause: .other, isGone: true, appended: 0),
        .init(step: .poll, kind: .crashAfter, remedy: .rebuild, cause: .other, isGone: true, appended: 0),
        .init(step: .poll, kind: .fence, remedy: .rebuild, cause: .fenced, appended: 0),
        .init(step: .append, kind: .crashBefore, remedy: .rebuild, cause: .other, isGone: true, appended: 0),
        .init(step: .append, kind: .crashHalfway, remedy: .rebuild, cause: .other, isGone: true, appended: 2),
        .init(step: .append, kind: .crashAfter, remedy: .rebuild, cause: .other, isGone: true),
        .init(step: .append, kind: .refuse, remedy: .rewind, cause: .other, appended: 0),
        .init(step: .append, kind: .fence, remedy: .rebuild, cause: .fenced, appended: 0),
        .init(step: .append, kind: .lose, remedy: .rewind, cause: .generation),
        // The rebalance waits for the member, which may commit before it gives its partitions back.
        .init(step: .append, kind: .move, isDone: true),
        .init(step: .beforeCommit, kind: .crashBefore, remedy: .rebuild, cause: .other, isGone: true),
        .init(step: .beforeCommit, kind: .refuse, remedy: .rewind, cause: .other),
        .init(step: .beforeCommit, kind: .fence, remedy: .rebuild, cause: .fenced),
        .init(step: .beforeCommit, kind: .lose, remedy: .rewind, cause: .generation),
        .init(step: .beforeCommit, kind: .move, isDone: true),
        .init(step: .commit, kind: .crashHalfway, remedy: .rebuild, cause: .other, isGone: true),
        .init(step: .commit, kind: .outcomeUnknownDone, remedy: .rebuild, cause: .timedOut, isDone: true),
        .init(step: .commit, kind: .outcomeUnknownNotDone, remedy: .rebuild, cause: .timedOut),
        .init(step: .afterCommit, kind: .crashAfter, remedy: .rebuild, cause: .other, isDone: true, isGone: true),
    ]
}

@Suite struct `A fault of the plan` {
    @Test(arguments: FaultCase.all)
    func `ends a cycle as it says, with outputs and positions together or not at all`(_ wanted: FaultCase) throws {
        let play = try Play()
        try play.write(Play.outputs(["a", "b"]))
        let session = try play.openAndTake()
        play.plan.next(wanted.step, .init(wanted.kind))
        let found = try fault {
            _ = try play.poll(session)
            try session.append(Play.outputs(["1", "2", "3", "4"]))
            try session.commit([play.partition(): NextOffset(2)])
        }
        #expect(found?.remedy == wanted.remedy)
        #expect(found?.cause == wanted.cause)
        #expect(play.log.isGone("m") == wanted.isGone)
        let onlooker = try play.reader()
        let output = TopicPartition(Play.output, 0)
        let end = try onlooker.ends(.all, of: [output], by: Play.soon)[output]?.value
        // The markers of an already ended transaction accept one more.
        #expect(end == Int64(wanted.appended) || end == Int64(wanted.appended) + 1)
        #expect(try play.read() == (wanted.isDone ? ["1", "2", "3", "4"] : []))

        // Whatever happened: the transactional id works again, and the group's committed offsets are right.
        let back = try play.open()
        var event = try play.poll(back).event
        if event == .nothing { event = try play.poll(back).event }
        #expect(event == .assigned([play.partition()]))
        let committed = try back.committed([play.partition()], by: Play.soon)
        #expect(committed == (wanted.isDone ? [play.partition(): NextOffset(2)] : [:]))
        try play.take(back, [play.partition()])
        #expect(try play.poll(back).texts == (wanted.isDone ? [] : ["a", "b"]))
    }

    @Test func `withholds records for some polls, or gives few`() throws {
        let play = try Play()
        try play.write(Play.outputs(["a", "b", "c", "d"]))
        let session = try play.openAndTake()
        play.plan.next(.poll, .init(.stall, 2))
        #expect(try play.poll(session).event == .nothing)
        #expect(try play.poll(session).event == .nothing)
        play.plan.next(.poll, .init(.slow, 3))
        #expect(try play.poll(session).texts == ["a", "b", "c"])
        #expect(try play.poll(session).texts == ["d"])
    }

    @Test func `takes partitions away`() throws {
        let play = try Play()
        let session = try play.openAndTake()
        play.plan.next(.poll, .init(.lose))
        #expect(try play.poll(session).event == .lost([play.partition()]))
        try session.giveBack()
        #expect(try play.poll(session).event == .assigned([play.partition()]))
    }

    @Test func `moves partitions to other members`() throws {
        let play = try Play(partitions: 2)
        let first = try play.openAndTake("a")
        let second = try play.open("b")
        #expect(try play.poll(first).event == .revoked([play.partition(0), play.partition(1)]))
        try first.giveBack()
        #expect(try play.poll(first).event == .assigned([play.partition(0)]))
        try play.take(first, [play.partition(0)])
        #expect(try play.poll(second).event == .assigned([play.partition(1)]))
        try play.take(second, [play.partition(1)])
        play.plan.next(.poll, .init(.move))
        #expect(try play.poll(first).event == .revoked([play.partition(0)]))
        try first.giveBack()
        #expect(try play.poll(second).event == .revoked([play.partition(1)]))
        try second.giveBack()
        #expect(try play.poll(first).event == .assigned([play.partition(1)]))
        #expect(try play.poll(second).event == .assigned([play.partition(0)]))
    }

    @Test(arguments: [InjectedFault.Kind.crashBefore, .retry, .fence, .lose, .move])
    func `meets a session that asks for positions`(_ kind: InjectedFault.Kind) throws {
        let play = try Play()
        let session = try play.openAndTake()
        play.plan.next(.committed, .init(kind))
        let found = try fault { _ = try session.committed([play.partition()], by: Play.soon) }
        let wanted: LogFault.Remedy? =
            switch kind {
            case .crashBefore, .fence: .rebuild
            case .retry: .retrySameCall
            default: nil
            }
        #expect(found?.remedy == wanted)
        #expect(play.log.isGone("m") == (kind == .crashBefore))
    }

    @Test(arguments: [false, true])
    func `meets a reader, and the session of its name dies with it`(readsAhead: Bool) throws {
        let play = try Play()
        try play.write(Play.outputs(["a", "b", "c"]))
        let session = try play.openAndTake()
        let reader = try play.reader(Play.input, name: "m", readsAhead: readsAhead)
        try reader.read(from: [play.partition(): NextOffset(0)])
        let step: LogStep = readsAhead ? .restore : .readerPoll
        let batch = RecordBatch()
        func poll() throws -> [String] {
            try reader.poll(into: batch, limit: 10, wait: .zero)
            return play.texts(batch)
        }
        play.plan.next(step, .init(.retry))
        #expect(try fault { _ = try poll() }?.remedy == .retrySameCall)
        play.plan.next(step, .init(.stall, 1))
        #expect(try poll() == [])
        play.plan.next(step, .init(.slow, 2))
        #expect(try poll() == ["a", "b"])
        play.plan.next(step, .init(.crashAfter))
        #expect(try fault { _ = try poll() }?.remedy == .rebuild)
        #expect(batch.isEmpty)
        #expect(play.log.isGone("m"))
        #expect(try fault { _ = try poll() }?.remedy == .rebuild)
        #expect(try fault { try session.commit([:]) }?.remedy == .rebuild)
    }
}

@Suite struct `A seed` {
    /// Polls and commits, and rebuilds whenever that is required; returns what happened, with the trace.
    private func run(_ seed: UInt64, rate: UInt64 = 30_000) throws -> (story: [String], faults: SeededFaults) {
        let faults = SeededFaults(seed: seed, rates: SeededFaults.Rates(everyKind: rate))
        let play = try Play(partitions: 3, faults: faults)
        for partition: Int32 in 0..<3 {
            try play.write(Play.outputs((0..<50).map { "\($0)" }, partition: partition))
        }
        var story: [String] = []
        var sessions: [any LogSession] = []
        for name in ["a", "b"] { sessions.append(try play.open(name)) }
        for turn in 0..<600 {
            let index = turn % 2
            if turn == 400 { faults.heal() }
            play.clock.advance(by: .milliseconds(100))
            do {
                let (event, texts) = try play.poll(sessions[index], limit: 5)
                story.append("\(index) \(event) \(texts)")
                switch event {
                case .assigned(let partitions): try play.take(sessions[index], partitions)
                case .revoked, .lost: try sessions[index].giveBack()
                case .positionGone(let partition): Issue.record("\(partition) has lost its position")
                case .records, .nothing:
                    try sessions[index].append(Play.outputs(texts))
                    var positions: [TopicPartition: NextOffset] = [:]
                    for number: Int32 in 0..<3 {
                        positions[play.partition(number)] = sessions[index].position(of: play.partition(number))
                    }
                    try sessions[index].commit(positions)
                }
            } catch let fault as LogFault {
                story.append("\(index) \(fault)")
                sessions[index] = try play.open(["a", "b"][index])
            }
        }
        story.append("\(play.log.committed(group: "group").sorted { $0.key < $1.key })")
        return (story, faults)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `brings the same run and the same trace every time`(seed: UInt64) throws {
        let first = try run(seed)
        let second = try run(seed)
        #expect(first.story == second.story)
        #expect(first.faults.trace == second.faults.trace)
        #expect(first.faults.trace.count > 10)
        #expect(try run(seed + 100).faults.trace != first.faults.trace)
    }

    @Test func `brings every fault in time, and progress when it is healed`() throws {
        var kinds: Set<String> = []
        for seed: UInt64 in 0..<20 {
            let (story, faults) = try run(seed)
            for line in faults.trace { kinds.insert(String(line.split(separator: " ")[3].prefix { $0 != "(" })) }
            // In the end all of the input was processed.
            #expect(
                story.last == "[(key: input[0], value: 50), (key: input[1], value: 50), (key: input[2], value: 50)]")
        }
        // The two faults that only readers and retries meet do not occur in this run.
        #expect(kinds.count >= InjectedFault.Kind.allCases.count - 1, "\(kinds)")
    }

    @Test func `brings nothing at rate zero`() throws {
        #expect(try run(1, rate: 0).faults.trace.isEmpty)
    }

    /// The first numbers of the reference implementation from seed 1234567.
    @Test func `gives the numbers of splitmix64`() {
        var generator = SplitMix64(seed: 1_234_567)
        #expect(
            (0..<3).map { _ in generator.next() } == [
                6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
            ])
    }
}
