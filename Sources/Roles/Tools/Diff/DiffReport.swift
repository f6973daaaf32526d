// The result of a comparison, for people and for programs.

import Churn
import CommandLine
import Comparison
import Contract
import JSON

/// Samples are printed as they are found, so that memory does not grow with their number. One thread.
final class DiffReport {
    /// Lines for the members of one key, and for the rates; json has all.
    private static let limitLines = 100
    private static let columnWidth = 38

    private let query: DiffQuery
    private let names: Names
    private let output: Output
    /// Samples that were printed.
    private(set) var samples = 0

    init(_ query: DiffQuery, _ names: Names, _ output: Output) {
        self.query = query
        self.names = names
        self.output = output
    }

    private func live(_ topic: TopicID) -> String { names.topic(topic) }
    private func shadow(_ topic: TopicID) -> String { query.name.shadow(of: live(topic)) }

    private func lines(_ lines: [String]) { for line in lines { output.data(line) } }

    private func line(_ body: (inout JSONWriter) -> Void) {
        var writer = JSONWriter()
        writer.object(body)
        output.data(String(decoding: writer.bytes, as: UTF8.self))
    }

    // MARK: Samples

    func tell(_ sample: DiffSample) {
        if query.isJSON { line { write(sample, to: &$0) } } else { lines(text(sample) + [""]) }
        samples += 1
    }

    private func text(_ sample: DiffSample) -> [String] {
        let place = "\(sample.topic.name)[\(sample.partition)]  \(shown(sample.key))"
        switch sample.verdict {
        case .different(let differences):
            var lines = ["different   \(place)", Self.row("MEMBER", "SHADOW", "LIVE")]
            for difference in differences.prefix(Self.limitLines) {
                lines.append(
                    Self.row(
                        difference.path.isEmpty ? "(the value)" : shownText(difference.path), shown(difference.here),
                        shown(difference.there)))
            }
            if differences.count > Self.limitLines {
                lines.append("  and \(differences.count - Self.limitLines) more: --format json has them")
            }
            return lines
        case .onlyHere: return ["only here   \(place)", "  shadow  \(shown(sample.here?.value))"]
        case .onlyThere: return ["only there  \(place)", "  live    \(shown(sample.there?.value))"]
        case .same, .newer, .nothing: return []
        }
    }

    /// Side by side; a text that is longer than its column is followed by one space.
    private static func row(_ member: String, _ here: String, _ there: String) -> String {
        trimmed("  \(padded(member, to: 30)) \(padded(here, to: columnWidth)) \(there)")
    }

    private func shown(_ bytes: [UInt8]?) -> String {
        bytes.map { shownText(String(decoding: $0.prefix(1000), as: UTF8.self)) } ?? "-"
    }

    private func write(_ sample: DiffSample, to json: inout JSONWriter) {
        json.member("kind", "sample")
        json.member("verdict", sample.verdict.name)
        json.member("topic", live(sample.topic))
        json.member("shadow", shadow(sample.topic))
        json.member("partition", sample.partition)
        json.member("key", String(decoding: sample.key, as: UTF8.self))
        json.name("members")
        json.array { list in
            guard case .different(let differences) = sample.verdict else { return }
            for difference in differences {
                list.object { member in
                    member.member("member", difference.path)
                    member.name("here")
                    member.value(orNull: difference.here, isWhole: difference.path.isEmpty)
                    member.name("there")
                    member.value(orNull: difference.there, isWhole: difference.path.isEmpty)
                }
            }
        }
        json.name("here")
        json.record(sample.here)
        json.name("there")
        json.record(sample.there)
    }

    // MARK: Counts

    private var rows: [(name: String, counts: DiffCounts)] = []

    func tell(_ counts: DiffCounts, of topic: DiffedTopic) {
        rows.append((live(topic.id), counts))
    }

