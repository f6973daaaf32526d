import Crypto
import JSON
import Simulation
import Testing

@Suite struct `A seed` {
    /// The complete output of a run, in bytes.
    private func transcript(_ configuration: Simulation.Configuration) throws -> [[UInt8]] {
        let simulation = try Simulation(configuration)
        var lines: [[UInt8]] = []
        for notification in simulation.notifications {
            lines.append(Array("\(notification.at) \(notification.kind) \(notification.notificationUUID)".utf8))
            lines.append(contentsOf: [notification.transaction, notification.renewalInfo].compactMap { $0 })
        }
        for subscriber in 0..<configuration.subscribers { lines += simulation.truth(of: subscriber).lines }
        return lines
    }

    @Test func `repeats a run byte by byte`() throws {
        #expect(
            try transcript(configuration(seed: 7, subscribers: 60))
                == transcript(configuration(seed: 7, subscribers: 60)))
        #expect(try transcript(configuration(seed: 7)) != transcript(configuration(seed: 8)))
    }

    /// The digest is that of a first run. If it changed, a seed in a report of a defect would not repeat the run any more.
    @Test func `means the same run in every process and release`() throws {
        let text = Array(try transcript(configuration(seed: 1, subscribers: 40)).joined(separator: [10]))
        #expect(
            hexadecimal(SHA256.digest(text.span)) == "8620853b610339216bb447c1cdb1980eb547e9d4aed066d4d43ce51306605a1c")
    }

    @Test func `repeats signatures`() throws {
        let notification = try #require(try simulation(of: .steady).life(of: 0).notifications.first)
        let first = notification.signedPayload(by: try SimulatedAuthority(seed: 3))
        #expect(first == notification.signedPayload(by: try SimulatedAuthority(seed: 3)))
        #expect(first != notification.signedPayload(by: try SimulatedAuthority(seed: 4)))
    }

    @Test func `gives every purchase and every notification an id of its own`() throws {
        let simulation = try Simulation(configuration(subscribers: 400))
        var uuids = Set<String>()
        var owners: [String: Int] = [:]
        for notification in simulation.notifications {
            #expect(uuids.insert(notification.notificationUUID).inserted)
            guard let id = notification.transactionJSON?["transactionId"]?.string else { continue }
            #expect(id.utf8.count == 16)
            let before = owners.updateValue(notification.subscriber, forKey: id)
            #expect(before == nil || before == notification.subscriber)
        }
    }
}

@Suite struct `A simulation` {
    @Test func `tells everybody's notifications in one order of time`() throws {
        let simulation = try Simulation(configuration(subscribers: 120))
        let all = Array(simulation.notifications)
        #expect(zip(all, all.dropFirst()).allSatisfy { ($0.at, $0.subscriber) < ($1.at, $1.subscriber) })
        let alone = (0..<120).flatMap { simulation.life(of: $0).notifications.map(\.notificationUUID) }
        #expect(all.map(\.notificationUUID).sorted() == alone.sorted())
    }

    /// Of 20,000 subscribers who join over ten years, only those with a running story are held in memory.
    @Test func `holds only whoever is under way`() throws {
        var configuration = configuration(subscribers: 20_000)
        configuration.end = start + 3650 * day
        configuration.lastArrival = configuration.end
        configuration.weights = [.trialCancelled: 1]
        let simulation = try Simulation(configuration)
        var notifications = simulation.notifications
        var most = 0
        for _ in 0..<3000 {
            _ = notifications.next()
            most = max(most, notifications.subscribersUnderWay)
        }
        // One joins about every four hours and stays for a week.
        #expect((20...80).contains(most), "\(most)")
    }

    @Test func `ends when it is over, in the middle of stories`() throws {
        var short = configuration(subscribers: 50)
        short.end = start + 60 * day
        let simulation = try Simulation(short)
        let whole = try Simulation(configuration(subscribers: 50))
        #expect(Array(simulation.notifications).count > 50)
        for subscriber in 0..<50 {
            let cut = simulation.life(of: subscriber)
            let all = whole.life(of: subscriber)
            #expect(
                cut.notifications.map(\.notificationUUID)
                    == all.notifications.filter { $0.at < short.end }.map(\.notificationUUID))
        }
    }

    @Test func `says what is wrong with its configuration`() throws {
        var none = configuration()
        none.apps = []
        #expect(throws: Simulation.Fault.self) { try Simulation(none) }
        var backwards = configuration()
        backwards.end = backwards.start
        #expect(throws: Simulation.Fault.self) { try Simulation(backwards) }
        var crowded = configuration()
        crowded.subscribers = Simulation.limitSubscribers + 1
        #expect(throws: Simulation.Fault.self) { try Simulation(crowded) }
        var silent = configuration()
        silent.weights = [:]
        #expect(throws: Simulation.Fault.self) { try Simulation(silent) }
    }
}
