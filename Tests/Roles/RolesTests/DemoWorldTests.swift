import Kafka
import Platform
import ReadAPI
import Service
import Synchronization
import Testing

@testable import Demo
@testable import Simulator

/// A clock that the test moves.
private final class Hand: Sendable {
    private let passed = Mutex(Duration.zero)

    var elapsed: Duration { passed.withLock { $0 } }
    func move(by duration: Duration) { passed.withLock { $0 += duration } }
}

@Suite struct `The world of the demo` {
    private static let day: Int64 = 86_400_000
    private let hand = Hand()

    private func world(_ place: DemoTopics.Place = .memory) throws -> DemoWorld {
        let hand = hand
        return try DemoWorld(place, elapsed: { hand.elapsed })
    }

    /// Until nothing more is published.
    private func letItRun(_ world: DemoWorld) {
        world.clock.expect(world.end)
        hand.move(by: .seconds(3600))
        world.clock.settle(post: world.end)
        hand.move(by: .seconds(3600))
    }

    @Test func `stands still where its stories end: nobody would renew any more`() throws {
        let world = try world()
        #expect(world.end - world.clock.now == 3650 * Self.day)
        letItRun(world)
        #expect(world.clock.now == world.end)
        #expect(world.pace(at: world.clock.now, daysPerSecond: 0) == .ended)
        #expect(world.pace(at: world.end - 1, daysPerSecond: 2) == .running(daysPerSecond: 2))
        var parcels = world.store.parcels
        let first = parcels.next()
        #expect(first.map { $0.at < world.end } == true)
    }

    @Test func `with a Kafka goes on with the time on the wall, and has stories for it`() throws {
        let world = try world(.kafka(ClientProperties(bootstrapServers: "localhost:9092")))
        letItRun(world)
        let now = WallClock.milliseconds()
        #expect(abs(world.clock.now - now) < 60_000)
        #expect(world.pace(at: now, daysPerSecond: 0) == .present)
        #expect(world.end - now > 29 * Self.day)
    }

    @Test func `has customers who ask for refunds, a backend that knows them, and an Apple that waits for answers`()
        throws
    {
        let world = try DemoWorld(.memory, asksForRefunds: true, elapsed: { .zero })
        var parcels = world.store.parcels(withUsage: true)
        let expected = [Parcel.Kind.notification, .usage, .wait]
        var kinds: [Parcel.Kind: Int] = [:]
        // The stories depend on the time at which the demo begins. Of the rarest kind is about one parcel in 120, and one
        // world had only 48 among its first 10,000.
        for _ in 0..<50_000 {
            guard let parcel = parcels.next(), expected.contains(where: { kinds[$0, default: 0] <= 50 }) else { break }
            kinds[parcel.kind, default: 0] += 1
        }
        for kind in expected { #expect(kinds[kind, default: 0] > 50, "\(kinds)") }
    }

    @Test func `has access judged by its own time, and copies aged by the time on the wall`() throws {
        let world = try world()
        let time = world.readAPITime
        #expect(time.now() == world.clock.now)
        #expect(WallClock.milliseconds() - time.now() > 389 * Self.day)
        letItRun(world)
        #expect(time.now() == world.end)
        #expect(abs(time.wall() - WallClock.milliseconds()) < 60_000)
        #expect(time.elapsed() == hand.elapsed)
    }
}

@Suite struct `A part that stops earlier` {
    private final class Noted: ServicePart {
        let name = "noted"
        let allowed = Mutex<Duration?>(nil)
        func start(failed: @escaping @Sendable (any Error) -> Void) {}
        func stop(by deadline: Deadline) { allowed.withLock { $0 = deadline.remaining } }
    }

    @Test(arguments: [(60, 46), (14, 0), (5, 0)])
    func `leaves its share to what stops after it`(_ whole: Int, _ left: Int) throws {
        let part = Noted()
        try EarlierStop(part: part, by: .seconds(14)).stop(by: Deadline(after: .seconds(whole)))
        let allowed = try #require(part.allowed.withLock { $0 })
        #expect(allowed <= .seconds(left) && allowed > .seconds(left - 30), "\(allowed)")
    }
}
