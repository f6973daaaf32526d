// The worker over a log in memory, fed with notifications made from short texts.

import Contract
import Entitlements
import EntitlementsWorker
import JSON
import MakeBelieve
import Telemetry
import Testing
import WorkerTestKit

let apps = [
    App(
        bundleId: "com.example.one", appAppleId: 1,
        entitlements: [App.Entitlement(name: "premium", productIds: ["pro", "plus"])],
        periods: [App.ProductPeriod(productId: "season", period: Period("P1M")!)]),
    App(
        bundleId: "com.example.two", appAppleId: 2,
        entitlements: [App.Entitlement(name: "premium", productIds: ["pro"])], periods: []),
]

func makeProcessor(apps: [App] = apps, leeway: Int64 = hour) -> EntitlementsProcessor {
    EntitlementsProcessor(
        Shop.names, rules: EntitlementRules(apps: apps, leeway: leeway, environment: .production),
        partitions: Shop.partitions,
        app: "perennial/test", metrics: EntitlementsMetrics(Metrics()))
}

extension Shop {
    convenience init() throws { try self.init(makeProcessor()) }

    /// Every value of `entitlements`, in the order of each key.
    func values(_ id: String = "1000") throws -> [JSONValue] {
        try seen(.entitlements).filter { $0.keyText == id }.map { try JSONValue.read($0.value ?? []) }
    }

    /// `kind at`, in days of `d`, with `!` if it is historic.
    func events(_ id: String = "1000") throws -> [String] {
        try seen(.entitlementEvents).filter { $0.keyText == id }.map { seen in
            let event = try JSONValue.read(seen.value ?? [])
            let kind: String = try #require(event["kind"]?.string)
            let at: Int64 = try #require(event["at"]?.integer)
            let isHistoric = event["historic"] == .bool(true)
            return "\(kind) \(days(at))\(isHistoric ? " !" : "")"
        }
    }

    /// The last value of each key of `accounts`, without tombstones.
    func accounts() throws -> [String: JSONValue] {
        var last: [String: JSONValue] = [:]
        for seen in try seen(.accounts) {
            last[seen.keyText] = try seen.value.map { try JSONValue.read($0) }
        }
        return last
    }
}

func days(_ instant: Int64) -> String {
    let (days, rest) = (instant - d(0)).quotientAndRemainder(dividingBy: day)
    if rest == 0 { return "\(days)d" }
    return rest % hour == 0 ? "\(days)d\(rest / hour)h" : "\(days)d+\(rest)ms"
}

extension JSONValue {
    /// State, reason and access in one line, as `active until 30d`.
    var words: String {
        let state = [self["state"]?.string, self["reason"]?.string].compactMap { $0 }.joined(separator: " ")
        let end = self["accessUntil"]?.integer.map(days) ?? "ever"
        return "\(state) \(self["access"]?.bool == true ? "until" : "since") \(end)"
    }
}
