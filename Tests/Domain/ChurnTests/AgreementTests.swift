// Entitlements and churn judge the same notifications by different rules. Where both speak of one thing, they must say the same.

import Churn
import Contract
import Entitlements
import JSON
import MakeBelieve
import Notices
import Simulation
import Testing

/// How one subscription is counted: by the running sums of the cells.
private enum Counted: String {
    /// In `activeDelta` or `trialDelta`.
    case served
    /// In `graceDelta`.
    case grace
    /// In `retryDelta`.
    case retry
    /// In none: churned, or not begun.
    case nothing
}

/// What churn must count while an entitlement has a state, and why.
private let agreed: [(state: Entitlement.State, counted: Counted, why: String)] = [
    (.active, .served, "access that is paid for, or a trial: PAID or FREE"),
    (.grace, .grace, "both have access for the same grace period"),
    (.billingRetry, .retry, "both have no access until the same window of Apple ends"),
    (.expired, .nothing, "LAPSED, whatever the reason"),
    (.revoked, .nothing, "LAPSED(refund)"),
    (
        .superseded, .served,
        "an upgrade refunds the rest and ends nothing: the notification of what replaces it is late"
    ),
    (.owned, .nothing, "it never renews"),
]

/// The notifications of one subscription or purchase.
private struct Life {
    let name: String
    let key: String
    let records: [StoreLog.Record]
    let end: Int64

    /// Churn knows no leeway: while entitlements wait for a late renewal, they may differ.
    let leeway: Int64
    let rules: EntitlementRules

    /// - Parameter seen: counts the states that were compared.
    func disagreements(_ chance: inout Chance, _ seen: inout [Entitlement.State: Int]) throws -> [String] {
        var found: [String] = []
        var chain = Chain(key)
        var facts = Entitlements.Facts()
        var json = JSONDocument()
        for (place, record) in records.enumerated() {
            try chain.hear(record.value, at: record.timestamp)
            try json.read(record.value.span)
            facts.merge(NotificationReading(json).facts)
            let timeline = Entitlements.Timeline(facts, rules)
            let next = place + 1 < records.count ? records[place + 1].timestamp : end
            for instant in moments(timeline, from: record.timestamp, until: next, &chance) {
                try chain.advance(to: instant)
                let counted = try chain.counted
                guard let answer = timeline?.entitlement(at: instant) else {
                    if counted != .nothing { found.append("\(name): nobody bought anything, and it is \(counted)") }
                    continue
                }
                let expected = expected(answer)
                seen[answer.state, default: 0] += 1
                guard counted != expected?.counted else { continue }
                found.append(
                    "\(name), at \(instant), after \(place + 1) notifications: \(answer.state), but churn counts \(counted); "
                        + "expected \(expected?.counted.rawValue ?? "no such state"): \(expected?.why ?? "")")
            }
        }
        return found
    }

    private func expected(_ answer: Entitlement) -> (counted: Counted, why: String)? {
        if answer.ownership == "FAMILY_SHARED" { return (.nothing, "members of a family are never counted") }
        if answer.type != "Auto-Renewable Subscription" { return (.nothing, "it never renews") }
        return agreed.first { $0.state == answer.state }.map { ($0.counted, $0.why) }
    }

    /// The first and the last moment between two notifications, one between them, and the moments at which time alone may change
    /// an answer, each with the one before it. In order, and without those of a leeway.
    private func moments(
        _ timeline: Entitlements.Timeline?, from start: Int64, until end: Int64, _ chance: inout Chance
    ) -> [Int64] {
        var moments = [start, start + chance.below(max(1, end - start)), end - 1]
        var ends: [Int64] = []
        if let timeline {
            for purchase in timeline.purchases.suffix(3) {
                guard let expires = purchase.transaction.expiresDate else { continue }
                ends.append(expires)
                for boundary in [expires, expires + leeway, expires + 60 * day, expires + 90 * day] {
                    moments += [boundary - 1, boundary]
                }
            }
            if let grace = timeline.entitlement(at: start).graceUntil { moments += [grace - 1, grace] }
        }
        return Set(moments).filter { moment in
            (start..<end).contains(moment) && !ends.contains { $0 <= moment && moment < $0 + leeway }
        }.sorted()
    }
}

extension Chain {
    fileprivate var counted: Counted {
        get throws {
            var sums = Sums()
            for total in totals.values { sums.add(total) }
            let stocks: [(Counted, Int64)] = [
                (.served, sums[.activeDelta] + sums[.trialDelta]), (.grace, sums[.graceDelta]),
                (.retry, sums[.retryDelta]),
            ]
            let counts = stocks.filter { $0.1 != 0 }
            try #require(counts.count <= 1 && counts.allSatisfy { $0.1 == 1 }, "\(id) is counted as \(counts)")
            return counts.first?.0 ?? .nothing
        }
    }
}

@Suite struct `Two thousand lives` {
    private static let perPart = 500
    /// Some lives are cut short, others are over.
    private static let months: [Int64] = [2, 3, 5, 9]

    /// The notifications of half of the lives come late, twice, and in another order: then, too, both know the same.
    @Test(arguments: months.indices)
    func `are counted as served, in grace, in retry or lapsed exactly while their entitlements say so`(
        _ part: Int
    ) throws {
        // Not everybody buys something.
        let store = try StoreLog(
            seed: UInt64(70 + part), subscribers: 600, arrival: 30 * StoreLog.day,
            after: Self.months[part] * 30 * StoreLog.day, refundsPerMille: 100)
        var delivery = Delivery.Configuration(seed: UInt64(part))
        delivery.duplicatesPerMille = 150
        delivery.delaysPerMille = 250
        delivery.swapsPerMille = 150
        delivery.longestDelay = 157 * StoreLog.hour
        let arrivals = part % 2 == 0 ? store.punctual : store.disturbed(by: delivery)
        let rules = EntitlementRules(
            apps: StoreLog.apps.map(\.contractApp), leeway: store.leeway, environment: store.environment)
        var told: [String: [StoreLog.Arrival]] = [:]
        for arrival in arrivals where arrival.notification.originalTransactionId != nil {
            told[arrival.notification.key, default: []].append(arrival)
        }
        try #require(told.count >= Self.perPart)
        var chance = Chance(seed: UInt64(part))
        var seen: [Entitlement.State: Int] = [:]
        var found: [String] = []
        for (key, arrivals) in told.sorted(by: { $0.key < $1.key }).prefix(Self.perPart) {
            let notification = arrivals[0].notification
            let life = Life(
                name: "\(store.simulation.story(of: notification.subscriber)) \(key)", key: key,
                records: try arrivals.map { try store.record(of: $0) }, end: store.end, leeway: store.leeway,
                rules: rules)
            found += try life.disagreements(&chance, &seen)
        }
        #expect(found.isEmpty, "\(found.count): \(found.prefix(5).joined(separator: "\n"))")
        for state: Entitlement.State in [.active, .grace, .billingRetry, .expired, .revoked, .owned] {
            #expect(seen[state, default: 0] > 20, "\(state) was hardly compared: \(seen)")
        }
    }
}
