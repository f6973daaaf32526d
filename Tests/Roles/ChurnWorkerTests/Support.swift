// The churn worker over a log in memory, and what it has written.

import ChurnWorker
import Contract
import JSON
import MakeBelieve
import NotificationWorker
import PlainChurn
import Runtime
import Telemetry
import WorkerTestKit
import Zone

func makeProcessor(
    _ names: Names = Shop.names, zone: Zone = .utc, partitions: Int32 = Shop.partitions, metrics: Metrics = Metrics(),
    shadow: Shadow? = nil
) -> ChurnProcessor {
    ChurnProcessor(
        names, zone: zone, partitions: partitions, app: "perennial/test", metrics: ChurnMetrics(metrics), shadow: shadow
    )
}

/// A purchase of the first month. It renews only if the test says so.
func start(_ id: String = "1", at instant: Int64 = d(0), _ more: [String: String] = [:]) -> Told {
    Told(
        "SUBSCRIBED", "INITIAL_BUY", at: instant,
        bought(
            id, from: instant, to: instant + 30 * day, signed: instant, ["storefront": "\"USA\""].merging(more) { $1 }))
}

/// The month with this number, from 1, paid again.
func renewal(of number: Int64, id: String? = nil, _ more: [String: String] = [:]) -> Told {
    let begin = d(30 * (number - 1))
    return Told(
        "DID_RENEW", at: begin,
        bought(
            id ?? "\(number)", from: begin, to: begin + 30 * day, signed: begin,
            ["storefront": "\"USA\""].merging(more) { $1 }))
}

extension Shop {
    convenience init() throws { try self.init(makeProcessor()) }

    static func cell(_ day: String, _ product: String = "pro", of id: String = "1000") -> String {
        "\(partition(of: id))|\(day)|com.example.one|\(product)|BILLED_UPFRONT|USA|USD"
    }

    /// The cells as a reader of the compacted topic sees them.
    func cells() throws -> [String: JSONValue] {
        var last: [String: JSONValue] = [:]
        for seen in try seen(.churnCells) { last[seen.keyText] = try seen.value.map { try JSONValue.read($0) } }
        return last
    }

    func letters() throws -> [String] {
        try seen(.deadLetters(.churn)).compactMap { $0.header("reason") }
    }

    /// The errors that the plain metrics find.
    func wrong() throws -> [String] { try judge(zone: "Etc/UTC") { try seen($0) }.wrong() }
}

func judge(zone: String, _ read: (TopicID) throws -> [WorkerSimulation.Seen]) throws -> PlainJudge {
    var judge = PlainJudge(zone: zone)
    for seen in try read(.notifications) {
        judge.hear(partition: seen.partition, timestamp: seen.timestamp, key: seen.key, value: seen.value)
    }
    for seen in try read(.churnCells) { judge.see(cell: seen.key ?? [], seen.value) }
    for seen in try read(.churnEvents) { judge.see(event: seen.value ?? []) }
    return judge
}

extension JSONValue {
    /// The record after which a cell last changed.
    var mark: [Int64?] { [self["asOf"]?.integer, self["offset"]?.integer] }

    /// The cells without the members that depend on their history.
    var sums: [JSONValue?] { [self["counts"], self["money"]] }
}

/// The current values of the gauges, series by series.
func readings(_ metrics: Metrics) -> [String: Int64] {
    var readings: [String: Int64] = [:]
    for line in String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n") {
        let words = line.split(separator: " ")
        guard words.count == 2, let value = Double(words[1]) else { continue }
        readings[String(words[0])] = Int64(value)
    }
    return readings
}
