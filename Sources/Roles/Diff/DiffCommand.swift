// `perennial diff WORKER --name N`: what a replay has made of the log, beside what the live worker has made of it.

import Configuration
import Contract
import Kafka
import Log
import Platform
import Settings
import Zone

extension Command {
    static let diff = Command(
        .diff, "Compares what a replay wrote with what the live worker wrote, key by key.",
        operands: "entitlements|churn|consumption", operandCount: 1...1,
        options: [
            CommandOption(
                "name", value: "NAME", effect: "The replay's name, as in perennial replay WORKER --name NAME."),
            CommandOption(
                "samples", value: "N",
                effect: "Keys that are shown with what differs, the first that are found; \(DiffQuery.defaultSamples) "
                    + "without it, 0 for none."),
            CommandOption(
                "format", value: "text|json", effect: "json: one object a line, samples, rates, then totals."),
            CommandOption(
                "unfinished",
                effect: "Compares although the replay is not at its end: what it has not read counts as newer."),
            CommandOption(
                "scratch", value: "DIRECTORY",
                effect:
                    "Where records lie meanwhile; `TMPDIR` without it, else `/var/tmp`. Needs room for what the greatest "
                    + "partition has in both topics. Nothing stays there, whatever ends the command."),
        ],
        details: """
            Compares entitlements: entitlements and accounts; churn: churn-cells; consumption: consumption, whose unit is a
            request: what was asked, what was decided last, what became of it. Event topics are not compared. Reads each topic
            from its beginning to the end that it had at the start, a partition of both at a time, in less than 256 MiB.
            Values are compared as JSON. Not compared are headers, and the members sequence, asOf, cause and offset, which tell
            of the way there. null and no member are the same, and so are the spellings of a number. A tombstone is no value.
            SAME, DIFFERENT; ONLY HERE: in the replay; ONLY THERE: in the live topic; NEWER: made from input that the other side
            has not dealt with, by the header source and the positions of both groups: nothing can be said of it yet.
            churn: tells what the cells that differ mean for the rates of each month, over all products; a cell that is newer
            counts alike on both sides. churn.zone should be that of the worker.
            Only one environment is looked at: production, unless --environment sandbox is given.
            Exit code 0: no key differs; newer ones may be there. 1: some differ. 2: cannot be compared: no such replay, a replay
            that is not at its end or was made with --from, other partition counts, records of a later version. 3: Kafka did not answer, or no room.
            """,
        action: .configured { invocation, configuration in
            do throws(ToolFault) {
                let query = try DiffQuery(
                    invocation, temporary: environmentVariables().first { $0.name == "TMPDIR" }?.value)
                return try diff(query, configuration, invocation.output)
            } catch {
                for line in error.lines { invocation.output.message("perennial diff: \(line)") }
                return error.code
            }
        })

    private static func diff(
        _ query: DiffQuery, _ configuration: Configuration, _ output: Output
    ) throws(ToolFault) -> ExitCode {
        let identity = ReplayIdentity(worker: query.worker, names: configuration.names, shadow: query.name)
        let log = KafkaLog(configuration.kafka)
        let (counts, positions) = try look(identity, configuration)
        guard let plan = try plan(identity, log, Array(counts.keys)) else {
            throw DiffRun.missing(identity, Array(counts.keys))
        }
        var run = DiffRun(
            query: query, identity: identity, partitions: Int32(configuration.topicPlan.partitions), log: log,
            output: output, partitionCounts: counts, positions: positions, plan: plan)
        do throws(ZoneFault) {
            let zone = try Zone(name: configuration.churnZone)
            run.dayOf = { zone.day(of: $0) }
        } catch {
            throw ToolFault(.wrongUsage, "churn.zone: \(error)")
        }
        return try run.run()
    }

    /// nil: there is no such replay. By its plan topic it is known.
    private static func plan(
        _ identity: ReplayIdentity, _ log: KafkaLog, _ topics: [String]
    ) throws(ToolFault) -> ReplayPlan? {
        guard topics.contains(identity.planTopic) else { return nil }
        return try PlanTopic(identity, log).read(by: Deadline(after: .seconds(20)))
    }

    /// The topics that there are, and where both groups stand.
    private static func look(
        _ identity: ReplayIdentity, _ configuration: Configuration
    ) throws(ToolFault) -> (counts: [String: Int32], positions: InputPositions) {
        let access: ClusterAccess
        do throws(ClusterAccess.Unreachable) {
            access = try ClusterAccess.connect(configuration, as: "diff", by: Deadline(after: .seconds(10)))
        } catch {
            throw ToolFault(error)
        }
        defer { access.close() }
        let counts = Dictionary(
            access.cluster.topics.map { ($0.name, Int32($0.partitions.count)) }, uniquingKeysWith: { first, _ in first }
        )
        let deadline = Deadline(after: .seconds(20))
        func positions(_ group: String) throws(ToolFault) -> [TopicPartition: NextOffset] {
            try ToolFault.persisting(until: deadline) { () throws(KafkaFault) in
                try access.admin.currentOffsets(ofGroup: group, by: deadline)
            }
        }
        let live = identity.names.group(identity.worker)
        return (counts, InputPositions(shadow: try positions(identity.group), live: try positions(live)))
    }
}
