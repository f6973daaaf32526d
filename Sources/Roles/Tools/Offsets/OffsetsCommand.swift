// `perennial offsets show|reset|accept-gap`: shows the positions of groups, and moves those of groups without state.

import Cluster
package import CommandLine
import Configuration
import Contract
import Kafka
import Platform
import Settings

extension Command {
    package static let offsets = Command(
        .offsets, "Shows the lag of the groups, resets groups without state, and accepts gaps.",
        operands: "show|reset|accept-gap [GROUP|WORKER]", operandCount: 1...2,
        options: [
            CommandOption(
                "to", value: "beginning|end|TIME|PARTITION:OFFSET[,...]",
                effect:
                    "reset: the next record to read. TIME: `2h`, `7d`, `2026-11-20` or `2026-11-20T10:00:00Z` (UTC). "
                    + "accept-gap: beginning or end, if the position lies beyond the end."),
            CommandOption("topic", value: "NAME", effect: "reset: only positions in this topic."),
            CommandOption("partition", value: "P", effect: "accept-gap: only this partition; --apply needs it."),
            CommandOption("format", value: "text|json", effect: "json: one object per line."),
            CommandOption("apply", effect: "reset, accept-gap: writes the positions. Without it nothing is written."),
        ],
        details: """
            show without a name shows every group of the prefix, of both environments unless --environment names one: workers, clock,
            replays. WORKER is entitlements, churn, consumption or clock; any other name is the name of a group.
            POSITION is the committed offset: the next record to read. END is the end of committed records; HELD is what an open
            transaction holds back behind it. LAG counts records. Where more than \(LagProbe.countLimit) offsets are left, it counts offsets from
            the next record on, some of which may be ends of transactions: `<=`. BEHIND is the age of the next record to read.
            reset changes every partition of the topics in which the group has positions, and only while the group has no members.
            It refuses the groups of workers that keep state, of their replays and of the clock.
            accept-gap is for a worker that waits in a partition because records of its input were deleted before it read them. It shows
            which offsets and times are missing. With --apply the worker continues after them: group, state and a dead letter that
            records the gap are written in one transaction. Stop every process of the worker before that.
            Exit code 1: there is no such group or gap, or the group has members. 3: Kafka did not answer.
            """,
        action: .configured { invocation, configuration in
            do throws(ToolFault) {
                let query = try OffsetsQuery(invocation, now: WallClock.milliseconds())
                return try OffsetsRun(query: query, configuration: configuration, output: invocation.output).run()
            } catch {
                for line in error.lines { invocation.output.message("perennial offsets: \(line)") }
                return error.code
            }
        })
}

/// One call of the command.
struct OffsetsRun {
    /// The whole command ends within 30 s, whatever the cluster does.
    private static let limit: Duration = .seconds(28)

    let query: OffsetsQuery
    let configuration: Configuration
    let output: Output

    func run() throws(ToolFault) -> ExitCode {
        let deadline = Deadline(after: Self.limit)
        let access = try ClusterAccess.connect(configuration, as: "offsets")
        defer { access.close() }
        if case .acceptGap(let gap) = query.verb {
            return try AcceptGapRun(gap, query, configuration, output).run(access, by: deadline)
        }
        let survey = try GroupSurvey(access, configuration, by: deadline)
        defer { survey.close() }
        switch query.verb {
        case .show: return try show(survey)
        case .reset(let reset): return try OffsetsReset(reset, query, output).run(survey, access.admin, by: deadline)
        case .acceptGap: preconditionFailure("accept-gap was handled before")
        }
    }

    private func show(_ survey: GroupSurvey) throws(ToolFault) -> ExitCode {
        let named = query.groups(of: configuration)
        let names = if let named { named } else { try survey.groupsOfInstallation() }
        var shown = 0
        for name in names {
            guard let group = try survey.group(name) else { continue }
            if shown > 0, !query.isJSON { output.data("") }
            shown += 1
            let report = GroupReport(group, now: WallClock.milliseconds())
            for line in query.isJSON ? report.jsonLines : report.textLines { output.data(line) }
        }
        if let silence = survey.silence { output.message("perennial offsets: \(silence)") }
        if shown > 0 { return .done }
        guard query.name != nil else {
            output.message("perennial offsets: there is no group with this prefix")
            return .done
        }
        output.message("perennial offsets: there is no group \(names.joined(separator: ", nor "))")
        return .no
    }
}