    /// - Parameter isOnlyTopic: then the total is not printed, because it is the same.
    func end(_ total: DiffCounts, isOnlyTopic: Bool, changes: [RateChange]) {
        if query.isJSON {
            for change in changes { line { write(change, to: &$0) } }
            for (name, counts) in rows {
                line { json in
                    json.member("kind", "topic")
                    json.member("topic", name)
                    json.member("shadow", query.name.shadow(of: name))
                    Self.write(counts, to: &json)
                }
            }
            line { json in
                json.member("kind", "total")
                json.member("worker", query.worker.rawValue)
                json.member("name", query.name.description)
                json.member("environment", names.environment.rawValue)
                json.member("result", total.differ ? "different" : "same")
                Self.write(total, to: &json)
            }
        } else {
            if !changes.isEmpty { lines(text(changes) + [""]) }
            lines(table(total, isOnlyTopic: isOnlyTopic))
        }
        if total.leftOut > 0 {
            output.message(
                "perennial diff: \(total.leftOut) requests are left out: Kafka has deleted some of their records from the live topic"
            )
        }
    }

    private func table(_ total: DiffCounts, isOnlyTopic: Bool) -> [String] {
        let shownRows = rows + (isOnlyTopic ? [] : [(name: "total", counts: total)])
        let width = (shownRows.map(\.name.count) + [5]).max() ?? 5
        func line(_ name: String, _ cells: [String]) -> String {
            padded(name, to: width) + cells.map { "  " + aligned($0, to: 12) }.joined()
        }
        return [line("TOPIC", ["SAME", "DIFFERENT", "ONLY HERE", "ONLY THERE", "NEWER"])]
            + shownRows.map { row in
                let counts = row.counts
                return line(
                    row.name,
                    [counts.same, counts.different, counts.onlyHere, counts.onlyThere, counts.newer].map {
                        grouped(Int64($0))
                    })
            }
    }

    private static func write(_ counts: DiffCounts, to json: inout JSONWriter) {
        json.member("same", counts.same)
        json.member("different", counts.different)
        json.member("onlyHere", counts.onlyHere)
        json.member("onlyThere", counts.onlyThere)
        json.member("newer", counts.newer)
        json.member("leftOut", counts.leftOut)
    }

    // MARK: Rates

    private func text(_ changes: [RateChange]) -> [String] {
        var lines = ["RATES, live -> shadow"]
        for change in changes.prefix(Self.limitLines) {
            let currency = change.currency.map { ", " + ($0.isEmpty ? "no currency" : shownText($0)) } ?? ""
            let (live, shadow) = change.shown
            lines.append("  \(change.title) of \(change.month)\(currency): \(live) -> \(shadow)")
        }
        if changes.count > Self.limitLines {
            lines.append("  and \(changes.count - Self.limitLines) more: --format json has them")
        }
        return lines
    }

    private func write(_ change: RateChange, to json: inout JSONWriter) {
        json.member("kind", "rate")
        json.member("month", change.month)
        json.member("currency", change.currency)
        json.member("rate", change.name)
        json.member("formula", (change.live ?? change.shadow)?.formula)
        for (name, rate) in [("live" as StaticString, change.live), ("shadow", change.shadow)] {
            json.name(name)
            json.object { side in
                side.member("value", json: rate?.ratio.decimal(digits: 6).map { Array($0.utf8) })
                side.member("numerator", orNull: rate?.ratio.numerator)
                side.member("denominator", orNull: rate?.ratio.denominator)
            }
        }
    }
}

extension KeyVerdict {
    /// For programs.
    fileprivate var name: String {
        switch self {
        case .same: "same"
        case .different: "different"
        case .onlyHere: "onlyHere"
        case .onlyThere: "onlyThere"
        case .newer: "newer"
        case .nothing: "nothing"
        }
    }
}

extension JSONWriter {
    /// - Parameter isWhole: a whole value, which may not be JSON.
    fileprivate mutating func value(orNull bytes: [UInt8]?, isWhole: Bool = true) {
        guard let bytes else { return null() }
        if isWhole, !isJSON(bytes) { string(String(decoding: bytes, as: UTF8.self)) } else { json(bytes) }
    }

    fileprivate mutating func record(_ record: JoinedRecord?) {
        guard let record else { return null() }
        object { json in
            json.member("offset", record.offset)
            json.member("timestamp", record.timestamp)
            json.name("value")
            json.value(orNull: record.value)
        }
    }
}

private func isJSON(_ bytes: [UInt8]) -> Bool {
    var limits = JSONLimits()
    limits.bytes = ValueComparison.limitBytes
    return (try? JSONValue.read(bytes, limits: limits)) != nil
}
