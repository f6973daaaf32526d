// The consumption worker over a log in memory, and what it has written.

import Consumption
import ConsumptionWorker
import Contract
import JSON
import Log
import MakeBelieve
import Runtime
import Telemetry
import WorkerTestKit

let minute: Int64 = 60_000
let waitForUsage = hour

func makeProcessor(
    _ names: Names = Shop.names, apps: [String] = ["com.example.one"], policy: RefundPolicy? = nil,
    partitions: Int32 = Shop.partitions, metrics: Metrics = Metrics()
) -> ConsumptionProcessor {
    ConsumptionProcessor(
        names,
        rules: ConsumptionRules(
            apps: apps.map { App(bundleId: $0, appAppleId: 1, entitlements: [], periods: []) }, policy: policy,
            wait: waitForUsage),
        partitions: partitions, app: "perennial/test", metrics: ConsumptionMetrics(metrics, policy: policy))
}

/// A notification of a subscription that is renewed each month.
func request(_ id: String = "q", at instant: Int64, _ more: [String: String] = [:]) -> [UInt8] {
    let transaction = bought("7", from: instant - 3 * day, to: instant + 27 * day, signed: instant, more)
    return Array(
        ("{\"v\":1,\"notificationUUID\":\"\(id)\",\"notificationType\":\"CONSUMPTION_REQUEST\",\"subtype\":null,"
            + "\"signedDate\":\(instant),\"consumptionRequestReason\":\"LEGAL\",\"transaction\":\(transaction),"
            + "\"renewalInfo\":null}").utf8)
}

func usage(of id: String = "1000", _ members: String = #""consented":true,"deliveryStatus":"DELIVERED""#) -> [UInt8] {
    Array("{\"v\":1,\"originalTransactionId\":\"\(id)\",\(members)}".utf8)
}

extension Shop {
    static let usage = 1
    static let attempts = 2

    convenience init(metrics: Metrics = Metrics()) throws { try self.init(makeProcessor(metrics: metrics)) }

    /// After everything that was fed before, and before what is fed next.
    func ask(_ request: [UInt8], of id: String = "1000", at instant: Int64) throws {
        try work()
        try feed(Array(id.utf8), request, at: instant)
        try work()
    }

    /// - Parameter partition: nil: the record goes to the partition of its key.
    func say(
        _ value: [UInt8]?, key: String? = "1000", partition: Int32? = nil, headers: [RecordHeader] = [],
        at instant: Int64 = d(0)
    ) throws {
        try simulation.feed(
            input: Self.usage, partition: partition ?? Self.partition(of: key ?? ""), key: key.map { Array($0.utf8) },
            value: value, headers: headers, timestamp: instant)
    }

    func attempt(_ value: [UInt8], of id: String = "1000", at instant: Int64) throws {
        try simulation.feed(
            input: Self.attempts, partition: Self.partition(of: id), key: Array(id.utf8), value: value,
            headers: [
                RecordHeader("schema", "consumption-attempt/1")
            ], timestamp: instant)
    }

    func records() throws -> [JSONValue] {
        try seen(.consumption).map { try JSONValue.read($0.value ?? []) }
    }

    func kinds(of id: String = "1000") throws -> [String] {
        try seen(.consumption).filter { $0.keyText == id }.map { try JSONValue.read($0.value ?? []).word }
    }

    func letters() throws -> [String] {
        try seen(.deadLetters(.consumption)).compactMap { $0.header("reason") }
    }
}

extension JSONValue {
    var word: String { [self["kind"]?.string, self["detail"]?.string].compactMap(\.self).joined(separator: " ") }
}

func readings(_ metrics: Metrics) -> [String: Int64] {
    var readings: [String: Int64] = [:]
    for line in String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n") {
        let words = line.split(separator: " ")
        guard words.count == 2, let value = Double(words[1]) else { continue }
        readings[String(words[0])] = Int64(value)
    }
    return readings
}
