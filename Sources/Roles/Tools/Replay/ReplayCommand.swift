// `perennial replay`: runs a worker again, beside the live one.

import Cluster
package import CommandLine
import Configuration
import Contract
import Platform
import Settings
import Workers

extension Command {
    package static let replay = Command(
        .replay, "Runs a worker again from the beginning into topics of its own, beside the live one.",
        operands: "[WORKER]", operandCount: 0...1,
        options: [
            CommandOption(
                "name", value: "NAME", effect: "Starts the replay with this name, continues it, or joins it."),
            CommandOption(
                "from", value: "TIME|PARTITION:OFFSET[,...]",
                effect:
                    "Where output begins. The state is always built from the beginning. TIME: `2h`, `7d`, `2026-11-20` "
                    + "or `2026-11-20T10:00:00Z` (UTC)."),
            CommandOption("rate", value: "N", effect: "At most N records per second, for each process."),
            CommandOption("follow", effect: "Continues at the end, until a signal stops it."),
            CommandOption("incomplete", effect: "Runs although the first notifications are deleted."),
            CommandOption("list", effect: "Lists all replays."),
            CommandOption("format", value: "text|json", effect: "With --list; json: one object per line."),
            CommandOption(
                "drop", value: "NAME", effect: "Removes a replay: its topics, its group and its state on this host."),
        ],
        details: """
            WORKER is one of \(WorkerName.allCases.map(\.rawValue).joined(separator: ", ")). Every topic T that the worker writes has a shadow, T.replay-NAME, which the replay
            creates with the settings of T. The replay reads the live inputs. It does not touch the live outputs, group or state, and it
            sends nothing to Apple. Give it the settings of the live worker, or those that you want to try.
            Health and metrics are served only if the flag --admin.listen is given, because the usual port is the live worker's.
            Several processes may share a replay. Each needs a worker.slot of its own, and all need the same settings and --from.
            The replay ends when every partition has reached the end that it had at the start. SIGTERM and SIGINT stop it sooner. After
            either, and after a kill, the same command continues where it stopped.
            Exit code 0: the replay has reached its end, or a signal stopped it; 1: --drop found nothing, or the replay is running; 2: the
            arguments, settings or topics are wrong, or the replay was started with others; 3: Kafka did not answer, the worker had to
            end, or some partitions cannot continue and all others are at their end. Each such partition is named, with what to do.
            """,
        serviceOption: "name",
        action: .configured { invocation, configuration in
            do throws(ToolFault) {
                let query = try ReplayQuery(
                    invocation, threads: configuration.worker.threads, now: WallClock.milliseconds())
                return try run(query, configuration, invocation.output)
            } catch {
                for line in error.lines { invocation.output.message("perennial replay: \(line)") }
                return error.code
            }
        })

    private static func run(
        _ query: ReplayQuery, _ configuration: Configuration, _ output: Output
    ) throws(ToolFault) -> ExitCode {
        func identity(_ name: ShadowName) throws(ToolFault) -> ReplayIdentity {
            guard let worker = query.worker else { throw ToolFault(.wrongUsage, "replay needs a worker") }
            return ReplayIdentity(worker: worker, names: configuration.names, shadow: name)
        }
        switch query.verb {
        case .run(let run):
            return try ReplayRun(
                query: run, identity: try identity(run.name), configuration: configuration, output: output
            ).run()
        case .list:
            return try ReplayList(
                worker: query.worker, isJSON: query.isJSON, configuration: configuration, output: output
            ).run()
        case .drop(let name):
            return try ReplayDrop(identity: try identity(name), configuration: configuration, output: output).run()
        }
    }
}
