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
        #expect(posts.allSatisfy { $0.at == $0.notification.at && $0.forgery == nil })
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

    @Test func `comes again as Apple does, six times in all`() {
        #expect(RetrySchedule.delays(in: .production) == [1, 12, 24, 48, 72].map { $0 * 3_600_000 })
        #expect(RetrySchedule.delays(in: .sandbox).isEmpty)
    }
}
