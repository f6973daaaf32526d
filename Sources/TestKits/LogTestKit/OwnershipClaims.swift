// Promises about how long a session may act for its partitions outside the log.

import Log
import Platform
import Synchronization

extension LogClaim {
    static let ownershipClaims: [LogClaim] = [
        LogClaim(
            "gives a lease with the group's own word, lengthens it with a poll, and brings it back with a commit only"
        ) {
            bench in
            let input = try bench.topic("input", partitions: 2)
            let scene = try LeaseScene(bench, input)
            defer { scene.member.close() }
            let (session, length) = (scene.member.session, bench.under.sessionTimeout * 3 / 4)
            try bench.expect(session.ownedUntil, is: nil)
            try scene.member.own(2)
            try bench.expect(session.ownedUntil, is: nil)
            for _ in 0..<3 { try scene.member.step() }
            try bench.expect(session.ownedUntil, is: nil)
            try session.commit([:])
            try bench.expect(session.ownedUntil, is: nil)
            try session.commit(scene.positions)
            try bench.expect(session.ownedUntil, is: scene.now + length)
            scene.pass(length - .milliseconds(1))
            try scene.member.step()
            try bench.expect(session.ownedUntil, is: scene.now + length)
            let end = scene.now + length
            scene.pass(length)
            for _ in 0..<3 { try scene.member.step() }
            try session.commit([:])
            try bench.expect(session.ownedUntil, is: end)
            try session.commit(scene.positions)
            try bench.expect(session.ownedUntil, is: scene.now + length)
        },
        LogClaim("takes a lease away when it asks for the partitions, and with the session") { bench in
            let input = try bench.topic("input", partitions: 2)
            let scene = try LeaseScene(bench, input)
            defer { scene.member.close() }
            let session = scene.member.session
            try scene.member.own(2)
            try session.commit(scene.positions)
            let other = try bench.member(scene.group, bench.name("b"), inputs: [input])
            defer { other.close() }
            let batch = RecordBatch()
            try bench.expect(soon: "revoked") {
                try other.step()
                guard case .revoked = try session.poll(into: batch, limit: 10, wait: bench.under.pollWait) else {
                    try bench.expect(session.ownedUntil != nil, "a lease ended before the partitions were asked for")
                    return false
                }
                return true
            }
            try bench.expect(session.ownedUntil, is: nil)
            // The partitions still belong to the session, which is about to give them away.
            try session.commit(scene.positions)
            try bench.expect(session.ownedUntil, is: nil)
            try session.giveBack()
            try bench.expect(session.ownedUntil, is: nil)
            try bench.expect(soon: "one partition each") {
                try scene.member.step()
                try other.step()
                return scene.member.owned.count == 1 && other.owned.count == 1
            }
            try bench.expect(session.ownedUntil, is: nil)
            try session.commit([scene.member.owned.first!: NextOffset(0)])
            try bench.expect(session.ownedUntil != nil, "the lease is there again")
            scene.member.close()
            try bench.expect(session.ownedUntil, is: nil)
        },
    ]
}

/// A member whose clock the check controls.
private final class LeaseScene {
    let group: String
    let member: Member
    let positions: [TopicPartition: NextOffset]
    private let time: Time

    private final class Time: Sendable {
        let now = Mutex<Duration>(.seconds(1_000))
    }

    init(_ bench: borrowing Bench, _ input: String) throws {
        let time = Time()
        self.time = time
        group = bench.name("group")
        positions = [TopicPartition(input, 0): NextOffset(0), TopicPartition(input, 1): NextOffset(0)]
        var options = bench.options(group, bench.name("a"), inputs: [input], outputs: [])
        options.bootClock = { time.now.withLock { $0 } }
        member = try Member(copy bench, options)
    }

    var now: Duration { time.now.withLock { $0 } }
    func pass(_ duration: Duration) { time.now.withLock { $0 += duration } }
}
