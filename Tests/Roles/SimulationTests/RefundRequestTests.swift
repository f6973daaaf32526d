import Contract
import JSON
import Simulation
import Synchronization
import Testing

/// Gives every request the same answer, at the right time.
private final class Desk: RefundDesk {
    private let said: RefundAnswer
    private let state = Mutex((time: Int64.min, asked: [String]()))

    init(_ answer: RefundAnswer, from time: Int64 = .max) {
        said = answer
        advance(to: time)
    }

    var asked: [String] { state.withLock { $0.asked } }
    func advance(to time: Int64) { state.withLock { $0.time = time } }

    func answer(to transactionId: String, decidedAt: Int64) -> RefundAnswer? {
        state.withLock { state in
            guard decidedAt <= state.time else { return nil }
            state.asked.append(transactionId)
            return said
        }
    }
}

private let asking = Story.allCases.filter { $0.rawValue.lowercased().contains("asked") }

private func requests(of simulation: Simulation) -> [RefundTruth] {
    (0..<simulation.configuration.subscribers).flatMap(simulation.refundRequests(of:))
}

@Suite struct `Refund requests` {
    @Test func `are stories of their own: everybody else lives as without them`() throws {
        var configuration = configuration(subscribers: 400)
        let without = try Simulation(configuration)
        configuration.refundsPerMille = 250
        let with = try Simulation(configuration)
        let changed = (0..<400).filter { with.story(of: $0) != without.story(of: $0) }
        #expect((60...140).contains(changed.count), "\(changed.count)")
        #expect(changed.allSatisfy { asking.contains(with.story(of: $0)) })
        for subscriber in Set(0..<400).subtracting(changed).prefix(50) {
            #expect(
                with.life(of: subscriber).notifications.map(\.notificationUUID)
                    == without.life(of: subscriber).notifications.map(\.notificationUUID))
        }
    }

    @Test func `of one case come twice within twelve hours, with an id each`() throws {
        for story in [Story.subscriptionAskedTwice, .consumableAskedTwice] {
            let simulation = try simulation(of: story, subscribers: 40)
            for subscriber in 0..<40 {
                let both = simulation.refundRequests(of: subscriber)
                try #require(both.count == 2)
                #expect(both[0].transaction == both[1].transaction)
                #expect(both[0].notificationUUID != both[1].notificationUUID)
                #expect(both[1].at - both[0].at < 12 * 60 * minute)
                #expect(both[0].outcome == both[1].outcome && both[0].outcome != nil)
            }
        }
    }

    @Test(arguments: asking, [false, true])
    func `end in Apple's word on the same transaction`(_ story: Story, sandbox: Bool) throws {
        let simulation = try simulation(of: story, subscribers: 60, sandbox: sandbox)
        let all = requests(of: simulation)
        #expect(all.count >= 60)
        #expect(all.allSatisfy { ["refunded", "declined", "reversed"].contains($0.outcome) })
        #expect(Set(all.map(\.outcome)).count >= 2)
        #expect(all.allSatisfy { $0.outcomeAt ?? 0 > $0.at })
    }

    @Test func `follow the answer mostly, and the same answer with the same seed the same way`() throws {
        func outcomes(_ desk: (any RefundDesk)?, seed: UInt64 = 1) throws -> [String?] {
            var configuration = configuration(seed: seed, subscribers: 200)
            configuration.weights = [.consumableAsked: 1]
            configuration.desk = desk
            return requests(of: try Simulation(configuration)).map(\.outcome)
        }
        let (granted, declined) = (try outcomes(Desk(.grantFull)), try outcomes(Desk(.decline)))
        #expect(granted.count { $0 == "refunded" } > 170 && granted.count == 200)
        #expect(declined.count { $0 == "refunded" } < 40)
        let unanswered = try outcomes(Desk(.none))
        #expect((90...160).contains(unanswered.count { $0 == "refunded" }))
        #expect(try outcomes(Desk(.decline)) == declined)
        #expect(try outcomes(nil) != outcomes(nil, seed: 2))
        // A request that is refunded against the wish of the app is also refunded with it.
        #expect(zip(granted, declined).allSatisfy { $1 != "refunded" || $0 == "refunded" })
    }

    @Test func `keep everybody waiting who cannot know the decision yet`() throws {
        let desk = Desk(.decline, from: .min)
        var configuration = configuration(subscribers: 3)
        configuration.weights = [.consumableAsked: 1]
        configuration.desk = desk
        let simulation = try Simulation(configuration)
        var delivery = Delivery(simulation.notifications, Delivery.Configuration(seed: 1))
        var posts: [SimulatedNotification] = []
        var waits = 0
        var last: Int64 = 0
        while let step = delivery.step() {
            #expect(step.at >= last)
            last = step.at
            switch step {
            case .post(let post): posts.append(post.notification)
            case .undecided(let until):
                #expect(posts.contains { $0.notificationType == "CONSUMPTION_REQUEST" && $0.at < until })
                waits += 1
                desk.advance(to: until)
            }
        }
        #expect(waits == 3 && posts.count == 9)
        #expect(posts.map(\.at) == posts.map(\.at).sorted())
        #expect(Set(desk.asked).count == 3)
    }

    @Test func `of a family member are never to be answered, of a purchaser who consents they are`() throws {
        let family = requests(of: try simulation(of: .familyAsked, subscribers: 60))
        #expect(family.contains { $0.transaction.isFamilyShared })
        #expect(family.filter(\.transaction.isFamilyShared).allSatisfy { $0.answer == .never })
        for request in requests(of: try simulation(of: .subscriptionAsked, subscribers: 300)) {
            let words = request.consent.map(\.consented)
            switch request.answer {
            case .never: #expect(!words.contains(true) || request.consentAtRequest != true)
            case .must: #expect(request.consentAtRequest == true && !words.contains(false))
            case .may: #expect(words.contains(true))
            }
        }
    }

    @Test func `concern a billing period of a commitment, the current or an earlier one`() throws {
        let simulation = try simulation(of: .commitmentAsked, subscribers: 100)
        let periods = try (0..<100).flatMap(simulation.refundRequests(of:)).map { request in
            try #require(try JSONValue.read(request.line)["periodNumber"]?.integer)
        }
        #expect(Set(periods).count > 2)
    }
}

