// What the truth of the simulated store requires of the worker's records, whoever wrote and read them.

public import JSON

/// Judges by the lines that the simulator writes about its truth, and uses no code of the worker.
public struct TruthCheck: Sendable {
    struct Interval {
        let from: Int64
        /// The first instant after it; nil: it does not end.
        let until: Int64?
        /// See `AccessInterval`.
        let rule: String
        let productId: String
        let transactionId: String
        let isRevoked: Bool

        func contains(_ instant: Int64) -> Bool { from <= instant && until.map { instant < $0 } ?? true }
    }

    struct Deed {
        let at: Int64
        let story: String
        let event: String
    }

    struct Subscription {
        let final: JSONValue
        var intervals: [Interval]
        var deeds: [Deed]
    }

    private static let day: Int64 = 86_400_000

    public struct Unreadable: Error {
        public let line: String
    }

    private(set) var subscriptions: [String: Subscription] = [:]
    /// The end of the simulation.
    public private(set) var end: Int64 = 0
    private let leeway: Int64

    /// - Parameters:
    ///   - lines: see `SubscriberTruth`.
    ///   - leeway: the worker's leeway, in milliseconds.
    public init(lines: some Sequence<[UInt8]>, leeway: Int64) throws {
        self.leeway = leeway
        var intervals: [String: [Interval]] = [:]
        var deeds: [String: [Deed]] = [:]
        for line in lines {
            let json = try JSONValue.read(line)
            let unreadable = Unreadable(line: String(decoding: line, as: UTF8.self))
            guard let kind = json["kind"]?.string else { throw unreadable }
            guard let id = json["originalTransactionId"]?.string else { continue }
            switch kind {
            case "access":
                guard let interval = Interval(json) else { throw unreadable }
                intervals[id, default: []].append(interval)
            case "did":
                guard let deed = Deed(json) else { throw unreadable }
                deeds[id, default: []].append(deed)
            case "final":
                subscriptions[id] = Subscription(final: json, intervals: [], deeds: [])
                end = json["asOf"]?.integer ?? 0
            default: break
            }
        }
        for (id, intervals) in intervals { subscriptions[id]?.intervals = intervals }
        for (id, deeds) in deeds { subscriptions[id]?.deeds = deeds }
    }

    public var subscriptionCount: Int { subscriptions.count }

    // MARK: At the end

    /// What is wrong with final records; empty if nothing is.
    /// - Parameters:
    ///   - entitlements: the last value of each key.
    ///   - accounts: the last value of each key, without keys that end with a tombstone.
    ///   - clock: the partitions' clocks, known to within `margin`; not before the end of the simulation. Of subscriptions that
    ///     time changes between the two only access is judged.
    public func wrong(entitlements: [String: JSONValue], accounts: [String: JSONValue], clock: Int64, margin: Int64 = 0)
        -> [String]
    {
        var wrong: [String] = []
        for id in entitlements.keys.sorted() where subscriptions[id] == nil { wrong.append("\(id): nobody bought it") }
        for (id, subscription) in subscriptions.sorted(by: { $0.key < $1.key }) {
            guard let record = entitlements[id] else {
                wrong.append("\(id): it has no record")
                continue
            }
            if moves(subscription, until: clock + margin) {
                let expected = hasAccess(id, at: clock, margin: margin)
                if let expected, record["access"] != .bool(expected) {
                    wrong.append("\(id): access is not \(expected)")
                }
                continue
            }
            wrong += Self.differences(of: record, from: subscription.final).map { "\(id): \($0)" }
            wrong += accessFaults(of: record, subscription).map { "\(id): \($0)" }
            wrong += spanFaults(of: record, subscription).map { "\(id): \($0)" }
        }
        return wrong + accountFaults(accounts, entitlements)
    }

    /// Subscriptions that time alone changes between the simulation's end and `clock`.
    public func moving(until clock: Int64) -> Int { subscriptions.values.count { moves($0, until: clock) } }

    /// How many changes by time alone the truth has there; the end of the leeway counts as one.
    public func edges(of id: String, from: Int64, to: Int64) -> Int {
        (subscriptions[id].map(edges) ?? []).count { from <= $0 && $0 <= to }
    }

    private func edges(of subscription: Subscription) -> [Int64] {
        let edges = subscription.intervals.flatMap { [$0.from, $0.until, $0.until.map { $0 + leeway }] }.compactMap(
            \.self)
        guard subscription.final["state"] == .string("billing_retry") else { return edges }
        // And when Apple stops retrying: after 60 days, for commitments after 90.
        return edges + subscription.intervals.compactMap(\.until).flatMap { [$0 + 60 * Self.day, $0 + 90 * Self.day] }
    }

    func moves(_ subscription: Subscription, until clock: Int64) -> Bool {
        edges(of: subscription).contains { end < $0 && $0 <= clock }
    }

    private static func differences(of record: JSONValue, from truth: JSONValue) -> [String] {
        var members = [
            "bundleId", "ownership", "appAccountToken", "productId", "autoRenew", "billingPlan", "entitlements",
            "offer",
            "price", "renewsAt", "renewalPrice", "graceUntil", "retry",
        ]
        // Nothing is known about what was moved elsewhere.
        if truth["state"] != .null { members += ["state", "reason"] }
        var pairs = members.map { ($0, truth[$0] ?? .null, record[$0] ?? .null) }
        pairs.append(
            ("commitment.period", truth["commitmentPeriod"] ?? .null, record["commitment"]?["period"] ?? .null))
        return pairs.compactMap { name, expected, found in
            expected == found ? nil : "\(name) is \(found) and not \(expected)"
        }
    }

