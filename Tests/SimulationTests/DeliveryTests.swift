import Contract
import Simulation
import Testing

@Suite struct `A delivery` {
    private func posts(_ change: (inout Delivery.Configuration) -> Void) throws -> [Post] {
        let simulation = try Simulation(configuration(subscribers: 150))
        var configuration = Delivery.Configuration(seed: 11)
        change(&configuration)
        return Array(Delivery(simulation.notifications, configuration))
    }

    private func id(_ post: Post) -> String {
        "\(post.at) \(post.notification.notificationUUID) \(post.forgery?.rawValue ?? "") \(post.isDuplicate)"
    }

    @Test func `without disturbances posts each notification once at its time`() throws {
        let all = Array(try Simulation(configuration(subscribers: 150)).notifications)
        let posts = try posts { _ in }
        #expect(posts.map(\.notification.notificationUUID) == all.map(\.notificationUUID))
        #expect(posts.allSatisfy { $0.at == $0.notification.at && $0.attempt == 1 && $0.forgery == nil })
    }

    @Test func `disturbs at the rates asked for, alike for one seed, never before the time`() throws {
        func disturb(_ configuration: inout Delivery.Configuration) {
            configuration.duplicatesPerMille = 200
            configuration.delaysPerMille = 300
            configuration.swapsPerMille = 200
            configuration.forgeriesPerMille = 250
        }
        let posts = try posts(disturb)
        #expect(try posts.map(id) == self.posts(disturb).map(id))
        #expect(
            try posts.map(id)
                != self.posts {
                    disturb(&$0); $0.seed = 12
                }.map(id))
        #expect(zip(posts, posts.dropFirst()).allSatisfy { $0.at <= $1.at })
        #expect(posts.allSatisfy { $0.at >= $0.notification.at })

        let genuine = posts.filter { $0.forgery == nil && !$0.isDuplicate }
        #expect(Set(genuine.map(\.notification.notificationUUID)).count == genuine.count, "each comes through once")
        #expect(try genuine.count == self.posts { _ in }.count)
        func share(_ count: Int) -> Int { count * 1000 / genuine.count }
        #expect((150...250).contains(share(posts.count { $0.isDuplicate })))
        #expect((200...300).contains(share(posts.count { $0.forgery != nil })))
        // Three in ten are delayed, and two in ten of the others swapped.
        #expect((380...500).contains(share(genuine.count { $0.at > $0.notification.at })))
        let order = genuine.map(\.notification.at)
        #expect(zip(order, order.dropFirst()).contains { $0 > $1 }, "some are overtaken")
    }

    @Test func `comes again as Apple does, six times in all`() throws {
        let hours = RetrySchedule()
        var scaled = RetrySchedule()
        scaled.hour = 1000
        let waits = (1...6).map { hours.delay(afterAttempt: $0, in: .production) }
        #expect(waits == [1, 12, 24, 48, 72].map { $0 * 3_600_000 } + [nil])
        #expect(scaled.delay(afterAttempt: 2, in: .production) == 12_000)
        #expect(hours.delay(afterAttempt: 1, in: .sandbox) == nil)
    }

    @Test func `posts a failed one again with the same bytes, in its place among the others`() throws {
        let simulation = try Simulation(configuration(subscribers: 20))
        let authority = try SimulatedAuthority(seed: 1)
        let forger = try Forger(authority, seed: 1)
        var delivery = Delivery(simulation.notifications, Delivery.Configuration(seed: 1))
        let next = delivery.next()
        let first = try #require(next)
        let payload = first.signedPayload(by: authority, forger: forger)
        var attempts = [first.at]
        var failed = first
        var last = first.at
        let due = delivery.retry(first, at: first.at + 2000)
        #expect(due == first.at + 2000 + 3_600_000)
        while let post = delivery.next() {
            #expect(post.at >= last)
            last = post.at
            guard post.notification.notificationUUID == first.notification.notificationUUID else { continue }
            #expect(post.attempt == failed.attempt + 1)
            #expect(post.signedPayload(by: authority, forger: forger) == payload)
            attempts.append(post.at)
            failed = post
            delivery.retry(post, at: post.at)
        }
        #expect(attempts.count == 6)
        #expect(attempts[5] - attempts[1] == 156 * 3_600_000)
    }
}
