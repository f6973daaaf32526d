// The worker over a log in memory, fed with the notifications of a simulated store.

import Contract
import Entitlements
import EntitlementsWorker
import JSON
import MakeBelieve
import NotificationWorker
import Simulation
import Telemetry
import TruthCheck

extension StoreRun {
    /// - Parameters:
    ///   - leeway: nil: the default applies.
    ///   - faults: a seed; nil: nothing fails.
    ///   - shadow: the names of a replay; nil: this is a live worker.
    convenience init(
        _ store: StoreLog, processes: Int = 1, leeway: Int64? = nil, faults seed: UInt64? = nil, shadow: Shadow? = nil
    ) throws {
        let rules = EntitlementRules(
            apps: StoreLog.apps.map(\.contractApp), leeway: leeway ?? store.leeway, environment: store.environment)
        try self.init(store, processes: processes, faults: seed) { names, partitions, _ in
            EntitlementsProcessor(
                names, rules: rules, partitions: partitions, app: "perennial/test",
                metrics: EntitlementsMetrics(Metrics()), shadow: shadow)
        }
    }

    /// What is wrong with all that was written, compared with the truth and with itself; empty if nothing is.
    func judge() throws -> [String] {
        let truth = try TruthCheck(lines: store.truth, leeway: store.leeway)
        let letters = try read(.deadLetters(.entitlements)).map { "dead letter of \($0.key)" }
        let final = truth.wrong(
            entitlements: try last(.entitlements), accounts: try last(.accounts), clock: store.end)
        let outcomes = truth.wrongOutcomes(try values(.entitlementEvents), clock: store.end)
        return letters + final + outcomes
            + ChainCheck.wrong(values: try values(.entitlements), events: try values(.entitlementEvents))
    }
}
