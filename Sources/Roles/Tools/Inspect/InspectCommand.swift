// `perennial inspect`: shows one subscription or account, refund requests, or churn metrics, from the topics.

import Churn
import Cluster
package import CommandLine
import Configuration
import Contract
import Entitlements
import Kafka
import Log
import Platform
import Settings
import Workers
import Zone

extension Command {
    package static let inspect = Command(
        .inspect,
        "Explains one subscription or account, and shows refund requests or churn metrics, from the topics.",
        operands: "subscription|account ID, refunds [ID], or metrics", operandCount: 1...2,
        options: [
            CommandOption(
                "format", value: "FORMAT",
                effect:
                    "subscription, account, refunds: text (default), a card for people, or json. metrics: table "
                    + "(default), json or csv."),
            CommandOption(
                "all",
                effect:
                    "Shows every purchase and notification, not only the newest; json always has all. refunds: up to "
                    + "\(RefundsQuery.limitAll) requests, also in json."),
            CommandOption(
                "at", value: "TIME",
                effect:
                    "The answer for that time, with all that is known now: `2026-11-20`, `2026-11-20T10:00:00Z` (UTC), "
                    + "`2h`, `7d`."),
            CommandOption(
                "content", value: "DATE[,...]",
                effect: "subscription: which items, published on these dates, are accessible, and why."),
            CommandOption(
                "from", value: "DAY",
                effect: "metrics: the first day, `2026-11-01`. refunds: only requests since then, also `2h`, `7d`."),
            CommandOption(
                "to", value: "DAY", effect: "metrics: the first day not included. refunds: only requests before then."),
            CommandOption(
                "by", value: "NAME[,...]",
                effect: "metrics: one group for each `product`, `plan`, `storefront`, `currency`."
            ),
            CommandOption(
                "interval", value: "day|week|month",
                effect: "metrics, in json or csv: a series. Weeks begin on Monday."),
            CommandOption(
                "chart", value: "SERIES",
                effect: "metrics: a bar chart of one series below the table: "
                    + (ChartSeries.stocks + ["lapsed"]).map { "`\($0)`" }.joined(separator: ", ") + ", any counter."),
        ],
        details: """
            subscription: ID is an originalTransactionId. Reads its partition of notifications, computes the answer as the worker
            entitlements does, and says what is in the topic entitlements and whether that is the same. Give apps and
            entitlements.leeway.ms as the worker has them. A long partition takes a while; a bar shows the progress.
            account: ID is an appAccountToken. Reads its partition of accounts: what the customer owns over all apps, what that gives,
            and what support should advise. --at cannot be before the newest record of the account; ask for its subscriptions instead.
            refunds: ID is an originalTransactionId, a transactionId or a notificationUUID; without an ID the newest requests are shown.
            Reads consumption: what Apple asked, the facts, the rule, what was sent, every attempt, and what Apple decided. For an
            originalTransactionId one partition is read; for another ID all partitions may have to be read.
            metrics: reads all of churn-cells, which perennial churn writes, and shows rates of churn, billing, trials and refunds, each
            with its formula. A star marks what is not final. Money is separate for each currency. csv has a line for each day, group
            and currency. A rate is for all days of the range together: ask month by month. Set churn.zone to the value that the worker has,
            because it decides which days are over.
            A subscription is shown as of its partition's clock, the latest timestamp in it; an account as of now. In json, position.asOf
            is that clock, and at is the instant that the answer is for.
            Only the topics of one environment are read: production, unless --environment sandbox is given.
            Exit code 1: nothing was found; for metrics, churn-cells is empty. 3: Kafka did not answer.
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
        let cluster = try ClusterAccess.cluster(configuration, as: "inspect")
        var run = InspectRun(
            query: query, names: configuration.names, partitions: Int32(configuration.topicPlan.partitions),
            rules: EntitlementRules(configuration),
            log: configuration.clientProperties.makeLog(), output: output, now: WallClock.milliseconds())
        do throws(ZoneFault) {
            let zone = try Zone(name: configuration.churnZone)
            run.dayOf = { zone.day(of: $0) }
            run.cellRules = CellRules(zone)
        } catch {
            throw ToolFault(.wrongUsage, "churn.zone: \(error)")
        }
        run.hasApps = !configuration.apps.isEmpty
        for topic in cluster.topics { run.partitionCounts[topic.name] = Int32(topic.partitions.count) }
        return try run.run()
    }
}
