// What the truth of the simulated store requires of events.

public import JSON

extension TruthCheck {
    /// Judges the events of a store whose notifications all arrived at once and in order: for each subscription every kind, as
    /// often and at the times that its deeds require. The last minute is not judged, because its notifications may not have come.
    /// - Parameter events: every value of `entitlement-events` of each key, in order.
    public func wrongEvents(_ events: [String: [JSONValue]]) -> [String] {
        var wrong: [String] = []
        for (id, subscription) in subscriptions.sorted(by: { $0.key < $1.key }) {
            var told = (events[id] ?? []).map { ($0["kind"]?.string ?? "", $0["at"]?.integer ?? 0) }
            let name = "\(id) (\(subscription.deeds.first?.story ?? "no deeds"))"
            let judged = judgedUntil(subscription)
            for expected in DeedEvents(subscription).events where expected.at.lowerBound < judged {
                if let place = told.firstIndex(where: { $0 == expected.kind && expected.at.contains($1) }) {
                    told.remove(at: place)
                } else if expected.at.upperBound < judged {
                    wrong.append("\(name): there is no event \(expected.kind) at \(expected.at)")
                }
            }
            if subscription.deeds.first?.event == "bought" { told.removeAll { $0.0 == "offer_redeemed" } }
            wrong += told.filter { $0.1 < judged }.map {
                "\(name): there is an event \($0.0) at \($0.1), but nothing was done then"
            }
        }
        return wrong
    }

    private func judgedUntil(_ subscription: Subscription) -> Int64 {
        // Nothing is known about what was moved elsewhere.
        let moved = subscription.deeds.first { $0.event == "migrated" }?.at ?? .max
        return min(end - DeedEvents.wordTakes, moved)
    }

    /// Judges the events of a store whose notifications may have come late, twice or in another order. It checks the net change:
    /// that there is one beginning, which comes first, that refunds have their dates, and that the last event is that of the end.
    /// - Parameter clock: the partitions' clocks, known to within `margin`.
    public func wrongOutcomes(_ events: [String: [JSONValue]], clock: Int64, margin: Int64 = 0) -> [String] {
        var wrong: [String] = []
        for (id, subscription) in subscriptions.sorted(by: { $0.key < $1.key }) {
            let events = events[id] ?? []
            let kinds = events.map { $0["kind"]?.string ?? "" }
            let beginnings = kinds.count { $0 == "started" || $0 == "purchased" }
            if beginnings != 1 || !["started", "purchased"].contains(kinds.first) {
                wrong.append("\(id): there are \(beginnings) events of a beginning: \(kinds)")
            }
            guard let state = subscription.final["state"]?.string, !moves(subscription, until: clock + margin) else {
                continue
            }
            let leading = events.filter { Self.outcomes[$0["kind"]?.string ?? ""] != nil }
            guard let last = leading.last, let kind = last["kind"]?.string, var outcomes = Self.outcomes[kind] else {
                wrong.append("\(id): no event reports how it ended")
                continue
            }
            // One that has ended may still be extended.
            if kind == "extended", leading.dropLast().last?["kind"] == .string("expired") { outcomes.insert("expired") }
            if !outcomes.contains(state) { wrong.append("\(id): ends with \(kind), but is \(state)") }
            guard state == "revoked" else { continue }
            let revoked = subscription.deeds.last { ["refunded", "family_access_revoked"].contains($0.event) }
            if last["at"]?.integer != revoked?.at { wrong.append("\(id): \(kind) at \(last["at"] ?? .null)") }
        }
        return wrong
    }

    /// The states that events lead to, for those events that lead to one.
    private static let outcomes: [String: Set<String>] = [
        "started": ["active"], "purchased": ["owned", "active"], "renewed": ["active"], "recovered": ["active"],
        "resubscribed": ["active"], "plan_changed": ["active"], "extended": ["active"],
        "refund_reversed": ["active", "owned"],
        "entered_grace": ["grace"],
        "entered_billing_retry": ["billing_retry"], "expired": ["expired"], "refunded": ["revoked"],
        "family_revoked": ["revoked"], "superseded": ["superseded"],
    ]
}
