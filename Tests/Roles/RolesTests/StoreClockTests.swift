import Platform
import Synchronization
import Testing

@testable import Demo

@Suite struct `The clock of the make-believe store` {
    private static let hour: Int64 = 3_600_000
    private static let start: Int64 = 1_750_000_000_000

    /// A clock that runs a thousand times as fast as the one that the test moves.
    private final class Rig: Sendable {
        private let wall = Mutex(Duration.zero)
        private let limit = Mutex(Int64.max)
        let clock: StoreClock

        init() {
            let box = Box()
            clock = StoreClock(
                start: start, speed: 1000, latest: { box.rig?.limit.withLock { $0 } ?? .max },
                elapsed: { box.rig?.wall.withLock { $0 } ?? .zero })
            box.put(self)
        }

        private final class Box: Sendable {
            private let held = Mutex<Rig?>(nil)
            var rig: Rig? { held.withLock { $0 } }
            func put(_ rig: Rig) { held.withLock { $0 = rig } }
        }

        func pass(_ duration: Duration) { wall.withLock { $0 += duration } }
        func neverBeyond(_ time: Int64) { limit.withLock { $0 = time } }
        var passed: Int64 { clock.now - start }
    }

    @Test func `stands still until there is something to expect`() {
        let rig = Rig()
        rig.pass(.seconds(100))
        #expect(rig.passed == 0)
        rig.clock.expect(Self.start + 10 * Self.hour)
        #expect(rig.passed == 0, "what passed before is not made up for")
        rig.pass(.seconds(1))
        #expect(rig.passed == 1_000_000)
    }

    @Test func `runs as many times faster as it is told`() {
        let rig = Rig()
        rig.clock.expect(Self.start + 1000 * Self.hour)
        rig.pass(.milliseconds(7200))
        #expect(rig.passed == 2 * Self.hour)
        #expect(rig.clock.wait(until: Self.start + 3 * Self.hour) == .milliseconds(3600))
        #expect(rig.clock.wait(until: Self.start) == .zero)
    }

    @Test func `passes hours slowly while a refund request is open, and not before`() {
        let rig = Rig()
        rig.clock.expect(Self.start + 1000 * Self.hour)
        rig.clock.wait(forRequest: "a", slowFrom: Self.start + Self.hour, deadline: Self.start + 12 * Self.hour)
        rig.pass(.milliseconds(3600))
        #expect(rig.passed == Self.hour)
        rig.pass(StoreClock.slowHour)
        #expect(rig.passed == 2 * Self.hour, "not as fast as ever, and not standing still")
        rig.clock.wait(forRequest: "b", deadline: Self.start + 12 * Self.hour)
        rig.clock.settle(request: "a")
        rig.clock.settle(request: "unknown")
        rig.pass(StoreClock.slowHour)
        #expect(rig.passed == 3 * Self.hour)
        rig.clock.settle(request: "b")
        rig.pass(.milliseconds(3600))
        #expect(rig.passed == 4 * Self.hour)
    }

    @Test func `does not wait for a refund request beyond its deadline`() {
        let rig = Rig()
        rig.clock.expect(Self.start + 1000 * Self.hour)
        rig.clock.wait(forRequest: "a", deadline: Self.start + 2 * Self.hour)
        rig.pass(StoreClock.slowHour * 2)
        #expect(rig.passed == 2 * Self.hour)
        rig.pass(.milliseconds(3600))
        #expect(rig.passed == 3 * Self.hour)
    }

    @Test func `never runs far ahead of what has no answer yet`() {
        let rig = Rig()
        rig.clock.expect(Self.start)
        rig.clock.expect(Self.start + Self.hour)
        rig.pass(.seconds(1_000_000))
        #expect(rig.passed == StoreClock.limitAhead)
        rig.clock.settle(post: Self.start)
        #expect(rig.passed == StoreClock.limitAhead, "the time that it stood still is not made up for")
        rig.pass(.seconds(1_000_000))
        #expect(rig.passed == Self.hour + StoreClock.limitAhead)
    }

    @Test func `is held by each of two posts of the same time`() {
        let rig = Rig()
        for _ in 0..<2 { rig.clock.expect(Self.start) }
        rig.clock.settle(post: Self.start)
        rig.pass(.seconds(1_000_000))
        #expect(rig.passed == StoreClock.limitAhead)
    }

    @Test func `never runs backwards, whatever is expected late`() {
        let rig = Rig()
        rig.clock.expect(Self.start + 100 * Self.hour)
        rig.pass(.seconds(36_000))
        let before = rig.passed
        rig.clock.expect(Self.start)
        rig.pass(.seconds(1))
        #expect(rig.passed == before)
    }

    @Test func `waits less than the leeway, so that nobody loses access for a slow machine`() {
        #expect(StoreClock.limitAhead < 3_600_000)
    }

    @Test func `stops at the present where it is told to, and goes on with it`() {
        let rig = Rig()
        rig.neverBeyond(Self.start + 5000)
        rig.clock.expect(Self.start + 100 * Self.hour)
        rig.pass(.seconds(100))
        #expect(rig.passed == 5000)
        rig.neverBeyond(Self.start + 6000)
        rig.pass(.seconds(100))
        #expect(rig.passed == 6000)
    }
}