@Suite struct `A transaction's number` {
    @Test func `leads to its purchase, whoever made it`() throws {
        var configuration = configuration(seed: 123_456_789_012, subscribers: 300)
        configuration.refundsPerMille = 300
        let simulation = try Simulation(configuration)
        var found = 0
        for notification in simulation.notifications.prefix(1500) {
            guard let row = notification.transactionJSON, let id = row["transactionId"]?.string else { continue }
            guard case .transaction(let transaction)? = simulation.find(id) else {
                Issue.record("\(id) is not found")
                continue
            }
            found += 1
            #expect(transaction.originalTransactionId == row["originalTransactionId"]?.string)
            #expect(transaction.bundleId == row["bundleId"]?.string && transaction.type == row["type"]?.string)
            #expect(transaction.isFamilyShared == (row["inAppOwnershipType"]?.string == "FAMILY_SHARED"))
            let app = try #require(row["appTransactionId"]?.string)
            #expect(simulation.find(app) == .appTransaction)
        }
        #expect(found > 500)
        for id in ["", "0", "-1", "2000000000000000x", "02000000000000000", "3000000000000000", "9223372036854775807"] {
            #expect(simulation.find(id) == nil)
        }
    }
}

@Suite struct `The backend` {
    private func all(_ story: Story) throws -> [(request: RefundTruth, usage: [SimulatedUsage])] {
        let simulation = try simulation(of: story, subscribers: 300)
        return (0..<300).flatMap { subscriber in
            let usage = simulation.usage(of: subscriber)
            return simulation.refundRequests(of: subscriber).map { ($0, usage) }
        }
    }

    @Test func `says consent at every time at which it may be said, and sometimes never`() throws {
        let consents = try all(.consumableAsked).map { $0.request.consentAtRequest }
        for word in [true, false, nil] { #expect(consents.contains(word)) }
        let answers = try all(.consumableAsked).map(\.request)
        #expect(Set(answers.map(\.answer)) == [.must, .may, .never])
        #expect(answers.contains { $0.consentAtRequest == true && $0.consentAtDeadline == false })
        #expect(answers.contains { $0.consentAtRequest == nil && $0.consentAtDeadline == true })
    }

    @Test func `says how much of a consumable is used, and nothing of the kind of a subscription`() throws {
        let percentages = try all(.consumableAsked).flatMap(\.usage).compactMap(\.consumptionPercentage)
        #expect(percentages.allSatisfy { (0...100_000).contains($0) })
        #expect(percentages.contains(0) && percentages.contains(100_000) && percentages.contains { $0 % 1000 != 0 })
        #expect(try all(.subscriptionAsked).flatMap(\.usage).allSatisfy { $0.consumptionPercentage == nil })
        for record in try all(.consumableAsked).flatMap(\.usage) where record.consumptionPercentage ?? 0 > 0 {
            let delivery = try simulation(of: .consumableAsked, subscribers: 300).usage(of: record.subscriber)
                .compactMap(\.deliveryStatus)
            #expect(delivery == ["DELIVERED"])
        }
    }

    @Test func `writes records as the contract has them`() throws {
        for record in try all(.consumableAsked).prefix(20).flatMap(\.usage) {
            let json = try JSONValue.read(record.json)
            #expect(json["v"]?.integer == 1 && json["environment"]?.string == "Production")
            #expect(json["originalTransactionId"]?.string == record.originalTransactionId)
            #expect(json["transactionId"]?.string == record.transactionId)
            #expect(json["consented"]?.bool == record.consented)
            #expect(json["consentedAt"]?.integer == (record.consented == nil ? nil : record.at))
        }
    }
}
