// `perennial dead-letters list|show|redrive`: refused notifications and dead letters.

import AppStore
import Cluster
package import CommandLine
import Configuration
import Contract
import Kafka
import Platform
import Settings

extension Command {
    package static let deadLetters = Command(
        .deadLetters, "Lists, shows and redrives refused notifications and the dead letters of workers.",
        operands: "list|show|redrive [rejected|WORKER] [LETTER]", operandCount: 1...3,
        options: [
            CommandOption(
                "reason", value: "CODE", effect: "Only letters with this reason; separate several with commas."),
            CommandOption(
                "since", value: "TIME",
                effect: "Only letters written since then: `2h`, `7d`, `2026-11-20` or `2026-11-20T10:00:00Z` (UTC)."),
            CommandOption(
                "limit", value: "COUNT",
                effect:
                    "list: the newest COUNT, \(LetterQuery.defaultListLimit) by default. redrive: the first COUNT, "
                    + "all by default."),
            CommandOption("format", value: "text|json", effect: "json: one object per line."),
            CommandOption("raw", effect: "show: only the bytes of the letter."),
            CommandOption(
                "apply", effect: "redrive: publishes what verifies or can be redriven. Without it nothing is written."),
        ],
        details: """
            Without a name: rejected. WORKER is entitlements, churn or consumption: the records that this worker could not process.
            LETTER is PARTITION:OFFSET, or the beginning of a key, as list shows them (in rejected: the SHA-256 of what was refused).
            show decodes the signed payload of a notification. It does not verify it.
            redrive verifies refused notifications again, with the settings as they are now, and publishes those that verify as ingest
            would have, with the time at which they first arrived. A letter with the reason revoked is refused again.
            redrive WORKER publishes records to the topics that the worker read them from, with their key, value and headers and a
            header attempt that counts. Every reader of that topic sees them again. Letters of timers, settled keys and gaps cannot be
            redriven.
            Letters stay where they are. A second redrive publishes them again, and readers recognise them as repetitions. Topics of both
            environments, unless --environment names one.
            Exit code 1: show found no such letter. 3: Kafka did not answer or did not accept all records, or there was no verdict because
            verify.ocsp is hard and Apple did not say if the certificates are revoked.
            """,
        action: .configured { invocation, configuration in
            let query: LetterQuery
            do throws(SettingFault) {
                query = try LetterQuery(invocation, now: WallClock.milliseconds())
            } catch {
                invocation.output.message("perennial dead-letters: \(error)")
                return .wrongUsage
            }
            do throws(ToolFault) {
                return try DeadLettersRun(query: query, configuration: configuration, output: invocation.output).run()
            } catch {
                for line in error.lines { invocation.output.message("perennial dead-letters: \(line)") }
                return error.code
            }
        })
}

/// One call of the command.
struct DeadLettersRun {
    let query: LetterQuery
    let configuration: Configuration
    let output: Output

    func run() throws(ToolFault) -> ExitCode {
        // Faults of the settings are reported before anything connects.
        let policy = query.verb == .redrive && query.topic == .rejected ? try redrivePolicy() : nil
        let scans = try scans()
        switch query.verb {
        case .list: return try LetterList(query: query, output: output).run(scans)
        case .show: return try LetterCard(query: query, output: output).run(scans)
        case .redrive:
            if case .deadLetters(let worker) = query.topic {
                return try WorkerRedrive(query: query, worker: worker, configuration: configuration, output: output)
                    .run(scans)
            }
            guard let policy else { preconditionFailure("a redrive of refused notifications has a policy") }
            return try Redrive(query: query, configuration: configuration, policy: policy, output: output).run(scans)
        }
    }

    /// One scan for each environment.
    private func scans() throws(ToolFault) -> [LetterScan] {
        let cluster = try ClusterAccess.cluster(configuration, as: "dead-letters")
        var scans: [LetterScan] = []
        for environment in configuration.namedEnvironments {
            let prefix = configuration.topicPlan.prefix
            let name = Names(prefix: prefix, environment: environment).topic(query.topic)
            guard let topic = cluster.topics.first(where: { $0.name == name }) else {
                throw ToolFault.missing(topic: name)
            }
            scans.append(
                LetterScan(
                    environment: environment, topic: name, group: "\(prefix).\(environment.rawValue).dead-letters",
                    partitions: topic.partitions.map(\.id),
                    kafka: configuration.clientProperties))
        }
        return scans
    }

    private func redrivePolicy() throws(ToolFault) -> VerificationPolicy {
        guard !configuration.apps.isEmpty else {
            throw ToolFault(
                .wrongUsage, "apps is not set: redrive needs to know which apps are yours; name the JSON file")
        }
        return try Redrive.policy(configuration)
    }
}
