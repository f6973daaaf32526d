// A customer's story as notifications report it, the worker that answers, and `inspect` on its topics.

import Configuration
import Contract
import Entitlements
import EntitlementsWorker
import Log
import MemoryLog
import Platform
import Settings
import Telemetry
import Testing
import WorkerTestKit

@testable import Cluster
@testable import CommandLine
@testable import Roles
@testable import Tools

/// A day or an instant in UTC.
func at(_ text: String) -> Int64 {
    guard let time = pointInTime(text, now: 0) else { preconditionFailure("\(text) is no time") }
    return time
}

/// A decoded payload: members as JSON, texts quoted with `'`. If a member is given twice, the first one counts.
struct Payload {
    var members: [(name: String, value: String)]

    init(_ members: [(String, String)]) { self.members = members.map { (name: $0.0, value: $0.1) } }

    func with(_ more: (String, String)...) -> Payload {
        Payload(more + members.filter { member in !more.contains { $0.0 == member.name } }.map { ($0.name, $0.value) })
    }

    func json(signed: Int64) -> String {
        "{" + members.map { "'\($0.name)':\($0.value)" }.joined(separator: ",") + ",'signedDate':\(signed)}"
    }
}

/// A transaction of `pro.monthly`.
func bought(_ id: String, _ from: String, to: String?) -> Payload {
    Payload([
        ("transactionId", "'\(id)'"), ("purchaseDate", "\(at(from))"),
        ("expiresDate", to.map { "\(at($0))" } ?? "null"), ("bundleId", "'com.example.app'"),
        ("productId", "'pro.monthly'"), ("type", "'Auto-Renewable Subscription'"),
        ("inAppOwnershipType", "'PURCHASED'"),
        ("appAccountToken", "'7E5D0C1A-0001-4000-8000-000000000001'"), ("price", "9990"), ("currency", "'USD'"),
    ])
}

func renewal(_ status: Int, at date: String) -> Payload {
    Payload([
        ("autoRenewStatus", "\(status)"), ("renewalDate", "\(at(date))"), ("renewalPrice", "9990"),
        ("autoRenewProductId", "'pro.monthly'"),
    ])
}

/// The value of a record of `notifications`.
func told(
    _ type: String, _ subtype: String? = nil, on day: String, _ transaction: Payload? = nil, _ info: Payload? = nil
) -> (signed: Int64, value: String) {
    let signed = at(day)
    let value =
        "{'v':1,'notificationUUID':'\(type)-\(signed)','notificationType':'\(type)','subtype':"
        + (subtype.map { "'\($0)'" } ?? "null")
        + ",'signedDate':\(signed),'receivedDate':\(signed + 400),'source':'push',"
        + "'transaction':\(transaction?.json(signed: signed) ?? "null"),'renewalInfo':\(info?.json(signed: signed) ?? "null")}"
    return (signed, value.replacing("'", with: "\""))
}

/// Topics in memory, with the worker that processes them.
final class InspectDesk {
    static let partitions: Int32 = 3
    static let token = "7e5d0c1a-0001-4000-8000-000000000001"
    static let apps = [
        App(
            bundleId: "com.example.app", appAppleId: 1,
            entitlements: [
                App.Entitlement(
                    name: "premium", productIds: ["pro.monthly", "pro.yearly", "pro.lifetime", "pass.30"]),
                App.Entitlement(name: "archive", productIds: ["pro.yearly"]),
            ], periods: [App.ProductPeriod(productId: "pass.30", period: Period("P30D")!)]),
        App(
            bundleId: "com.example.tv", appAppleId: 2,
            entitlements: [App.Entitlement(name: "premium", productIds: ["tv.monthly"])], periods: []),
    ]

    let names = Names(prefix: TopicPrefix("appstore")!, environment: .production)
    let rules: EntitlementRules
    let simulation: WorkerSimulation

    init(leeway: Int64 = 3_600_000) throws {
        rules = EntitlementRules(apps: Self.apps, leeway: leeway, environment: .production)
        simulation = try WorkerSimulation(
            EntitlementsProcessor(
                names, rules: rules, partitions: Self.partitions, app: "perennial/test",
                metrics: EntitlementsMetrics(Metrics())), processes: 1, startingAt: at("2027-06-01"))
    }

    static func partition(of key: String) -> Int32 { Partitioner.partition(of: Array(key.utf8), count: partitions) }

    func tell(_ id: String, _ notifications: (signed: Int64, value: String)...) throws {
        for notification in notifications {
            try put(id, notification.value, at: notification.signed + 400, partition: Self.partition(of: id))
        }
    }

    func put(
        _ key: String, _ value: String, at time: Int64, partition: Int32, type: String = "notification",
        schema: String = "notification/1"
    ) throws {
        try simulation.feed(
            partition: partition, key: Array(key.utf8), value: Array(value.utf8),
            headers: [RecordHeader("schema", schema)], timestamp: time)
    }

    /// Moves the clock of every partition to this time, and lets the worker process everything.
    func wait(until time: String) throws {
        try simulation.tick(at: at(time))
        try work()
    }

    func work() throws {
        if !simulation.processes[0].isRunning { simulation.start(simulation.processes[0]) }
        try #require(try simulation.runToEnd())
    }

    struct Answer {
        let code: ExitCode
        let lines: String
        let messages: [String]
    }

    /// As the command works, but with another log.
    func inspect(
        _ arguments: [String], rules: EntitlementRules? = nil, partitions: Int32? = nil,
        now: String = "2026-11-22T12:00:20",
        without missing: TopicID? = nil, change: (inout InspectRun) -> Void = { _ in }
    ) throws -> Answer {
        let recorder = Recorder()
        let invocation = Invocation(
            ParsedArguments(arguments, options: Command.inspect.options), of: .inspect, output: recorder.output,
            program: .standard)
        var code = ExitCode.done
        do throws(ToolFault) {
            var run = InspectRun(
                query: try InspectQuery(invocation, now: at(now)), names: names,
                partitions: partitions ?? Self.partitions, rules: rules ?? self.rules, log: simulation.log,
                output: recorder.output, now: at(now))
            for id in [TopicID.notifications, .entitlements, .entitlementEvents, .accounts] where id != missing {
                run.partitionCounts[names.topic(id)] = Self.partitions
            }
            change(&run)
            code = try run.run()
        } catch {
            for line in error.lines { recorder.output.message("perennial inspect: \(line)") }
            code = error.code
        }
        return Answer(code: code, lines: recorder.data, messages: recorder.messages)
    }
}
