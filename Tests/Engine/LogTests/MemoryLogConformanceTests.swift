import Log
import LogTestKit
import MemoryLog
import Platform
import Synchronization
import TestTraits
import Testing

@Suite(.ownThreads) struct `The in-memory log` {
    @Test(arguments: LogClaim.all)
    func `keeps the promise that a log`(_ claim: LogClaim) throws {
        try claim.check(onManualClock())
    }

    @Test func `is asked for every promise`() {
        let abilities = onManualClock().abilities
        #expect(LogClaim.all.allSatisfy { abilities.isSuperset(of: $0.needs) })
        #expect(LogClaim.all.count > 25)
        #expect(Set(LogClaim.all.map(\.words)).count == LogClaim.all.count)
    }

    private func onManualClock() -> LogUnderTest {
        let clock = MemoryLog.Clock.manual(startingAt: 1_700_000_000_000)
        let plan = Planned()
        let log = MemoryLog(clock: clock, faults: plan)
        var under = LogUnderTest(
            log, sessionTimeout: .seconds(30), patience: .seconds(30), pollWait: .zero, noticesSilence: true,
            passTime: { clock.advance(by: $0) },
            makeTopic: { label, partitions, isCompacted in
                try log.create(
                    [NewTopic(label, partitions: partitions, isCompacted: isCompacted)],
                    by: Deadline(after: .seconds(1)))
                return label
            })
        under.compact = { log.compact() }
        under.holdPositions = { group, identity, positions in
            let options = SessionOptions(
                group: group, identity: identity, inputs: Set(positions.keys.map(\.topic)).sorted(), outputs: [])
            let session = try log.openSession(options, by: Deadline(after: .seconds(1)))
            let batch = RecordBatch()
            guard case .assigned(let partitions) = try session.poll(into: batch, limit: 1, wait: .zero) else {
                throw LogFault(.stop, .other, "the member is not alone")
            }
            var starts: [TopicPartition: NextOffset] = [:]
            for partition in partitions { starts[partition] = NextOffset(0) }
            try session.take(starts, paused: [])
            plan.next(.commit, .init(.crashHalfway))
            #expect(throws: LogFault.self) { try session.commit(positions) }
        }
        return under
    }
}
