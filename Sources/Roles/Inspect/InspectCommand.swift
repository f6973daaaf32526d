// `perennial inspect subscription|account`: one of them, from the topics.

import Configuration
import Contract
import Entitlements
import Kafka
import Platform
import Settings

extension Command {
    static let inspect = Command(
        .inspect, "Shows one subscription or account, from the topics, and why it is as it is.",
        operands: "subscription|account ID", operandCount: 2...2,
        options: [
            CommandOption("format", value: "text|json", effect: "text: a card for people. json: one object."),
            CommandOption("all", effect: "Every purchase and notification, not only the newest; json always has all."),
            CommandOption(
                "at", value: "TIME",
                effect:
                    "The answer for then, with all that is known now: `2026-11-20`, `2026-11-20T10:00:00Z` (UTC), `2h`, `7d`."
            ),
            CommandOption(
                "content", value: "DATE[,...]",
                effect: "subscription: which items published on these dates are accessible, and why."),
        ],
        details: """
            subscription: ID is an original transaction id. Reads its partition of notifications, which has everything, computes
            the answer as the worker entitlements does, and says what is in entitlements and whether that is the same. The
            settings apps and entitlements.leeway.ms should be those of the worker. Long partitions take a while; a bar tells.
            account: ID is an appAccountToken. Reads its partition of accounts: what the customer owns over all apps, what that
            gives, and what a screen of support should advise. --at takes no time before its newest record: what was so then
            only its subscriptions tell.
            A subscription is told as of its partition's clock, the latest timestamp in it; an account as of now. In json
            position.asOf is that clock, and at the instant that is told of.
            Only topics of one environment are looked at: production, unless --environment sandbox is given.
            Exit code 1: it is not there. 3: Kafka did not answer.
            """,
        action: .configured { invocation, configuration in
            do throws(ToolFault) {
                let query = try InspectQuery(invocation, now: WallClock.milliseconds())
                return try inspect(query, configuration, invocation.output)
            } catch {
                for line in error.lines { invocation.output.message("perennial inspect: \(line)") }
                return error.code
            }
        })

    private static func inspect(
        _ query: InspectQuery, _ configuration: Configuration, _ output: Output
    ) throws(ToolFault) -> ExitCode {
        let cluster: Admin.Cluster
        do throws(ClusterAccess.Unreachable) {
            let access = try ClusterAccess.connect(configuration, as: "inspect", by: Deadline(after: .seconds(10)))
            cluster = access.cluster
            access.close()
        } catch {
            throw ToolFault(error)
        }
        var run = InspectRun(
            query: query, names: configuration.names, partitions: Int32(configuration.topicPlan.partitions),
            rules: EntitlementRules(configuration),
            log: KafkaLog(configuration.kafka), output: output, now: WallClock.milliseconds())
        run.hasApps = !configuration.apps.isEmpty
        for topic in cluster.topics { run.partitionCounts[topic.name] = Int32(topic.partitions.count) }
        return try run.run()
    }
}