    private func accessFaults(of record: JSONValue, _ subscription: Subscription) -> [String] {
        guard subscription.final["state"] != .null else { return [] }
        let until = record["accessUntil"]?.integer
        guard record["access"]?.bool == true else {
            if subscription.intervals.contains(where: { $0.contains(end) }) { return ["access is missing"] }
            // A period that was renewed before it begins gives no access yet.
            let last = subscription.intervals.filter { $0.from <= end }.compactMap(\.until).max()
            return until == last ? [] : ["access ended at \(until ?? -1) and not at \(last ?? -1)"]
        }
        // Without interruption from now on.
        var reached: Int64? = end
        if let last = subscription.intervals.last, !last.contains(end), isInLeeway(subscription, last.until) {
            reached = last.until
        } else {
            guard subscription.intervals.contains(where: { $0.contains(end) }) else { return ["access is too much"] }
            while let instant = reached, let next = subscription.intervals.first(where: { $0.contains(instant) }) {
                reached = next.until
            }
        }
        let expected = reached.map { isExpectingRenewal(subscription) ? $0 + leeway : $0 }
        return until == expected ? [] : ["access ends at \(until ?? -1) and not at \(expected ?? -1)"]
    }

    private func isInLeeway(_ subscription: Subscription, _ until: Int64?) -> Bool {
        isExpectingRenewal(subscription) && until.map { $0 <= end && end < $0 + leeway } ?? false
    }

    /// Only a subscription that is to be renewed and has no known failure gets leeway.
    private func isExpectingRenewal(_ subscription: Subscription) -> Bool {
        // After an earlier failure only the recovery may come later.
        let isFailing = subscription.deeds.last?.event == "payment_failed"
        return !isFailing && subscription.final["state"] == .string("active")
            && subscription.final["autoRenew"] == .bool(true)
    }

    private func accountFaults(_ accounts: [String: JSONValue], _ entitlements: [String: JSONValue]) -> [String] {
        var expected: [String: JSONValue] = [:]
        for (id, subscription) in subscriptions {
            guard let token = subscription.final["appAccountToken"]?.string, let record = entitlements[id]?.object
            else {
                continue
            }
            // The record of an account is that of the subscription without its cause.
            expected["\(token)|\(id)"] = .object(JSONObject(record.members.filter { $0.name != "cause" }))
        }
        let missing = expected.keys.filter { accounts[$0] == nil }.map { "account \($0) has no record" }
        let excess = accounts.keys.filter { expected[$0] == nil }.map { "account \($0) has a record" }
        let other = expected.filter { accounts[$0.key] != nil && accounts[$0.key] != $0.value }.keys.map {
            "account \($0) has another record than its subscription"
        }
        return (missing + excess + other).sorted()
    }

    // MARK: At every time

    /// Whether the truth gives access then; nil: so near to a change that a pending notification may decide, or in the leeway.
    func hasAccess(_ id: String, at instant: Int64, margin: Int64) -> Bool? {
        guard let subscription = subscriptions[id], subscription.final["state"] != .null else { return nil }
        let intervals = subscription.intervals
        let edges = intervals.flatMap { [$0.from, $0.until] }.compactMap { $0 }
        if edges.contains(where: { abs($0 - instant) < margin }) { return nil }
        if intervals.contains(where: { $0.contains(instant) }) { return true }
        return edges.contains { (0..<leeway + margin).contains(instant - $0) } ? nil : false
    }

    /// Judges what readers saw at all times, for a worker that got every notification at once and in order, in production.
    ///
    /// Tests instants shortly before and after every edge of an interval, and in the middle of it.
    /// - Parameter values: every value of each key, in order.
    public func wrongMoments(of values: [String: [JSONValue]]) -> [String] {
        // Apple sends a notification within 40 seconds.
        let margin: Int64 = 60_000
        var wrong: [String] = []
        for (id, subscription) in subscriptions.sorted(by: { $0.key < $1.key }) {
            guard subscription.final["state"] != .null else { continue }
            let values = values[id] ?? []
            var moments: [Int64] = []
            for interval in subscription.intervals {
                let until = interval.until ?? interval.from + 2 * margin
                for edge in [interval.from, until, until + leeway] {
                    moments += [edge - 2 * margin, edge + 2 * margin]
                }
                moments.append(interval.from + (until - interval.from) / 2)
            }
            for moment in moments where moment <= end {
                guard let expected = hasAccess(id, at: moment, margin: margin) else { continue }
                let told = values.last { ($0["asOf"]?.integer ?? .max) <= moment }
                let until = told?["accessUntil"]?.integer ?? .max
                let found = told?["access"]?.bool == true && moment < until
                if found != expected { wrong.append("\(id): access at \(moment) is \(found)") }
            }
        }
        return wrong
    }
}

extension TruthCheck.Interval {
    fileprivate init?(_ line: JSONValue) {
        guard let from = line["from"]?.integer, let rule = line["rule"]?.string,
            let productId = line["productId"]?.string, let transactionId = line["transactionId"]?.string
        else { return nil }
        self.init(
            from: from, until: line["until"]?.integer, rule: rule, productId: productId, transactionId: transactionId,
            isRevoked: line["revokedAt"]?.integer != nil)
    }
}

extension TruthCheck.Deed {
    fileprivate init?(_ line: JSONValue) {
        guard let at = line["at"]?.integer, let story = line["story"]?.string, let event = line["event"]?.string else {
            return nil
        }
        self.init(at: at, story: story, event: event)
    }
}
