// `offsets show`: a group as people and programs read it. Pure.

import CommandLine
import JSON
import Kafka
import Log
import Telemetry

struct GroupReport {
    private let group: GroupStanding
    private let now: Int64
    /// The sum over partitions with a known lag; nil: no partition has one.
    let lag: Lag?
    /// Milliseconds; nil: no record waits, or its timestamp is not known.
    let behind: Int64?
    let heldBack: Int64
    /// Partitions without a position.
    let unplaced: Int

    /// - Parameter now: milliseconds since 1970.
    init(_ group: GroupStanding, now: Int64) {
        self.group = group
        self.now = now
        lag = group.partitions.compactMap(\.lag).reduce(nil) { sum, lag in sum.map { $0 + lag } ?? lag }
        behind = group.partitions.compactMap(\.nextTimestamp).min().map { max(0, now - $0) }
        heldBack = group.partitions.reduce(0) { $0 + ($1.ends?.heldBack ?? 0) }
        unplaced = group.partitions.count { $0.position == nil }
    }

    private func owner(of partition: TopicPartition) -> Admin.Member? {
        group.members.first { $0.partitions.contains(partition) }
    }

    // MARK: Text

    var textLines: [String] {
        var lines = ["group   \(printable(group.name))  \(group.state)"]
        for member in group.members {
            lines.append("member  \(Self.words(member))  partitions: \(member.partitions.count)")
        }
        if group.members.isEmpty { lines.append("member  none") }
        lines += Self.table([Self.heading] + group.partitions.map(cells))
        lines.append("total   \(totals)")
        return lines
    }

    /// The member's name, and its host.
    static func words(_ member: Admin.Member) -> String {
        printable("\(member.instanceID ?? member.clientID)  \(member.host)")
    }

    private static let heading = [
        "TOPIC", "PARTITION", "POSITION", "BEGINNING", "END", "HELD", "LAG", "BEHIND", "MEMBER",
    ]

    private func cells(_ standing: PartitionStanding) -> [String] {
        let ends = standing.ends
        let member = owner(of: standing.partition).map { printable($0.instanceID ?? $0.clientID) }
        return [
            standing.partition.topic, "\(standing.partition.partition)", Self.text(standing.position?.value),
            Self.text(ends?.beginning.value), Self.text(ends?.committed.value), Self.text(ends?.heldBack),
            standing.lag.map(Self.text) ?? "-", Self.behind(standing, now), member ?? "-",
        ]
    }

    /// Columns are two spaces apart, so that a shell can cut them.
    private static func table(_ rows: [[String]]) -> [String] {
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            row.indices.map { $0 == row.count - 1 ? row[$0] : padded(row[$0], to: widths[$0]) }
                .joined(separator: "  ")
        }
    }

    private static func text(_ number: Int64?) -> String { number.map(String.init) ?? "-" }
    private static func text(_ lag: Lag) -> String { lag.isExact ? "\(lag.count)" : "<=\(lag.count)" }

    private static func behind(_ standing: PartitionStanding, _ now: Int64) -> String {
        if let timestamp = standing.nextTimestamp { return duration(max(0, now - timestamp)) }
        return standing.lag == .exactly(0) ? "0 s" : "-"
    }

    private var totals: String {
        var parts = ["lag \(lag.map(Self.text) ?? "-")"]
        if let behind { parts.append("behind \(Self.duration(behind))") }
        if heldBack > 0 { parts.append("held back by open transactions: \(heldBack)") }
        if unplaced > 0 { parts.append("partitions without a position: \(unplaced)") }
        let lost = group.partitions.count(where: \.hasLostRecords)
        if lost > 0 { parts.append("partitions whose next record was deleted before it was read: \(lost)") }
        return parts.joined(separator: "  ")
    }

    /// At most two units: readers want to know the magnitude.
    static func duration(_ milliseconds: Int64) -> String {
        let seconds = milliseconds / 1000
        switch seconds {
        case ..<120: return "\(seconds) s"
        case ..<7200: return "\(seconds / 60) min"
        case ..<172_800: return "\(seconds / 3600) h \(seconds % 3600 / 60) min"
        default: return "\(seconds / 86_400) d \(seconds % 86_400 / 3600) h"
        }
    }

    // MARK: JSON

    /// One line for each partition, then one for the group with its totals. The member `kind` distinguishes them.
    var jsonLines: [String] { group.partitions.map(json) + [jsonTotals] }

    private func json(_ standing: PartitionStanding) -> String {
        let ends = standing.ends
        return Self.object { line in
            line.member("kind", "partition")
            line.member("group", group.name)
            line.member("topic", standing.partition.topic)
            line.member("partition", standing.partition.partition)
            line.optional("position", standing.position?.value)
            line.optional("beginning", ends?.beginning.value)
            line.optional("end", ends?.committed.value)
            line.optional("endOfAll", ends?.all.value)
            line.optional("heldBack", ends?.heldBack)
            line.add(standing.lag)
            line.optional("nextTimestamp", standing.nextTimestamp)
            line.optional("behindMilliseconds", standing.nextTimestamp.map { max(0, now - $0) })
            line.member("recordsLost", standing.hasLostRecords)
            line.name("member")
            if let member = owner(of: standing.partition) { line.add(member) } else { line.null() }
        }
    }

    private var jsonTotals: String {
        Self.object { line in
            line.member("kind", "group")
            line.member("group", group.name)
            line.member("state", group.state)
            line.name("members")
            line.array { list in for member in group.members { list.add(member) } }
            line.member("partitions", group.partitions.count)
            line.member("withoutPosition", unplaced)
            line.member("heldBack", heldBack)
            line.add(lag)
            line.optional("behindMilliseconds", behind)
        }
    }

    private static func object(_ body: (inout JSONWriter) -> Void) -> String {
        var writer = JSONWriter()
        writer.object(body)
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}

extension PartitionStanding {
    /// Retention deleted records that the group has not read.
    fileprivate var hasLostRecords: Bool {
        guard let position, let ends else { return false }
        return position < ends.beginning
    }
}

extension JSONWriter {
    /// nil is null.
    fileprivate mutating func optional(_ name: StaticString, _ value: Int64?) {
        member(name, orNull: value)
    }

    fileprivate mutating func add(_ lag: Lag?) {
        optional("lag", lag?.count)
        member("lagIsExact", lag?.isExact ?? false)
    }

    fileprivate mutating func add(_ member: Admin.Member) {
        object { line in
            line.member("client", member.clientID)
            line.member("instance", member.instanceID)
            line.member("host", member.host)
            line.member("partitions", member.partitions.count)
        }
    }
}
