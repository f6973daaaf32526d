// `perennial promote`: replaces the live worker's state and values with those of a replay.

import Cluster
package import CommandLine
import Configuration
import Contract
import Platform
import Settings

extension Command {
    package static let promote = Command(
        .promote, "Replaces the live state and values with those of a replay.",
        operands: "WORKER", operandCount: 1...1,
        options: [
            CommandOption("name", value: "NAME", effect: "The name of the replay."),
            CommandOption("apply", effect: "Promotes. Without it nothing is written."),
            CommandOption("back", effect: "Restores what was there before this replay was promoted."),
            CommandOption(
                "max-lag", value: "N",
                effect:
                    "How many records the replay may be behind the live worker (default \(PromoteQuery.usualLag)); --apply reads "
                    + "them."),
            CommandOption("format", value: "text|json", effect: "json: one object."),
        ],
        details: """
            WORKER is entitlements or churn. Give the settings of the replay. Before --apply, stop the replay and then every process of
            the live worker; ingest and the api can keep running. These are the steps: the replay reads to exactly the position of the live
            worker; the current state and values are kept as the replay \(PromoteQuery.keptPrefix)NAME; the live state is marked, and no worker uses it while it
            is marked; every partition is moved; the marks are removed. A value that differs is written once, with the next sequence; a key
            that the replay does not have gets a tombstone. Event topics keep their history.
            If the command is killed at any point, run it again and it completes. Then start the workers with the settings of the replay.
            Exit code 0: done, or --apply is possible; 1: it is not possible, with one line for each reason; 2: the arguments or settings
            are wrong; 3: Kafka did not answer, or a signal stopped the command before its end.
            """,
        serviceOption: "apply",
        action: .configured { invocation, configuration in
            do throws(ToolFault) {
                let query = try PromoteQuery(invocation)
                return try PromoteRun(query: query, configuration: configuration, output: invocation.output).run()
            } catch {
                for line in error.lines { invocation.output.message("perennial promote: \(line)") }
                return error.code
            }
        })
}

struct PromoteQuery: Sendable, Equatable {
    static let usualLag = 100_000
    static let keptPrefix = "before-"

    let worker: WorkerName
    let name: ShadowName
    let applies: Bool
    let goesBack: Bool
    let maximalLag: Int
    let isJSON: Bool

    init(_ invocation: Invocation) throws(ToolFault) {
        let worker = invocation.operands[0]
        switch WorkerName(rawValue: worker) {
        case .consumption?:
            throw ToolFault(
                .wrongUsage,
                "decisions about refunds are final: a promotion of consumption would change answers that Apple already has. "
                    + "Start the worker with the new policy instead; it decides all open requests by that policy")
        case let known?: self.worker = known
        case nil:
            throw ToolFault(.wrongUsage, "promote takes entitlements or churn, not \(quoted(worker))")
        }
        guard let text = invocation.option("name") else {
            throw ToolFault(.wrongUsage, "name the replay with --name; perennial replay --list shows all")
        }
        guard let name = ShadowName(text) else {
            throw ToolFault(
                .wrongUsage,
                "--name takes 1 to \(ShadowName.limitBytes) letters, digits, \"_\" and \"-\", not \(quoted(text))")
        }
        self.name = name
        applies = invocation.has("apply")
        goesBack = invocation.has("back")
        maximalLag = try Self.lag(invocation)
        let format = invocation.option("format") ?? "text"
        guard format == "text" || format == "json" else {
            throw ToolFault(.wrongUsage, "--format must be text or json, not \(quoted(format))")
        }
        isJSON = format == "json"
    }

    private static func lag(_ invocation: Invocation) throws(ToolFault) -> Int {
        guard let text = invocation.option("max-lag") else { return usualLag }
        guard let lag = Int(text), lag >= 0 else {
            throw ToolFault(.wrongUsage, "--max-lag takes a number of records, not \(quoted(text))")
        }
        return lag
    }

    /// The name for the state before the promotion. A long name is cut.
    var keptName: ShadowName {
        let room = ShadowName.limitBytes - Self.keptPrefix.utf8.count
        return ShadowName(Self.keptPrefix + name.description.prefix(room))!
    }

    /// The replay that becomes live.
    var moved: ShadowName { goesBack ? keptName : name }
}
