// Identities that the cells of any input must meet: the last table of Numbers.md.

import Notices
import PlainChurn
import Simulation
import SubscriptionHistory
import Testing

import struct MakeBelieve.Chance

@testable import Churn

extension Chain {
    private static let stocks: [(State, ChurnCounter)] = [
        (.paid, .activeDelta), (.free, .trialDelta), (.grace, .graceDelta), (.retry, .retryDelta),
    ]
    private static let entries: [ChurnCounter] = [
        .started, .adopted, .renewed, .switched, .resubscribed, .earlyRecovered, .graceRecovered, .retryRecovered,
    ]
    private static let decisions: [ChurnCounter] = [
        .earlyRecovered, .graceRecovered, .retryRecovered, .retryLost, .retryCancelled, .retryOther, .failedOpen,
    ]
    private static let revenues = ChurnCounter.allCases.filter { $0.name.hasPrefix("mrr") }

    /// The identities that do not hold now, comparing the running sums with the state of the subscription; nil: all hold.
    var violation: String? {
        get throws {
            try desk.with(kept: kept) { state in
                state.settle(at: clock, originalTransactionId: purchase)
                return violation(of: state.timeline)
            }
        }
    }

    private func violation(of timeline: borrowing Timeline) -> String? {
        let last = timeline.visits.last
        let here = last.map { timeline.cellParts(ofRow: $0.row) }
        var begun: Int64 = 0
        for parts in Set(totals.keys).union(here.map { [$0] } ?? []) {
            let sums = totals[parts] ?? Sums()
            let visit = parts == here ? last : nil
            func sum(_ counters: [ChurnCounter]) -> Int64 { counters.reduce(0) { $0 + sums[$1] } }
            for (state, stock) in Self.stocks where sums[stock] != (visit?.state == state ? 1 : 0) {
                return "\(stock) of \(parts.productId) is \(sums[stock])"
            }
            let (revenue, risk) = visit.map { Self.worth($0, mrr: timeline.entries[$0.row].mrr) } ?? (0, 0)
            if sum(Self.revenues) != revenue {
                return "mrr of \(parts.productId): \(sum(Self.revenues)), not \(revenue)"
            }
            if sums[.atRiskDelta] != risk { return "atRiskDelta of \(parts.productId): \(sums[.atRiskDelta])" }
            if sums[.failed] != sum(Self.decisions) { return "failed of \(parts.productId): \(sums[.failed])" }
            begun += sum(Self.entries)
        }
        if begun != Int64(timeline.rows.count) { return "rows begun: \(begun), not \(timeline.rows.count)" }
        for (key, sums) in cells {
            if sums[.trials] != sums[.trialsConverted] + sums[.trialsEnded] + sums[.trialsOpen] {
                return "trials \(key)"
            }
            let outcomes: [ChurnCounter] = [
                .commitmentsRefunded, .commitmentsCompleted, .commitmentsSwitched, .commitmentsDefaulted,
                .commitmentsOpen,
            ]
            if sums[.commitmentsStarted] != outcomes.reduce(0, { $0 + sums[$1] }) { return "commitments \(key)" }
        }
        return nil
    }

    /// Revenue a month of paying chains, and of chains in grace or retry.
    private static func worth(_ visit: Visit, mrr: Int64) -> (Int64, Int64) {
        switch visit.state {
        case .paid: return (mrr, 0)
        case .grace: return (mrr, mrr)
        case .retry: return (0, mrr)
        case .free, .lapsed: return (0, 0)
        }
    }
}

extension Timeline {
    func cellParts(ofRow place: Int) -> CellParts {
        let parts = parts(place)
        func text(_ number: TextNumber) -> Text { facts.texts[number]?.text ?? "" }
        return CellParts(
            bundleId: text(parts.bundle), productId: text(parts.product), billingPlan: text(parts.plan),
            storefront: text(parts.storefront), currency: text(parts.currency))
    }
}

@Suite struct `Identities` {
    private static let parts = 4

    @Test(arguments: 0..<parts)
    func `activeDelta to mrrReactivation add up after every word of 1,000 lives of nonsense`(_ part: Int) throws {
        for seed in UInt64(30_000 + part * 250)..<UInt64(30_000 + (part + 1) * 250) {
            var chance = Chance(seed: seed)
            var chain = Chain("1")
            for word in Word.nonsense(1 + Int(chance.below(12)), &chance) {
                try chain.hear(word.record, at: word.at)
                try #require(try chain.violation == nil, "seed \(seed)")
            }
            try chain.advance(to: chain.clock + 200 * day)
            try #require(try chain.violation == nil, "seed \(seed), long after")
        }
    }

    /// The sum over many subscriptions, for every key, now and at the ends of days, according to the second implementation.
    @Test(arguments: 0..<parts)
    func `activeDelta to mrrReactivation add up over many subscriptions, at every hundredth word`(_ part: Int) throws {
        let simulation = try simulation(part, subscribers: 40)
        var chains: [String: (chain: Chain, facts: [PlainFact])] = [:]
        var words: [(id: String, word: Word)] = []
        for subscriber in 0..<simulation.configuration.subscribers {
            for (id, life) in Word.lives(of: subscriber, in: simulation) {
                chains[id] = (Chain(id), [])
                words += life.map { (id, $0) }
            }
        }
        // Notifications of one instant come in an arbitrary order that is always the same.
        words.sort { ($0.word.at, $0.id) < ($1.word.at, $1.id) }
        var chance = Chance(seed: UInt64(part))
        for (number, (id, word)) in words.enumerated() {
            try chains[id]?.chain.hear(word.record, at: word.at)
            if let fact = PlainFact(record: word.record) { chains[id]?.facts.append(fact) }
            guard number % 100 == 99 || number == words.count - 1 else { continue }
            try expectAll(&chains, at: word.at, "word \(number) of part \(part)", &chance)
        }
    }

    private func expectAll(
        _ chains: inout [String: (chain: Chain, facts: [PlainFact])], at clock: Int64, _ comment: Comment,
        _ chance: inout Chance
    ) throws {
        var sum = PlainIdentities()
        var plain: [PlainChurn] = []
        for id in chains.keys.sorted() {
            try chains[id]?.chain.advance(to: clock)
            guard let (chain, facts) = chains[id], !facts.isEmpty else { continue }
            try #require(try chain.violation == nil, comment)
            sum.add(chain.plain)
            plain.append(PlainChurn(facts: facts, chain: id, zone: "Etc/UTC", partition: 3))
        }
        try #require(sum.violations(standings: plain.map { $0.standing(at: clock) }).isEmpty, comment)
        guard !sum.days.isEmpty else { return }
        let day = sum.days[Int(chance.below(Int64(sum.days.count)))]
        let standings = plain.map { $0.standing(atEndOf: day, clock: clock) }
        try #require(sum.violations(standings: standings, atEndOf: day).isEmpty, "\(comment), \(day)")
    }
}
