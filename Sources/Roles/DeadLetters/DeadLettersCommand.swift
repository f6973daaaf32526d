// `perennial dead-letters list|show|redrive`: what was refused, and a second chance for it.

import AppStore
import Configuration
import Contract
import Kafka
import Platform
import Settings

extension Command {
    static let deadLetters = Command(
        .deadLetters, "Lists, shows and redrives notifications that were refused, and lists workers' dead letters.",
        operands: "list|show|redrive [rejected|WORKER] [LETTER]", operandCount: 1...3,
        options: [
            CommandOption("reason", value: "CODE", effect: "Only letters with this reason; several with commas."),
            CommandOption(
                "since", value: "TIME",
                effect: "Only letters that came since then: `2h`, `7d`, `2026-11-20` or `2026-11-20T10:00:00Z` (UTC)."),
            CommandOption(
                "limit", value: "COUNT",
                effect:
                    "list: the newest COUNT, \(LetterQuery.defaultListLimit) by default. redrive: the first COUNT, all by "
                    + "default."),
            CommandOption("format", value: "text|json", effect: "json: one object a line."),
            CommandOption("raw", effect: "show: only the bytes of the letter."),
            CommandOption("apply", effect: "redrive: publishes what holds. Without it nothing is written."),
        ],
        details: """
            LETTER is PARTITION:OFFSET, or the beginning of a key (the SHA-256 of what was refused), as list shows them.
            show decodes the signed payload of a notification. It verifies nothing.
            redrive verifies refused notifications again, with the settings as they are now, and publishes those that hold as
            ingest would have, received when they first came. What was refused as revoked is refused again. Letters stay where they are: a second redrive publishes them again,
            which readers take for the repetitions that they are. Workers' dead letters cannot be redriven in this version.
            Topics of both environments, unless --environment names one.
            Exit code 1: show has found no such letter. 3: Kafka did not answer, or did not take everything, or there was no
            verdict because verify.ocsp is hard and Apple did not say whether the certificates are revoked.
            """,
        action: .configured { invocation, configuration in
            let query: LetterQuery
            do throws(SettingFault) {
                query = try LetterQuery(invocation, now: WallClock.milliseconds())
            } catch {
                invocation.output.message("perennial dead-letters: \(error)")
                return .wrongUsage
            }
            do throws(DeadLettersFault) {
                return try DeadLettersRun(query: query, configuration: configuration, output: invocation.output).run()
            } catch {
                for line in error.lines { invocation.output.message("perennial dead-letters: \(line)") }
                return error.code
            }
        })
}

/// Why a call ended early.
struct DeadLettersFault: Error {
    let code: ExitCode
    let lines: [String]

    init(_ code: ExitCode, _ lines: String...) {
        self.code = code
        self.lines = lines
    }

    init(_ unreachable: ClusterAccess.Unreachable) {
        code = unreachable.isWrongUsage ? .wrongUsage : .gaveUp
        lines = unreachable.causes
    }

    init(_ fault: KafkaFault) { self.init(.gaveUp, fault.words) }
}

/// One call of the command.
struct DeadLettersRun {
    let query: LetterQuery
    let configuration: Configuration
    let output: Output

    func run() throws(DeadLettersFault) -> ExitCode {
        // What is wrong with the settings is told before anything connects.
        let policy = query.verb == .redrive ? try redrivePolicy() : nil
        let scans = try scans()
        switch query.verb {
        case .list: return try LetterList(query: query, output: output).run(scans)
        case .show: return try LetterCard(query: query, output: output).run(scans)
        case .redrive:
            guard let policy else { preconditionFailure("a redrive has a policy") }
            return try Redrive(query: query, configuration: configuration, policy: policy, output: output).run(scans)
        }
    }

    /// One of each environment.
    private func scans() throws(DeadLettersFault) -> [LetterScan] {
        let cluster: Admin.Cluster
        do throws(ClusterAccess.Unreachable) {
            let access = try ClusterAccess.connect(configuration, as: "dead-letters", by: Deadline(after: .seconds(10)))
            cluster = access.cluster
            access.close()
        } catch {
            throw DeadLettersFault(error)
        }
        var scans: [LetterScan] = []
        for environment in configuration.namedEnvironments {
            let prefix = configuration.topicPlan.prefix
            let name = Names(prefix: prefix, environment: environment).topic(query.topic)
            guard let topic = cluster.topics.first(where: { $0.name == name }) else {
                throw DeadLettersFault(
                    .wrongUsage,
                    "the topic \(name) is not there: check topic.prefix, and whether perennial topics apply was run")
            }
            scans.append(
                LetterScan(
                    environment: environment, topic: name, group: "\(prefix).\(environment.rawValue).dead-letters",
                    partitions: topic.partitions.map(\.id),
                    kafka: configuration.kafka))
        }
        return scans
    }

    private func redrivePolicy() throws(DeadLettersFault) -> VerificationPolicy {
        guard query.topic == .rejected else {
            throw DeadLettersFault(.wrongUsage, "only rejected can be redriven in this version")
        }
        guard !configuration.apps.isEmpty else {
            throw DeadLettersFault(
                .wrongUsage, "apps is not set: redrive has to know which apps are yours; name the JSON file")
        }
        return try Redrive.policy(configuration)
    }
}
