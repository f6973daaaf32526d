// What prevents a promotion, and what it would change. Pure.

import Contract
import JSON
import Log
import Runtime

struct PromoteFindings {
    let query: PromoteQuery
    let names: Names
    let live: Promotion.Standing
    let shadow: Promotion.Standing
    let rules: String?
    /// Instance ids, or client ids of dynamic members.
    let liveMembers: [String]
    let shadowMembers: [String]
    /// Why the plan of the replay does not fit; empty: it fits.
    let planReasons: [String]
    /// Apps that occur in the log but not in the settings.
    let unknownApps: [String]
    /// Counts for the current values; nil: they were not counted.
    let counts: PromotionCounts?

    /// Records between the replay and the live worker.
    var lag: Int64 {
        live.positions.reduce(0) { $0 + max(0, $1.value.value - (shadow.positions[$1.key]?.value ?? 0)) }
    }

    private var ahead: [TopicPartition] {
        shadow.positions.filter { $0.value > live.positions[$0.key] ?? NextOffset(0) }.keys.sorted()
    }

    /// One reason per line; empty: the promotion is possible.
    var reasons: [String] {
        var reasons = planReasons
        if live.positions.isEmpty { reasons.append("the live worker has no state yet: there is nothing to replace") }
        if shadow.positions.isEmpty { reasons.append("the replay has no state yet: run it first") }
        if !liveMembers.isEmpty {
            reasons.append(
                "the live worker is running (\(liveMembers.joined(separator: ", "))): stop all of its processes. After a process "
                    + "has stopped, the group keeps its member for up to 30 s")
        }
        if !shadowMembers.isEmpty {
            reasons.append("the replay is running (\(shadowMembers.joined(separator: ", "))): stop it")
        }
        if let first = ahead.first {
            reasons.append(
                "the replay is ahead of the live worker in \(ahead.count) partitions (\(first): \(shadow.positions[first]!), live "
                    + "\(live.positions[first].map { "\($0)" } ?? "none")): start the live worker, wait until it is past that "
                    + "offset, and stop it again")
        }
        if lag > query.maximalLag {
            reasons.append(
                "the replay is \(lag) records behind the live worker, which would be stopped while they are read: run perennial "
                    + "replay \(query.worker.rawValue) --name \(query.moved) first, or allow the lag with --max-lag")
        }
        if !unknownApps.isEmpty {
            reasons.append(
                "the setting apps does not contain \(unknownApps.joined(separator: ", ")), but the log does: their subscriptions "
                    + "would lose their entitlements")
        }
        return reasons
    }

    private var promoted: String {
        query.goesBack ? "back to before \(query.name)" : "\(query.name)"
    }

    var textLines: [String] {
        var lines = [
            "promote  \(query.worker.rawValue)  \(names.environment.rawValue)  \(promoted)",
            "replay   rules \(rules ?? "none"), \(lag) records behind the live worker",
        ]
        if let other = live.promotion { lines.append("state    a promotion of \(other) was started and has not ended") }
        if let counts {
            lines.append(
                "values   now: \(counts.changed) would change, \(counts.added) would be new, \(counts.removed) would be "
                    + "removed, \(counts.same) would stay")
        }
        return lines + reasons.map { "not yet  \($0)" }
    }

    var json: String {
        var writer = JSONWriter()
        writer.object { line in
            line.member("worker", query.worker.rawValue)
            line.member("environment", names.environment.rawValue)
            line.member("name", query.moved.description)
            line.member("rules", rules)
            line.member("lag", lag)
            line.member("underWay", live.promotion)
            line.member("changed", orNull: counts.map { Int64($0.changed) })
            line.member("added", orNull: counts.map { Int64($0.added) })
            line.member("removed", orNull: counts.map { Int64($0.removed) })
            line.member("same", orNull: counts.map { Int64($0.same) })
            line.name("reasons")
            line.array { list in for reason in reasons { list.string(reason) } }
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
