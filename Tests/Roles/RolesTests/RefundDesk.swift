// Apple's refund requests, the worker that answers them, and `inspect` on its topics.

import Configuration
import Consumption
import ConsumptionWorker
import Contract
import Entitlements
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

/// Topics in memory, with the worker that processes them.
final class RefundDesk {
    static let partitions: Int32 = 3
    static let policy = #"""
        {"version":"2026-11","rules":[
          {"name":"legal","when":{"reason":"LEGAL"},"answer":{"withhold":true}},
          {"name":"used up coins","when":{"productId":"coins.*","consumptionPercentage":{"from":50000}},
           "answer":{"refundPreference":"DECLINE"}},
          {"name":"rest","when":{},"answer":{"refundPreference":"GRANT_FULL"}}],
         "shadow":{"version":"2026-12","rules":[
          {"name":"strict","when":{},"answer":{"refundPreference":"DECLINE"}}]}}
        """#

    let names = Names(prefix: TopicPrefix("appstore")!, environment: .production)
    let simulation: WorkerSimulation

    init(policy: String = policy) throws {
        let read = try RefundPolicy.read(Array(policy.utf8))
        let apps = [App(bundleId: "com.example.app", appAppleId: 1, entitlements: [], periods: [])]
        simulation = try WorkerSimulation(
            ConsumptionProcessor(
                names, rules: ConsumptionRules(apps: apps, policy: read, wait: 3_600_000),
                partitions: Self.partitions, app: "perennial/test",
                metrics: ConsumptionMetrics(Metrics(), policy: read)), processes: 1, startingAt: at("2027-06-01"))
    }

    static func partition(of key: String) -> Int32 { Partitioner.partition(of: Array(key.utf8), count: partitions) }

    private func feed(_ input: Int, _ key: String, _ value: String, at time: Int64, _ type: String) throws {
        try simulation.feed(
            input: input, partition: Self.partition(of: key), key: Array(key.utf8),
            value: Array(value.replacing("'", with: "\"").utf8),
            headers: [RecordHeader("schema", "\(type)/1")], timestamp: time)
        try work()
    }

    /// A consumable that was bought two days before.
    func tell(
        _ type: String, _ uuid: String, of id: String, on time: String, reason: String? = nil,
        _ more: (String, String)...
    ) throws {
        let signed = at(time)
        var transaction = Payload([
            ("transactionId", "'\(id)'"), ("purchaseDate", "\(signed - 2 * 86_400_000)"),
            ("bundleId", "'com.example.app'"), ("productId", "'coins.100'"), ("type", "'Consumable'"),
            ("inAppOwnershipType", "'PURCHASED'"), ("price", "9990"), ("currency", "'USD'"), ("storefront", "'USA'"),
        ])
        for member in more { transaction = transaction.with(member) }
        let value =
            "{'v':1,'notificationUUID':'\(uuid)','notificationType':'\(type)','subtype':null,'signedDate':\(signed),"
            + "'receivedDate':\(signed + 400),'source':'push','consumptionRequestReason':"
            + (reason.map { "'\($0)'" } ?? "null")
            + ",'transaction':\(transaction.json(signed: signed)),'renewalInfo':null}"
        try feed(0, id, value, at: signed + 400, "notification")
    }

    func use(_ members: String, of id: String, on time: String) throws {
        try feed(1, id, "{'v':1,'originalTransactionId':'\(id)',\(members)}", at: at(time), "usage")
    }

    func attempt(_ number: Int64, _ uuid: String, of id: String, on time: String, _ status: Int64?, _ more: String = "")
        throws
    {
        let retry = more.isEmpty ? "'errorCode':null,'retryAt':null" : more
        try feed(
            2, id,
            "{'v':1,'id':'\(uuid)','attempt':\(number),'at':\(at(time)),'httpStatus':"
                + "\(status.map { "\($0)" } ?? "null"),\(retry)}", at: at(time), "consumption-attempt")
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

    private func call(
        _ arguments: [String], _ options: [CommandOption], _ name: CommandName, topic isThere: Bool,
        _ run: (Invocation, [Int32]?) throws(ToolFault) -> ExitCode
    ) -> Answer {
        let recorder = Recorder()
        let invocation = Invocation(
            ParsedArguments(arguments, options: options), of: name, output: recorder.output, program: .standard)
        var code = ExitCode.done
        do throws(ToolFault) {
            code = try run(invocation, isThere ? Array(0..<Self.partitions) : nil)
        } catch {
            for line in error.lines { recorder.output.message("perennial: \(line)") }
            code = error.code
        }
        return Answer(code: code, lines: recorder.data, messages: recorder.messages)
    }

    /// As the command works, but with another log.
    func inspect(_ arguments: [String], now: String = "2026-11-22T12:00:20", topic isThere: Bool = true) -> Answer {
        call(["refunds"] + arguments, Command.inspect.options, .inspect, topic: isThere) {
            invocation, partitions throws(ToolFault) in
            var run = InspectRun(
                query: try InspectQuery(invocation, now: at(now)), names: names, partitions: Self.partitions,
                rules: EntitlementRules(apps: [], leeway: 0, environment: .production), log: simulation.log,
                output: invocation.output, now: at(now))
            if let partitions { run.partitionCounts[names.topic(.consumption)] = Int32(partitions.count) }
            return try run.run()
        }
    }

    func whatIf(_ arguments: [String], now: String = "2026-11-22T12:00:20", topic isThere: Bool = true) -> Answer {
        call(["what-if"] + arguments, Command.whatIfOptions, .consumption, topic: isThere) {
            invocation, partitions throws(ToolFault) in
            try WhatIfRun(
                query: try WhatIfQuery(invocation, now: at(now)), names: names, partitions: partitions,
                log: simulation.log, output: invocation.output
            ).run()
        }
    }
}

extension RefundDesk {
    static func uuid(_ number: Int) -> String { "7e5d0c1a-0001-4000-8000-00000000000\(number)" }

    /// Requests in all states, of several purchases.
    func tellAll() throws {
        // Sent at the third attempt; declined by Apple.
        try use(
            "'consented':true,'consentedAt':\(at("2026-11-01")),'deliveryStatus':'DELIVERED','consumptionPercentage':62500",
            of: "2000000000000001", on: "2026-11-18")
        try tell(
            "CONSUMPTION_REQUEST", Self.uuid(1), of: "2000000000000001", on: "2026-11-20T10:00",
            reason: "UNINTENDED_PURCHASE")
        try attempt(
            1, Self.uuid(1), of: "2000000000000001", on: "2026-11-20T10:00:02", nil,
            "'errorCode':null,'retryAt':\(at("2026-11-20T10:00:03"))")
        try attempt(
            2, Self.uuid(1), of: "2000000000000001", on: "2026-11-20T10:00:04", 429,
            "'errorCode':4290000,'retryAt':\(at("2026-11-20T10:15"))")
        try attempt(3, Self.uuid(1), of: "2000000000000001", on: "2026-11-20T10:15:01", 202)
        try tell("REFUND_DECLINED", "d-1", of: "2000000000000001", on: "2026-11-21T09:00")
        // Failed after an attempt without an answer.
        try use(
            "'consented':true,'deliveryStatus':'DELIVERED','consumptionPercentage':100000", of: "2000000000000006",
            on: "2026-11-18")
        try tell("CONSUMPTION_REQUEST", Self.uuid(6), of: "2000000000000006", on: "2026-11-20T10:00")
        try attempt(
            1, Self.uuid(6), of: "2000000000000006", on: "2026-11-20T10:00:02", nil,
            "'errorCode':null,'retryAt':\(at("2026-11-20T10:00:03"))")
        try attempt(
            2, Self.uuid(6), of: "2000000000000006", on: "2026-11-20T10:00:04", 400,
            "'errorCode':4000000,'retryAt':null")
        // Withheld by the policy, then refunded.
        try use("'consented':true,'deliveryStatus':'DELIVERED'", of: "2000000000000002", on: "2026-11-18")
        try use("'consumptionPercentage':0", of: "2000000000000002", on: "2026-11-18T00:01")
        try tell(
            "CONSUMPTION_REQUEST", Self.uuid(2), of: "2000000000000002", on: "2026-11-20T11:00", reason: "LEGAL",
            ("price", "600000"), ("currency", "'JPY'"), ("storefront", "'JPN'"))
        try tell(
            "REFUND", "d-2", of: "2000000000000002", on: "2026-11-21T11:00",
            ("price", "600000"), ("currency", "'JPY'"), ("revocationDate", "\(at("2026-11-21T11:00"))"))
        // Usage says nothing about it.
        try tell("CONSUMPTION_REQUEST", Self.uuid(3), of: "2000000000000003", on: "2026-11-22T09:00")
        // A subscription: decided and not sent; its second request is family-shared.
        try use("'consented':true,'deliveryStatus':'DELIVERED'", of: "2000000000000004", on: "2026-11-18")
        try tell(
            "CONSUMPTION_REQUEST", Self.uuid(4), of: "2000000000000004", on: "2026-11-22T11:00", reason: "OTHER",
            ("transactionId", "'2000000000000044'"), ("type", "'Auto-Renewable Subscription'"),
            ("productId", "'pro.monthly'"), ("offerType", "1"), ("offerDiscountType", "'FREE_TRIAL'"))
        try tell(
            "CONSUMPTION_REQUEST", Self.uuid(5), of: "2000000000000004", on: "2026-11-22T11:30",
            ("transactionId", "'2000000000000045'"), ("inAppOwnershipType", "'FAMILY_SHARED'"))
    }
}
