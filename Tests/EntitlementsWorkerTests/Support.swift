// The worker over a log in memory, fed with notifications made from few words.

import Contract
import Entitlements
import EntitlementsWorker
import JSON
import Log
import Telemetry
import Testing
import WorkerTestKit

let hour: Int64 = 3_600_000
let day = 24 * hour
/// Midnight of UTC, so many days after the 1st of January 2026. Periods of these tests last 30 days.
func d(_ number: Int64) -> Int64 { 1_767_225_600_000 + number * day }

let partitions: Int32 = 3
let names = Names(prefix: TopicPrefix("shop")!, environment: .production)

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
        names, rules: EntitlementRules(apps: apps, leeway: leeway, environment: .production), partitions: partitions,
        app: "perennial/test", metrics: EntitlementsMetrics(Metrics()))
}

/// A transaction of the monthly product `pro`; of members given twice `more` has its way.
func bought(
    _ id: String, from: Int64, to: Int64?, signed: Int64, token: String? = nil, bundle: String = "com.example.one",
    _ more: [String: String] = [:]
) -> String {
    var members = [
        "transactionId": "\"\(id)\"", "purchaseDate": "\(from)", "signedDate": "\(signed)",
        "bundleId": "\"\(bundle)\"", "productId": "\"pro\"", "type": "\"Auto-Renewable Subscription\"",
        "inAppOwnershipType": "\"PURCHASED\"", "price": "9990", "currency": "\"USD\"",
    ]
    members["expiresDate"] = to.map { "\($0)" }
    members["appAccountToken"] = token.map { "\"\($0)\"" }
    members.merge(more) { _, new in new }
    return object(members)
}

func renewal(_ status: Int, at renewalDate: Int64, signed: Int64, _ more: [String: String] = [:]) -> String {
    object(
        ["autoRenewStatus": "\(status)", "renewalDate": "\(renewalDate)", "signedDate": "\(signed)"]
            .merging(more) { _, new in new })
}

private func object(_ members: [String: String]) -> String {
    "{" + members.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",") + "}"
}

struct Told {
    var type: String
    var subtype: String?
    var signed: Int64
    var transaction: String?
    var info: String?
    var status: Int?

    init(
        _ type: String, _ subtype: String? = nil, at signed: Int64, _ transaction: String? = nil,
        _ info: String? = nil, status: Int? = nil
    ) {
        self.type = type
        self.subtype = subtype
        self.signed = signed
        self.transaction = transaction
        self.info = info
        self.status = status
    }

    var value: [UInt8] {
        Array(
            ("{\"v\":1,\"notificationUUID\":\"u-\(signed)\",\"notificationType\":\"\(type)\","
                + "\"subtype\":\(subtype.map { "\"\($0)\"" } ?? "null"),\"signedDate\":\(signed),"
                + "\"status\":\(status.map { "\($0)" } ?? "null"),\"transaction\":\(transaction ?? "null"),"
                + "\"renewalInfo\":\(info ?? "null")}").utf8)
    }
}

/// One process that works whenever it is fed.
final class Shop {
    let simulation: WorkerSimulation

    init(_ processor: EntitlementsProcessor = makeProcessor(), startingAt start: Int64 = d(0)) throws {
        simulation = try WorkerSimulation(processor, processes: 1, startingAt: start)
        simulation.start(simulation.processes[0])
    }

    static func partition(of key: String) -> Int32 { Partitioner.partition(of: Array(key.utf8), count: partitions) }

    func tell(_ told: Told, of id: String = "1000", received: Int64? = nil) throws {
        try feed(Array(id.utf8), told.value, at: received ?? told.signed)
    }

    func feed(_ key: [UInt8], _ value: [UInt8]?, at timestamp: Int64) throws {
        try simulation.feed(
            partition: Partitioner.partition(of: key, count: partitions), key: key, value: value,
            headers: [RecordHeader("type", "notification"), RecordHeader("schema", "notification/1")],
            timestamp: timestamp)
    }

    func tick(_ instant: Int64) throws { try simulation.tick(at: instant) }

    func work() throws { #expect(try simulation.runToEnd()) }

    func seen(_ id: TopicID) throws -> [WorkerSimulation.Seen] {
        try work()
        return try simulation.read(names.topic(id))
    }

    /// Every value of `entitlements`, in the order of each key.
    func values(_ id: String = "1000") throws -> [JSONValue] {
        try seen(.entitlements).filter { $0.keyText == id }.map { try JSONValue.read($0.value ?? []) }
    }

    /// `kind at`, in days of `d`, with `!` when it is historic.
    func events(_ id: String = "1000") throws -> [String] {
        try seen(.entitlementEvents).filter { $0.keyText == id }.map { seen in
            let event = try JSONValue.read(seen.value ?? [])
            let kind: String = try #require(event["kind"]?.string)
            let at: Int64 = try #require(event["at"]?.integer)
            let isHistoric = event["historic"] == .bool(true)
            return "\(kind) \(days(at))\(isHistoric ? " !" : "")"
        }
    }

    /// The last value of each key of `accounts`, tombstones gone.
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
