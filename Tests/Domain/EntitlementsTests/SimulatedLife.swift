// Lives of the simulator, and the simulator's truth about them.

import Contract
import JSON
import Notices
import Simulation
import Testing

import struct MakeBelieve.Chance

@testable import Entitlements

private let second: Int64 = 1000

/// One subscription or purchase of a simulated subscriber: its notifications, and the truth.
struct SimulatedLife {
    struct Told {
        let at: Int64
        let facts: Facts
        let transactionId: String?
    }

    /// Apple is up to forty seconds late, and its notification as much later again. Nobody can know before that.
    private static let onTheWay = 81 * second

    let seed: String
    let story: Story
    let told: [Told]
    let truth: SubscriptionTruth
    let end: Int64
    private let rules: Rules

    /// Access that the truth gives must also be given with the leeway; access that the truth does not give must not be given
    /// without it.
    struct Rules {
        let withLeeway: EntitlementRules
        let exact: EntitlementRules

        init(_ simulation: Simulation, _ environment: Contract.Environment) {
            let apps = simulation.configuration.apps.map(\.contractApp)
            withLeeway = EntitlementRules(apps: apps, leeway: hour, environment: environment)
            exact = EntitlementRules(apps: apps, leeway: 0, environment: environment)
        }
    }

    /// All subscriptions of one subscriber that have notifications.
    static func all(
        of subscriber: Int, in simulation: Simulation, _ rules: [Contract.Environment: Rules]
    ) throws -> [SimulatedLife] {
        let (notifications, truth) = simulation.life(of: subscriber)
        let story = simulation.story(of: subscriber)
        return try truth.subscriptions.compactMap { subscription in
            let told = try notifications.filter { $0.originalTransactionId == subscription.originalTransactionId }
                .map { try Told($0) }
            guard !told.isEmpty else { return nil }
            return SimulatedLife(
                seed: "seed \(simulation.configuration.seed), subscriber \(subscriber), \(story)", story: story,
                told: told, truth: subscription, end: simulation.configuration.end,
                rules: try #require(rules[subscription.environment]))
        }
    }

    /// What is known when every notification has come.
    var facts: Facts { told.reduce(into: Facts()) { $0.merge($1.facts) } }

    // MARK: Order and repetition

    /// Whether the final state is the same if some notifications came twice, late, or in any order.
    func isSame(shuffledBy chance: inout Chance) -> Bool {
        let facts = facts
        let anyhow = (told + told.filter { _ in chance.yes(40) }).shuffled(using: &chance)
        // Apple resends a notification that was not accepted after 1, 13, 37, 85 or 157 hours.
        let late = told.map {
            (at: $0.at + (chance.yes(30) ? chance.of(1, 13, 37, 85, 157) * hour : 0), facts: $0.facts)
        }
        .sorted { $0.at < $1.at }
        let lists = [anyhow.map(\.facts), told.reversed().map(\.facts), late.map(\.facts)]
        return lists.allSatisfy { $0.reduce(into: Facts()) { $0.merge($1) } == facts }
    }

    // MARK: Access

    /// The first instant at which the answer differs from the truth, as text.
    func firstFalseAnswer() -> String? {
        // The developer moved the subscription elsewhere: Apple does not report its later life.
        guard truth.state != nil else { return nil }
        var known = Facts()
        for (place, word) in told.enumerated() {
            known.merge(word.facts)
            let next = place + 1 < told.count ? told[place + 1] : nil
            let until = next?.at ?? end
            var answers = Answers(known, rules)
            for instant in instants(from: word.at, until: until)
            where !answers.areRight(at: instant, truth) {
                if let next, instant >= next.at - Self.onTheWay {
                    var later = known
                    later.merge(next.facts)
                    var soon = Answers(later, rules)
                    if soon.areRight(at: instant, truth) { continue }
                }
                return
                    "\(seed): at \(instant) it is not \(truth.states(at: instant)), after \(place + 1) words of "
                    + "\(truth.originalTransactionId): \(truth.intervals)"
            }
        }
        return nil
    }

    /// Instants at which something may change: those of notifications, those where the truth changes, and the millisecond before
    /// each.
    private func instants(from: Int64, until: Int64) -> [Int64] {
        let changes = truth.intervals.flatMap { [$0.from, $0.until ?? .max] }.flatMap { [$0 - 1, $0] }
        return [from, until - 1] + changes.filter { $0 > from && $0 < until - 1 }
    }

    private struct Answers {
        let facts: Facts
        let rules: Rules
        // Most of the time the truth gives access, and only the first answer is computed.
        lazy var withLeeway = Timeline(facts, rules.withLeeway)
        lazy var exact = Timeline(facts, rules.exact)

        init(_ facts: Facts, _ rules: Rules) {
            self.facts = facts
            self.rules = rules
        }

        /// Access and state.
        mutating func areRight(at instant: Int64, _ truth: SubscriptionTruth) -> Bool {
            let timeline = truth.hasAccess(at: instant) ? withLeeway : exact
            guard let answer = timeline?.entitlement(at: instant) else { return !truth.hasAccess(at: instant) }
            return answer.access == truth.hasAccess(at: instant) && truth.states(at: instant).contains(answer.state)
        }
    }

    // MARK: The end

    /// The differences between the final record and the simulator's truth, as text.
    func falseEnd() throws -> String? {
        guard let state = truth.state else { return nil }
        let answer = try #require(Timeline(facts, rules.withLeeway)).entitlement(at: end)
        let pairs: [(String, String?, String?)] = [
            ("state", answer.state.rawValue, state), ("reason", answer.reason?.rawValue, truth.reason),
            ("productId", answer.productId?.description, truth.productId),
            ("appAccountToken", answer.appAccountToken?.description, truth.appAccountToken),
            ("ownership", answer.ownership?.description, truth.isFamilyShared ? "FAMILY_SHARED" : "PURCHASED"),
            ("autoRenew", answer.autoRenew.map { "\($0)" }, truth.autoRenew.map { "\($0)" }),
            ("billingPlan", answer.billingPlan?.description, truth.billingPlan),
            ("period", answer.commitment?.period.map { "\($0)" }, truth.commitmentPeriod.map { "\($0)" }),
            ("runs", "\(answer.runs)", runs.map { "\($0)" } ?? "\(answer.runs)"),
        ]
        let wrong = pairs.filter { $0.1 != $0.2 }
        return wrong.isEmpty ? nil : "\(seed), \(truth.originalTransactionId): \(wrong), \(truth.intervals)"
    }

    /// Times that were paid or given in grace, according to the truth; nil for a commitment that failed, because its last days
    /// are paid although they gave no access.
    private var runs: [Run]? {
        if story == .commitmentRecovered || story == .commitmentLost { return nil }
        var runs: [Run] = []
        var transactionId: String?
        for interval in truth.intervals where interval.rule != .leeway && interval.revokedAt == nil {
            defer { transactionId = interval.transactionId }
            // A reversed refund leaves no trace.
            let isBack = interval.rule == .reinstated && interval.transactionId == transactionId
            if let last = runs.last, isBack || last.end.map({ interval.from <= $0 }) ?? true {
                runs[runs.count - 1].end = interval.until
            } else {
                runs.append(Run(start: interval.from, end: interval.until))
            }
        }
        return runs
    }
}

extension SubscriptionTruth {
    /// The states that the story allows at this instant.
    fileprivate func states(at instant: Int64) -> [Entitlement.State] {
        switch intervals.last(where: { $0.from <= instant && instant < $0.until ?? .max })?.rule {
        case .paid, .trial, .extension, .leeway, .pass: [.active]
        case .grace: [.grace]
        case .owned: [.owned]
        // For a subscription, or for a one-time purchase.
        case .family, .reinstated: [.active, .owned]
        case nil: [.billingRetry, .expired, .revoked]
        }
    }
}

extension SimulatedLife.Told {
    fileprivate init(_ notification: SimulatedNotification) throws {
        var json = JSONWriter()
        json.object { json in
            json.member("v", 1)
            json.member("notificationType", notification.notificationType)
            json.member("subtype", notification.subtype)
            json.member("signedDate", notification.at)
            json.name("status")
            if let status = notification.status { json.integer(status) } else { json.null() }
            json.member("transaction", json: notification.transaction)
            json.member("renewalInfo", json: notification.renewalInfo)
        }
        let reading = try reading(json.bytes)
        try #require(!reading.hasUnusableTransaction)
        self.init(
            at: notification.at, facts: reading.facts,
            transactionId: reading.facts.purchases.first?.transaction.id.description)
    }
}
