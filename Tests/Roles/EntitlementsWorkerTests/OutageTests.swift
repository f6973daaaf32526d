import Contract
import JSON
import MakeBelieve
import Simulation
import Testing
import TruthCheck

/// Ingest is down for a while during renewals, and Apple retries as it does in production.
struct Outage: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let length: Int64
    let leeway: Int64
    /// The process with the clock is down together with ingest: time stands still in the log.
    let stopsClock: Bool

    /// Monthly renewals of the first hours of January are due in the same hours of February.
    static let begin = StoreLog.start + 31 * StoreLog.day + StoreLog.hour / 2

    static let all = [
        Outage(
            testDescription: "two hours, the clock goes on", length: 2 * StoreLog.hour, leeway: StoreLog.hour,
            stopsClock: false),
        Outage(
            testDescription: "two hours, the clock stands still", length: 2 * StoreLog.hour, leeway: StoreLog.hour,
            stopsClock: true),
        Outage(
            testDescription: "shorter than the leeway", length: 50 * StoreLog.minute, leeway: StoreLog.hour,
            stopsClock: true),
        Outage(
            testDescription: "with its first retry shorter than the leeway", length: 50 * StoreLog.minute,
            leeway: 2 * StoreLog.hour, stopsClock: false),
    ]

    func isDown(at instant: Int64) -> Bool { (Self.begin..<Self.begin + length).contains(instant) }

    func delayed(_ arrivals: [StoreLog.Arrival]) -> [StoreLog.Arrival] {
        let delayed = arrivals.map { arrival in
            var late = arrival
            for delay in RetrySchedule.delays(in: .production) where isDown(at: late.at) { late.at += delay }
            return late
        }
        return delayed.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }.map(\.element)
    }
}

/// A period that was followed by the next one, and when its notification was stored.
private struct Renewal {
    let id: String
    let due: Int64
    let heard: Int64

    /// Only of stories in which nothing happens but renewals.
    static func all(in arrivals: [StoreLog.Arrival]) throws -> [Renewal] {
        var due: [String: Int64] = [:]
        var renewals: [Renewal] = []
        for arrival in arrivals.sorted(by: { $0.notification.at < $1.notification.at }) {
            guard let id = arrival.notification.originalTransactionId, let bytes = arrival.notification.transaction
            else { continue }
            let transaction = try JSONValue.read(bytes)
            if arrival.notification.notificationType == "DID_RENEW", let due = due[id] {
                renewals.append(Renewal(id: id, due: due, heard: arrival.at))
            }
            due[id] = transaction["expiresDate"]?.integer
        }
        return renewals
    }
}

@Suite struct `An outage of ours` {
    @Test(arguments: Outage.all)
    func `takes access from nobody before the leeway ends, and is forgotten when Apple has tried again`(
        _ outage: Outage
    ) throws {
        let store = try StoreLog(
            seed: 8, subscribers: 200, arrival: 3 * StoreLog.hour, after: 40 * StoreLog.day, stories: [.steady])
        let calm = try StoreRun(store, leeway: outage.leeway)
        try calm.play(store.punctual, tickEvery: StoreLog.hour)
        let arrivals = outage.delayed(store.punctual)
        let run = try StoreRun(store, leeway: outage.leeway)
        try run.play(arrivals, tickEvery: StoreLog.hour) { outage.stopsClock && outage.isDown(at: $0) }

        #expect(try Self.withoutTheWay(run.last(.entitlements)) == Self.withoutTheWay(calm.last(.entitlements)))
        #expect(try Self.withoutTheWay(run.last(.accounts)) == Self.withoutTheWay(calm.last(.accounts)))
        let values = try run.values(.entitlements)
        let events = try run.values(.entitlementEvents)
        #expect(ChainCheck.wrong(values: values, events: events).isEmpty)

        func hasAccess(_ id: String, at instant: Int64) -> Bool {
            let told = values[id]?.last { ($0["asOf"]?.integer ?? .max) <= instant }
            return told?["access"]?.bool == true && instant < told?["accessUntil"]?.integer ?? .max
        }
        func expiries(_ events: [String: [JSONValue]]) -> Set<String> {
            Set(
                events.flatMap { id, events in
                    events.filter { $0["kind"] == .string("expired") }.map { "\(id) \($0["at"]?.integer ?? 0)" }
                })
        }
        var late: Set<String> = []
        let renewals = try Renewal.all(in: arrivals)
        for renewal in renewals {
            let end = renewal.due + outage.leeway
            #expect(hasAccess(renewal.id, at: min(end, renewal.heard) - 1), "\(renewal)")
            #expect(hasAccess(renewal.id, at: renewal.heard), "\(renewal)")
            guard renewal.heard >= end else { continue }
            // To the millisecond, whenever the clock reached that time.
            #expect(!hasAccess(renewal.id, at: end) && !hasAccess(renewal.id, at: renewal.heard - 1), "\(renewal)")
            late.insert("\(renewal.id) \(end)")
        }
        // Only these are reported as expired.
        #expect(try expiries(events).subtracting(expiries(calm.values(.entitlementEvents))) == late)
        #expect(store.punctual.count { outage.isDown(at: $0.at) } > 10, "there was little to miss")
        #expect(late.isEmpty == (outage.leeway > outage.length + StoreLog.hour), "\(late.count) of \(renewals.count)")
    }

    /// Members that depend on the history of an answer.
    private static func withoutTheWay(_ values: [String: JSONValue]) -> [String: JSONValue] {
        let ofTheWay = ["sequence", "asOf", "cause"]
        return values.mapValues { value in
            .object(JSONObject((value.object?.members ?? []).filter { !ofTheWay.contains($0.name) }))
        }
    }
}

@Suite struct `History that is told at once` {
    @Test func `is historic all of it, but for what happened in the last day`() throws {
        let store = try StoreLog(
            seed: 9, subscribers: 120, arrival: 120 * StoreLog.day, after: 60 * StoreLog.day)
        // Fetched two days after the last notification.
        let now = store.end + 2 * StoreLog.day
        let run = try StoreRun(store)
        try run.play(store.punctual.map { StoreLog.Arrival(at: now, notification: $0.notification) })
        let truth = try TruthCheck(lines: store.truth, leeway: store.leeway)
        let events = try run.values(.entitlementEvents)
        #expect(try ChainCheck.wrong(values: run.values(.entitlements), events: events).isEmpty)
        let wrong = try truth.wrong(
            entitlements: run.last(.entitlements), accounts: run.last(.accounts), clock: now)
        #expect(wrong.isEmpty, "\(wrong.prefix(5))")

        var news = 0
        for (id, events) in events {
            for event in events {
                let at = try #require(event["at"]?.integer)
                let isOld = at < now - StoreLog.day
                #expect(event["historic"] == .bool(isOld), "\(event)")
                if isOld { continue }
                news += 1
                // By time alone, because Apple's last notification was two days ago.
                #expect(truth.edges(of: id, from: now - StoreLog.day, to: now) > 0, "\(event)")
            }
        }
        let all = events.values.reduce(0) { $0 + $1.count }
        #expect(news < all / 20, "\(news) of \(all) events are no history")
        #expect(truth.moving(until: now) < truth.subscriptionCount / 5)
    }
}
