// The differences between topics and plan, as text and as JSON.

import Contract
import JSON

struct TopicReport {
    let planned: [PlannedTopic]
    let findings: [TopicFinding]

    /// A line for each finding, with columns for topics to create, and a line with totals.
    var lines: [String] {
        if findings.isEmpty { return ["ok      \(planned.count) topics are as they should be"] }
        let width = made.map(\.name.count).max() ?? 0
        let lines = findings.map { finding in
            guard case .missing(let topic) = finding else { return finding.line }
            let gap = String(repeating: " ", count: width - topic.name.count)
            return "\(finding.verb)\(topic.name)\(gap)  \(finding.words)"
        }
        return lines + [total]
    }

    private var made: [PlannedTopic] {
        findings.compactMap { if case .missing(let topic) = $0 { topic } else { nil } }
    }

    private var total: String {
        let partitions = made.reduce(0) { $0 + $1.partitions }
        let replicas = made.reduce(0) { $0 + $1.partitions * $1.replicationFactor }
        let others = findings.count - made.count
        return
            "in all  \(made.count) of \(planned.count) topics to create, with \(partitions) partitions and \(replicas) replicas"
            + (others == 0 ? "" : "; \(others) other findings")
    }

    var json: String {
        var writer = JSONWriter()
        writer.object { report in
            report.member("topics", planned.count)
            report.name("findings")
            report.array { list in for finding in findings { list.object { Self.write(finding, to: &$0) } } }
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private static func write(_ finding: TopicFinding, to json: inout JSONWriter) {
        let topic = finding.topic
        json.member("topic", topic.name)
        json.member("action", String(finding.verb.prefix { $0 != " " }))
        json.member("partitions", topic.partitions)
        json.member("replicationFactor", topic.replicationFactor)
        json.name("settings")
        json.object { settings in
            for setting in topic.settings {
                settings.name(text: setting.name)
                settings.string(setting.value)
            }
        }
        json.member("words", finding.words)
    }
}

extension PlannedTopic {
    /// Its most important settings; `--format json` has all.
    var character: String {
        let values = Dictionary(settings.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        let kept =
            values["cleanup.policy"] == "compact"
            ? "the last record of each key" : "kept " + (values["retention.ms"].map { ShownSetting.time($0) } ?? "")
        return "\(partitions) x \(replicationFactor), \(kept)" + (values["compression.type"].map { ", \($0)" } ?? "")
    }
}

/// Values of settings in readable units.
enum ShownSetting {
    /// Kafka's value, and its meaning if that is not obvious.
    static func words(_ name: String, _ value: String) -> String {
        let meaning: String? =
            if name.hasSuffix(".ms") { time(value) } else if name.hasSuffix(".bytes") { size(value) } else { nil }
        return meaning.map { $0 == value ? value : "\(value) (\($0))" } ?? value
    }

    static func time(_ milliseconds: String) -> String {
        guard let number = Int64(milliseconds) else { return milliseconds }
        if number < 0 { return "for ever" }
        if number == .max { return "without limit" }
        let units: [(name: String, length: Int64)] = [
            ("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000),
        ]
        guard let unit = units.first(where: { number > 0 && number % $0.length == 0 }) else { return milliseconds }
        return "\(number / unit.length) \(unit.name)"
    }

    private static func size(_ bytes: String) -> String {
        guard let number = Int64(bytes) else { return bytes }
        if number < 0 { return "without limit" }
        let units: [(name: String, size: Int64)] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
        guard let unit = units.first(where: { number > 0 && number % $0.size == 0 }) else { return bytes }
        return "\(number / unit.size) \(unit.name)"
    }
}
