import Testing

@testable import Clock

/// Times in seconds, passed as milliseconds; the interval is 30 s.
@Suite struct `A schedule of ticks` {
    private var schedule = TickSchedule(interval: 30_000)

    private func dueAt(_ now: Int64) -> [Int32] { schedule.due(at: now).map(\.partition) }

    /// Partition 0, assigned at `now`, with a last record before offset 10 of this timestamp.
    private mutating func takeOver(at now: Int64, last: Int64?) {
        schedule.take(over: [0])
        schedule.saw(end: 10, of: 0, at: now)
        schedule.read(last.map { .init(timestamp: $0, isTick: false) }, before: 10, of: 0)
    }

    @Test func `knows nothing to be due before the first look`() {
        var schedule = schedule
        schedule.take(over: [0, 1])
        #expect(schedule.due(at: .max / 2).isEmpty)
        #expect(schedule.hasWork(at: 0), "the first look is due at once")
    }

    @Test func `ticks a partition that never had a record at once, and an interval later again`() {
        var test = self
        test.schedule.take(over: [0])
        test.schedule.saw(end: 0, of: 0, at: 1_000)
        #expect(test.dueAt(1_000) == [0])
        test.schedule.ticked(0, at: 0, timestamp: 1_000)
        #expect(test.dueAt(30_999).isEmpty)
        #expect(test.dueAt(31_000) == [0])
    }

    @Test func `counts from the last record, whoever wrote it before the partition changed hands`() {
        var test = self
        test.takeOver(at: 50_000, last: 40_000)
        #expect(test.dueAt(69_999).isEmpty)
        #expect(test.schedule.due(at: 70_000).first?.since == 70_000)
    }

    @Test func `ticks once, not once for each interval that nobody ticked`() {
        var test = self
        test.takeOver(at: 500_000, last: 40_000)
        #expect(test.dueAt(500_000) == [0])
        test.schedule.ticked(0, at: 10, timestamp: 500_000)
        #expect(test.dueAt(529_999).isEmpty)
    }

    @Test func `is not due before the last record's timestamp is known`() {
        var test = self
        test.schedule.take(over: [0])
        test.schedule.saw(end: 10, of: 0, at: 50_000)
        #expect(test.dueAt(1_000_000).isEmpty)
        #expect(test.schedule.unread(at: 50_000) == [0: 10])
    }

    @Test func `waits for an interval of silence after somebody has appended`() {
        var test = self
        test.takeOver(at: 50_000, last: 40_000)
        test.schedule.saw(end: 11, of: 0, at: 60_000)
        #expect(test.dueAt(70_000).isEmpty)
        #expect(test.schedule.unread(at: 89_999).isEmpty)
        // Then the record itself says when exactly it came.
        #expect(test.schedule.unread(at: 90_000) == [0: 11])
        test.schedule.read(.init(timestamp: 59_000, isTick: false), before: 11, of: 0)
        #expect(test.schedule.due(at: 90_000).first?.since == 89_000)
    }

    @Test func `never ticks behind the last record, however far that lies ahead`() {
        var test = self
        test.takeOver(at: 50_000, last: 100_000)
        #expect(test.schedule.ahead(of: 50_000) == 50_000)
        #expect(test.dueAt(129_999).isEmpty)
        #expect(test.dueAt(130_000) == [0])
    }

    @Test func `sees its own ticks as what they are`() {
        var test = self
        test.takeOver(at: 50_000, last: 20_000)
        test.schedule.ticked(0, at: 10, timestamp: 50_000)
        test.schedule.saw(end: 11, of: 0, at: 53_000)
        #expect(test.schedule.unread(at: 1_000_000).isEmpty)
        #expect(test.dueAt(80_000) == [0])
    }

    @Test func `takes what came just before its tick as told by the tick`() {
        var test = self
        test.takeOver(at: 50_000, last: 20_000)
        // Offset 10 is a notification that the look did not see.
        test.schedule.ticked(0, at: 11, timestamp: 50_000)
        test.schedule.saw(end: 12, of: 0, at: 53_000)
        #expect(test.dueAt(80_000) == [0])
    }

    @Test func `takes a tick whose acknowledgement was lost for somebody's record`() {
        var test = self
        test.takeOver(at: 50_000, last: 20_000)
        #expect(test.dueAt(50_000) == [0])
        test.schedule.saw(end: 11, of: 0, at: 55_000)
        #expect(test.dueAt(55_000).isEmpty)
    }

    @Test func `tries the time of the host with a partition that was looked at and is not ahead`() {
        var schedule = schedule
        schedule.take(over: [0, 1, 2])
        #expect(schedule.trial(at: 50_000) == nil)
        schedule.saw(end: 10, of: 1, at: 50_000)
        schedule.saw(end: 10, of: 2, at: 50_000)
        schedule.read(.init(timestamp: 50_001, isTick: false), before: 10, of: 1)
        schedule.read(.init(timestamp: 50_000, isTick: false), before: 10, of: 2)
        #expect(schedule.due(at: 50_000).isEmpty && schedule.trial(at: 50_000) == 2)
        #expect(schedule.trial(at: 50_001) == 1)
    }

    @Test func `forgets everything when partitions are given anew, and what it is told of others`() {
        var test = self
        test.takeOver(at: 50_000, last: 20_000)
        test.schedule.take(over: [1])
        test.schedule.saw(end: 10, of: 0, at: 50_000)
        test.schedule.read(.init(timestamp: 20_000, isTick: false), before: 10, of: 0)
        test.schedule.ticked(0, at: 10, timestamp: 50_000)
        #expect(test.schedule.owned == [1])
        #expect(test.dueAt(1_000_000).isEmpty)
    }

