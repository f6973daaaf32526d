// `perennial diff WORKER --name N`: compares the outputs of a replay with those of the live worker.

import Cluster
package import CommandLine
import Configuration
import Contract
import Kafka
import Log
import Platform
import Settings
import Workers
import Zone

extension Command {
    package static let diff = Command(
        .diff, "Compares what a replay wrote with what the live worker wrote, key by key.",
        operands: "entitlements|churn|consumption", operandCount: 1...1,
        options: [
            CommandOption(
                "name", value: "NAME", effect: "The name of the replay, as in perennial replay WORKER --name NAME."),
            CommandOption(
                "samples", value: "N",
                effect: "How many differing keys are shown, the first that are found (\(DiffQuery.defaultSamples)); "
                    + "0: none."),
            CommandOption(
                "format", value: "text|json", effect: "json: one object per line: samples, rates, then totals."),
            CommandOption(
                "unfinished",
                effect: "Compares although the replay has not reached its end: what it has not read counts as newer."),
            CommandOption(
                "scratch", value: "DIRECTORY",
                effect:
                    "Directory for temporary files (`TMPDIR`, else `/var/tmp`). It needs room for the largest "
                    + "partition of both topics. Nothing stays there, however the command ends."),
        ],
        details: """
            Compares entitlements: entitlements and accounts; churn: churn-cells; consumption: consumption, one request at a time: what
            was asked, the last decision, the outcome. Event topics are not compared. Reads each topic from its beginning to the end that
            it had at the start, the same partition of both at a time, in less than 256 MiB.
            Values are compared as JSON. Headers are not compared, nor are the members sequence, asOf, cause and offset, which depend
            on how the value was reached. null equals a missing member, and so do two spellings of a number. A tombstone is no value.
            SAME and DIFFERENT: both sides have the key. ONLY HERE: only the replay has it. ONLY THERE: only the live topic has it.
            NEWER: one side has made the value from input that the other has not processed, by the header source and the positions of
            both groups, so it cannot be compared yet.
            For churn it shows what the differing cells mean for the rates of each month, over all products; a newer cell counts the
            same on both sides. Set churn.zone to the value that the worker has.
            Only one environment is compared: production, unless --environment sandbox is given.
            Exit code 0: no key differs; there may be newer ones. 1: some differ. 2: the two cannot be compared: no such replay, a replay
            that has not reached its end or was made with --from, other numbers of partitions, records of a later version. 3: Kafka did
            not answer, or there was no room on disk.
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
        let log = configuration.clientProperties.makeLog()
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

    /// nil: there is no such replay, because its plan topic does not exist.
    private static func plan(
        _ identity: ReplayIdentity, _ log: any RecordLog, _ topics: [String]
    ) throws(ToolFault) -> ReplayPlan? {
        guard topics.contains(identity.planTopic) else { return nil }
        return try PlanTopic(identity, log).read(by: Deadline(after: .seconds(20)))
    }

    /// The existing topics, and the offsets of both groups.
    private static func look(
        _ identity: ReplayIdentity, _ configuration: Configuration
    ) throws(ToolFault) -> (counts: [String: Int32], positions: InputPositions) {
        let access = try ClusterAccess.connect(configuration, as: "diff")
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
