// `perennial replay`: a worker once more, beside the live one.

import Configuration
import Contract
import Platform
import Settings

extension Command {
    static let replay = Command(
        .replay, "Runs a worker again from the beginning into topics of its own, beside the live one.",
        operands: "[WORKER]", operandCount: 0...1,
        options: [
            CommandOption(
                "name", value: "NAME", effect: "Begins the replay of this name, goes on with it, or joins it."),
            CommandOption(
                "from", value: "TIME|PARTITION:OFFSET[,...]",
                effect:
                    "Where output begins; the state is built from the beginning in any case. TIME: `2h`, `7d`, `2026-11-20` or "
                    + "`2026-11-20T10:00:00Z` (UTC)."),
            CommandOption("rate", value: "N", effect: "At most N records a second, for each process."),
            CommandOption("follow", effect: "Goes on at the end, until a signal comes."),
            CommandOption("incomplete", effect: "Runs although the first notifications are gone."),
            CommandOption("list", effect: "Shows the replays that there are."),
            CommandOption("format", value: "text|json", effect: "--list: json: one object a line."),
            CommandOption(
                "drop", value: "NAME", effect: "Removes a replay: its topics, its group, its state on this host."),
        ],
        details: """
            WORKER is \(Worker.allCases.map(\.rawValue).joined(separator: ", ")). Every topic T that the worker writes has a shadow, T.replay-NAME, which the replay
            makes as T is made. It reads the live inputs, and nothing of the live outputs, group or state is touched. Nothing is
            ever sent. Give it the settings of the live worker, or those that are to be tried.
            Health and metrics are served only when the flag --admin.listen says where: the usual port is the live worker's.
            Several processes may share a replay: each needs a worker.slot of its own, and all the same settings and --from.
            It ends when every partition is at the end that it had at the start. SIGTERM and SIGINT stop it sooner. Either way,
            and after a kill, the same command goes on where it was.
            Exit code 0: it is at its end, or was stopped by a signal; 1: --drop found nothing, or the replay runs; 2: the
            arguments, settings or topics are wrong, or the replay was begun with others; 3: Kafka did not answer, the worker had to
            end, or it cannot go on at some partitions and all others are at their end: each is told with what is to be done.
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
            guard let worker = query.worker else { throw ToolFault(.wrongUsage, "of which worker?") }
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
