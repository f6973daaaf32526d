// The arguments of `offsets`.

import Cluster
import CommandLine
import Configuration
import Contract
import Platform
import Settings

struct OffsetsQuery: Sendable {
    enum Verb: Sendable, Equatable {
        case show
        case reset(Reset)
        case acceptGap(AcceptGap)
    }

    struct Reset: Sendable, Equatable {
        var target: Target
        /// nil: it is about every topic in which the group has positions.
        var topic: String?
        var applies: Bool
    }

    struct AcceptGap: Sendable, Equatable {
        /// Where to continue if the position is beyond the end.
        enum Place: String, Sendable { case beginning, end }

        var worker: WorkerName
        /// nil: it is about all partitions.
        var partition: Int32?
        var place: Place?
        var applies: Bool
    }

    enum Target: Sendable, Equatable {
        case beginning, end
        /// Milliseconds since 1970.
        case time(Int64)
        /// By partition.
        case offsets([Int32: Int64])
    }

    let verb: Verb
    /// The name of a group or a worker.
    let name: String?
    let isJSON: Bool

    init(_ invocation: Invocation, now: Int64) throws(ToolFault) {
        let format = invocation.option("format") ?? "text"
        guard format == "text" || format == "json" else {
            throw ToolFault(.wrongUsage, "--format must be text or json, not \(quoted(format))")
        }
        isJSON = format == "json"
        name = invocation.operands.count > 1 ? invocation.operands[1] : nil
        switch invocation.operands[0] {
        case "show":
            try Self.refuse(["to", "topic", "apply", "partition"], with: "show", invocation)
            verb = .show
        case "reset":
            try Self.refuse(["partition"], with: "reset", invocation)
            guard let name else { throw ToolFault(.wrongUsage, "reset needs the name of a group") }
            if let reason = Self.refusal(of: name) { throw ToolFault(.wrongUsage, reason) }
            guard let to = invocation.option("to") else {
                throw ToolFault(.wrongUsage, "reset needs --to: beginning, end, a time or PARTITION:OFFSET")
            }
            verb = .reset(
                Reset(
                    target: try Self.target(to, now: now), topic: invocation.option("topic"),
                    applies: invocation.has("apply")))
        case "accept-gap":
            try Self.refuse(["topic"], with: "accept-gap", invocation)
            verb = .acceptGap(try AcceptGap(invocation, name))
        default:
            throw ToolFault(
                .wrongUsage,
                "the first operand must be show, reset or accept-gap, not \(quoted(invocation.operands[0]))")
        }
    }

    private static func refuse(
        _ options: [String], with verb: String, _ invocation: Invocation
    ) throws(ToolFault) {
        if let stray = options.first(where: invocation.has) {
            throw ToolFault(.wrongUsage, "--\(stray) does not belong to \(verb)")
        }
    }

    /// A worker's name means its groups in the selected environments. nil: no name was given.
    func groups(of configuration: Configuration) -> [String]? {
        guard let name else { return nil }
        let names = configuration.namedEnvironments.map {
            Names(prefix: configuration.topicPlan.prefix, environment: $0)
        }
        if let worker = WorkerName(rawValue: name) { return names.map { $0.group(worker) } }
        return name == "clock" ? names.map(\.clockGroup) : [name]
    }

    private static func target(_ text: String, now: Int64) throws(ToolFault) -> Target {
        if text == "beginning" { return .beginning }
        if text == "end" { return .end }
        if let offsets = try partitionOffsets(text, option: "to") { return .offsets(offsets) }
        guard let time = pointInTime(text, now: now) else {
            throw ToolFault(
                .wrongUsage,
                "--to takes beginning, end, 2h, 7d, 2026-11-20, 2026-11-20T10:00:00Z or PARTITION:OFFSET[,...], not "
                    + quoted(text))
        }
        return .time(time)
    }

    /// Why a group must not be reset by hand; nil: it may be. Judged only by the end of the name, because workers of another prefix
    /// keep state as well.
    static func refusal(of group: String) -> String? {
        let parts = group.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        for (index, part) in parts.enumerated() {
            let isPlace = index == 0 ? parts.count == 1 : Contract.Environment(rawValue: parts[index - 1]) != nil
            let isLast = index + 1 == parts.count
            guard isPlace, isLast || parts[index + 1].hasPrefix("replay-") else { continue }
            if WorkerName(rawValue: part) != nil {
                return
                    "offsets of workers with state are not reset by hand (\(part) would add records to a state that has them already); "
                    + "run perennial replay \(part) --name NAME"
            }
            if part == "clock" {
                return "the group \(group) has no positions: its members only share the partitions to tick"
            }
        }
        return nil
    }
}

extension OffsetsQuery.AcceptGap {
    init(_ invocation: Invocation, _ name: String?) throws(ToolFault) {
        guard let name else {
            throw ToolFault(.wrongUsage, "accept-gap needs a worker: entitlements, churn or consumption")
        }
        guard let worker = WorkerName(rawValue: name) else {
            throw ToolFault(.wrongUsage, "accept-gap takes entitlements, churn or consumption, not \(quoted(name))")
        }
        self.worker = worker
        applies = invocation.has("apply")
        partition = nil
        if let text = invocation.option("partition") {
            guard let number = Int32(text), number >= 0 else {
                throw ToolFault(.wrongUsage, "--partition takes a number from 0, not \(quoted(text))")
            }
            partition = number
        }
        if applies, partition == nil {
            throw ToolFault(.wrongUsage, "--apply accepts the gap of one partition: name it with --partition")
        }
        place = nil
        if let text = invocation.option("to") {
            guard let place = Place(rawValue: text) else {
                throw ToolFault(.wrongUsage, "accept-gap --to takes beginning or end, not \(quoted(text))")
            }
            self.place = place
        }
    }
}
