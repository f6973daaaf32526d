// `perennial inspect`: one subscription or account, refund requests, or what is counted of all, from the topics.

import Churn
import Configuration
import Contract
import Entitlements
import Kafka
import Platform
import Settings
import Zone

extension Command {
    static let inspect = Command(
        .inspect,
        "Shows one subscription or account and why it is as it is, refund requests, or metrics of all, from the topics.",
        operands: "subscription|account ID, refunds [ID], or metrics", operandCount: 1...2,
        options: [
            CommandOption(
                "format", value: "FORMAT",
                effect:
                    "subscription, account, refunds: text (default), a card for people, or json. metrics: table (default), json or csv."
            ),
            CommandOption(
                "all",
                effect:
                    "Every purchase and notification, not only the newest; json always has all. refunds: up to "
                    + "\(RefundsQuery.limitAll) requests, in json too."),
            CommandOption(
                "at", value: "TIME",
                effect:
                    "The answer for then, with all that is known now: `2026-11-20`, `2026-11-20T10:00:00Z` (UTC), `2h`, `7d`."
            ),
            CommandOption(
                "content", value: "DATE[,...]",
                effect: "subscription: which items published on these dates are accessible, and why."),
            CommandOption(
                "from", value: "DAY",
                effect: "metrics: the first day, as `2026-11-01`. refunds: only requests since then, also `2h`, `7d`."),
            CommandOption(
                "to", value: "DAY", effect: "metrics: the day behind the last one. refunds: only requests before then."),
            CommandOption(
                "by", value: "NAME[,...]", effect: "metrics: told apart by `product`, `plan`, `storefront`, `currency`."
            ),
            CommandOption(
                "chart", value: "SERIES",
                effect: "metrics: bars of one series below the table: "
                    + (ChartSeries.stocks + ["lapsed"]).map { "`\($0)`" }.joined(separator: ", ") + ", any counter."),
        ],
        details: """
            subscription: ID is an original transaction id. Reads its partition of notifications, which has everything, computes
            the answer as the worker entitlements does, and says what is in entitlements and whether that is the same. The
            settings apps and entitlements.leeway.ms should be those of the worker. Long partitions take a while; a bar tells.
            account: ID is an appAccountToken. Reads its partition of accounts: what the customer owns over all apps, what that
            gives, and what a screen of support should advise. --at takes no time before its newest record: what was so then
            only its subscriptions tell.
            refunds: ID is an originalTransactionId, a transactionId or a notificationUUID; without one the newest requests of all.
            Reads consumption: what Apple asked, the facts, the rule, what was sent, every attempt, and what Apple decided. The
            partition of an originalTransactionId is enough; to find another ID all may have to be read.
            metrics: reads all of churn-cells, which perennial churn writes, and tells rates of churn, billing, trials and
            refunds, each with its formula; what is not final has a star. Money is told apart by currency. csv has a line for
            each day, group and currency. Rates are of all days asked for together: ask month by month. churn.zone should be
            that of the worker: it tells which days are over.
            A subscription is told as of its partition's clock, the latest timestamp in it; an account as of now. In json
            position.asOf is that clock, and at the instant that is told of.
            Only topics of one environment are looked at: production, unless --environment sandbox is given.
            Exit code 1: it is not there; of metrics, churn-cells holds nothing at all. 3: Kafka did not answer.
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