    @Test func `starts anew with a topic that was made again under its name`() {
        var test = self
        test.takeOver(at: 50_000, last: 20_000)
        test.schedule.saw(end: 3, of: 0, at: 60_000)
        #expect(test.schedule.unread(at: 60_000) == [0: 3])
        test.schedule.saw(end: 0, of: 0, at: 61_000)
        #expect(test.dueAt(61_000) == [0])
    }

    @Test func `ignores a timestamp that was read before more came`() {
        var test = self
        test.schedule.take(over: [0])
        test.schedule.saw(end: 10, of: 0, at: 50_000)
        test.schedule.saw(end: 11, of: 0, at: 51_000)
        test.schedule.read(.init(timestamp: 1_000, isTick: false), before: 10, of: 0)
        #expect(test.dueAt(70_000).isEmpty)
    }

    /// Two members, one of which does not know that it has lost the partition; every order of their looks in each of 12 steps.
    @Test func `gives two members that look before they tick one tick in an interval`() {
        for order in 0..<(1 << 12) {
            var log: [Int64] = [0]
            var members = [TickSchedule(interval: 30), TickSchedule(interval: 30)]
            for index in members.indices { members[index].take(over: [0]) }
            for step in 0..<12 {
                let now = Int64(step) * 10 + 5
                let first = (order >> step) & 1
                for index in [first, 1 - first] {
                    members[index].saw(end: Int64(log.count), of: 0, at: now)
                    for (partition, end) in members[index].unread(at: now) {
                        members[index].read(
                            .init(timestamp: log[Int(end) - 1], isTick: end > 1), before: end, of: partition)
                    }
                    if !members[index].due(at: now).isEmpty {
                        log.append(now)
                        members[index].ticked(0, at: Int64(log.count) - 1, timestamp: now)
                    }
                }
            }
            #expect(zip(log, log.dropFirst()).allSatisfy { $1 - $0 >= 30 && $1 - $0 <= 50 }, "order \(order): \(log)")
        }
    }
}

/// The interval is 30 s, and partitions live for 1,000 s.
@Suite struct `A schedule of ticks of partitions that live for a while` {
    private var schedule = TickSchedule(interval: 30_000, life: 1_000_000)

    private func dueAt(_ now: Int64) -> [Int32] { schedule.due(at: now).map(\.partition) }

    private mutating func takeOver(at now: Int64, last: TickSchedule.Record?) {
        schedule.take(over: [0])
        schedule.saw(end: 10, of: 0, at: now)
        schedule.read(last, before: 10, of: 0)
    }

    @Test func `ticks nothing that never had a notification`() {
        var test = self
        test.schedule.take(over: [0])
        test.schedule.saw(end: 0, of: 0, at: 1_000)
        #expect(test.dueAt(1_000_000).isEmpty)
        #expect(!test.schedule.hasWork(at: 1_000_000))
    }

    @Test func `ticks until a life after the last notification`() {
        var test = self
        test.takeOver(at: 50_000, last: .init(timestamp: 40_000, isTick: false))
        #expect(test.dueAt(70_000) == [0])
        test.schedule.ticked(0, at: 10, timestamp: 70_000)
        #expect(test.dueAt(1_039_999) == [0])
        #expect(test.dueAt(1_040_000).isEmpty)
        // Another notification wakes it.
        test.schedule.saw(end: 12, of: 0, at: 2_000_000)
        test.schedule.read(.init(timestamp: 1_999_000, isTick: false), before: 12, of: 0)
        #expect(test.dueAt(2_030_000) == [0])
    }

    @Test func `searches for the notification behind a tick that somebody else has left`() {
        var test = self
        test.takeOver(at: 50_000, last: .init(timestamp: 40_000, isTick: true))
        #expect(test.dueAt(100_000).isEmpty, "it is not known yet whether the partition is live")
        #expect(test.schedule.unsearched == [0: 10] && test.schedule.hasWork(at: 50_000))
        var other = test
        test.schedule.found(notification: 30_000, before: 10, of: 0)
        #expect(test.schedule.unsearched.isEmpty && test.dueAt(100_000) == [0])
        other.schedule.found(notification: nil, before: 10, of: 0)
        #expect(other.schedule.unsearched.isEmpty && other.dueAt(100_000).isEmpty)
        // A result from before more records came does not count.
        test.takeOver(at: 50_000, last: .init(timestamp: 40_000, isTick: true))
        test.schedule.found(notification: 30_000, before: 9, of: 0)
        #expect(test.schedule.unsearched == [0: 10])
    }

    @Test func `takes what came between its look and its tick for a notification`() {
        var test = self
        test.takeOver(at: 900_000, last: .init(timestamp: 40_000, isTick: false))
        test.schedule.ticked(0, at: 11, timestamp: 930_000)
        #expect(test.dueAt(1_900_000) == [0])
        #expect(test.dueAt(1_930_000).isEmpty)
    }

    @Test func `tries the time of the host with a living partition only`() {
        var test = self
        test.takeOver(at: 50_000, last: .init(timestamp: 40_000, isTick: false))
        #expect(test.schedule.hasLiving(at: 50_000) && test.schedule.trial(at: 50_000) == 0)
        #expect(!test.schedule.hasLiving(at: 2_000_000) && test.schedule.trial(at: 2_000_000) == nil)
    }
}
