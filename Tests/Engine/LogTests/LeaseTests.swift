import Log
import MemoryLog
import Platform
import Synchronization
import Testing

@Suite struct `A lease` {
    private let length = Duration.seconds(30) * 3 / 4

    @Test func `is nobody's before the group has confirmed it`() {
        var lease = Lease(sessionTimeout: .seconds(30))
        #expect(lease.until == nil)
        lease.extend(at: .seconds(5))
        #expect(lease.until == nil)
        lease.confirm(at: .seconds(5))
        #expect(lease.until == .seconds(5) + length)
    }

    @Test func `is lengthened while it runs, and not at its end or behind it`() {
        var lease = Lease(sessionTimeout: .seconds(30))
        lease.confirm(at: .zero)
        lease.extend(at: length - .nanoseconds(1))
        #expect(lease.until == length * 2 - .nanoseconds(1))
        let end = length * 2 - .nanoseconds(1)
        for late in [end, end + .seconds(1)] {
            lease.extend(at: late)
            #expect(lease.until == end)
        }
        lease.confirm(at: end + .seconds(1))
        #expect(lease.until == end + .seconds(1) + length)
    }

    @Test func `that has ended is not lengthened`() {
        var lease = Lease(sessionTimeout: .seconds(30))
        lease.confirm(at: .zero)
        lease.end()
        #expect(lease.until == nil)
        lease.extend(at: .zero)
        #expect(lease.until == nil)
    }

    @Test func `is shorter than the silence after which the group gives the partitions away`() {
        var lease = Lease(sessionTimeout: .seconds(30))
        lease.confirm(at: .zero)
        #expect(lease.until! < .seconds(30))
    }

    /// What happens to a session that owned its partitions.
    @Test(arguments: [InjectedFault.Kind.lose, .fence, .crashBefore])
    func `ends with the session that had it, whatever ends that`(_ kind: InjectedFault.Kind) throws {
        let clock = MemoryLog.Clock.manual()
        let plan = Planned()
        let log = MemoryLog(clock: clock, faults: plan)
        let patience = Deadline(after: .seconds(30))
        try log.create([NewTopic("input", partitions: 1)], by: patience)
        var options = SessionOptions(group: "g", identity: "m", inputs: ["input"], outputs: [])
        options.bootClock = { .milliseconds(clock.now) }
        let session = try log.openSession(options, by: patience)
        let batch = RecordBatch()
        let input = TopicPartition("input", 0)
        #expect(try session.poll(into: batch, limit: 1, wait: .zero) == .assigned([input]))
        try session.take([input: NextOffset(0)], paused: [])
        try session.commit([input: NextOffset(0)])
        #expect(session.ownedUntil != nil)
        plan.next(.poll, InjectedFault(kind))
        do throws(LogFault) {
            #expect(try session.poll(into: batch, limit: 1, wait: .zero) == .lost([input]))
        } catch {
            #expect(error.remedy == .rebuild)
        }
        #expect(session.ownedUntil == nil)
    }

    @Test func `is not given by a commit that nobody knows the outcome of`() throws {
        let plan = Planned()
        let log = MemoryLog(clock: .manual(), faults: plan)
        let patience = Deadline(after: .seconds(30))
        try log.create([NewTopic("input", partitions: 1)], by: patience)
        let session = try log.openSession(
            SessionOptions(group: "g", identity: "m", inputs: ["input"], outputs: []), by: patience)
        let input = TopicPartition("input", 0)
        #expect(try session.poll(into: RecordBatch(), limit: 1, wait: .zero) == .assigned([input]))
        try session.take([input: NextOffset(0)], paused: [])
        plan.next(.commit, InjectedFault(.outcomeUnknownDone))
        #expect(throws: LogFault.self) { try session.commit([input: NextOffset(0)]) }
        #expect(session.ownedUntil == nil)
    }
}
