// `perennial check`: whether a configuration would work.

import Cluster
package import CommandLine
import Configuration
import Contract
import HTTP
import Ingest
import Kafka
import Platform
import Settings
import Workers

extension Command {
    package static let check = Command(
        .check, "Reads the whole configuration, connects to Kafka, and says what is wrong.", operands: "[ROLE]",
        operandCount: 0...1,
        details: """
            With ROLE (\(CommandName.roles.map(\.rawValue).joined(separator: ", "))) it checks only what that role needs: its settings
            and files, its topics, and each of its rights in Kafka. It tries the rights in ways that change nothing, and prints the lines
            of kafka-acls.sh for those that are missing. Run it as the user that the role signs in as.
            It answers within 10 s, with one line per finding: ok, warning or fault, what was checked, and what to do. Exit code 0: no
            fault; 1: a fault, such as a broker that does not answer; 2: the configuration is wrong (standard error says how).
            With consumption.policy it shows the rules of the refund policy and of its shadow as tables, and warns of rules that can
            never match. It reports errors in that file with line and column, before it connects to Kafka.
            apple.key must be a key on the curve P-256, and apple.ca must be PEM; neither is sent anywhere.
            """,
        action: .configured { invocation, configuration in
            var role: RoleRights?
            if let name = invocation.operands.first {
                role = CommandName.role(named: name).flatMap { RoleRights($0, configuration) }
                guard role != nil else {
                    let nearest = nearestName(to: name, among: CommandName.roles.map(\.rawValue))
                    invocation.output.message(
                        "perennial check: there is no role \(quoted(name))"
                            + (nearest.map { "; the nearest is \($0)" } ?? ""))
                    return .wrongUsage
                }
            }
            return CheckRun(
                configuration: configuration, lines: CheckLines(output: invocation.output), role: role,
                message: invocation.output.message
            ).run()
        })
}

struct CheckRun {
    /// The command promises an answer within 10 s; the rest is for starting and ending on a busy machine.
    private static let limit: Duration = .seconds(5)

    private static let rightsLimit: Duration = .seconds(3)

    let configuration: Configuration
    let lines: CheckLines
    /// nil: everything except rights is checked.
    var role: RoleRights?
    /// Prints a fault of the configuration.
    let message: @Sendable (String) -> Void

    func run() -> ExitCode {
        let deadline = Deadline(after: Self.limit)
        let files: ExitCode
        do throws(ConfigurationFaults) {
            files = try self.files()
        } catch {
            for fault in error.faults { message("perennial check: \(fault)") }
            return .wrongUsage
        }
        tellLibraries()
        do throws(ToolFault) {
            let access = try ClusterAccess.connect(configuration, as: "check", by: deadline)
            defer { access.close() }
            lines.tell(
                .ok, "kafka",
                "brokers: \(access.cluster.brokers.count)" + (access.cluster.id.map { ", cluster \($0)" } ?? ""))
            let topics = topics(access, by: deadline)
            let rights = role.map { self.rights($0, access, by: Deadline(after: Self.rightsLimit)) } ?? ExitCode.done
            return [files, topics, rights].first { $0 != .done } ?? .done
        } catch {
            guard error.code != .wrongUsage else {
                for line in error.lines { message("perennial check: \(line)") }
                return .wrongUsage
            }
            for cause in error.lines { lines.tell(.fault, "kafka", cause) }
            return .no
        }
    }

    private func isLookedAt(_ role: CommandName) -> Bool { self.role.map { $0.role == role } ?? true }

    private func tellLibraries() {
        for library in LibraryVersion.all {
            for warning in library.warnings { lines.tell(.warning, "library", warning) }
        }
    }

    /// Throws all faults of the files that ingest and the consumption worker would refuse.
    private func files() throws(ConfigurationFaults) -> ExitCode {
        var faults: [SettingFault] = []
        var term: CertificateTerm?
        if isLookedAt(.ingest) {
            do throws(ConfigurationFaults) {
                term = try checkedPolicy(configuration).term
            } catch {
                faults += error.faults
            }
        }
        var files: ConsumptionFiles?
        if isLookedAt(.consumption) {
            do throws(ConfigurationFaults) {
                files = try ConsumptionFiles(configuration)
            } catch {
                faults += error.faults
            }
        }
        guard faults.isEmpty else { throw ConfigurationFaults(faults: faults) }
        lines.tell(.ok, "settings")
        for warning in configuration.warnings { lines.tell(.warning, "settings", warning) }
        if let files { tell(files) }
        return term.map(tell) ?? .done
    }

    private func tell(_ files: ConsumptionFiles) {
        if files.appleKey != nil { lines.tell(.ok, "apple.key", "on P-256") }
        if files.appleAuthority != nil { lines.tell(.ok, "apple.ca") }
        if let policy = files.policy { PolicyFindings(policy: policy, lines: lines).tell() }
    }

    private func tell(_ term: CertificateTerm) -> ExitCode {
        let (now, subject) = (WallClock.milliseconds(), "ingest.tls.certificate")
        if let trouble = term.trouble(at: now) {
            lines.tell(.fault, subject, trouble)
            return .no
        }
        if term.hasRSAKey {
            lines.tell(
                .warning, subject,
                "its key is RSA: each new connection costs ingest almost twice as much as with ECDSA on P-256, also in a "
                    + "flood of connections. Get a certificate with an ECDSA key (certbot: --key-type ecdsa)")
        }
        if let warning = term.warning(at: now) {
            lines.tell(.warning, subject, warning)
        } else {
            lines.tell(.ok, subject, "\(term.subject), until \(shownTime(term.notAfter)) UTC")
        }
        return .done
    }

    private func topics(_ access: ClusterAccess, by deadline: Deadline) -> ExitCode {
        let planned = configuration.namedEnvironments.flatMap { configuration.topicPlan.topics(in: $0) }
            .filter { role?.topics.contains($0.name) ?? true }
        do throws(KafkaFault) {
            let seen = try access.existing(planned, by: deadline)
            let all = TopicComparison.findings(planned, seen)
            for warning in KeptHistory.warnings(planned, seen, configuration, by: deadline) {
                lines.tell(.warning, "topics", warning)
            }
            let findings = all.filter { !isForRights($0) }
            tell(findings, of: planned.count)
            let hidden = all.count { if case .forbidden(_, .describe) = $0 { true } else { false } }
            if findings.isEmpty, hidden < planned.count {
                lines.tell(
                    .ok, "topics",
                    "\(planned.count - hidden)" + (hidden == 0 ? "" : " of \(planned.count) are visible"))
            }
            return findings.isEmpty ? .done : .no
        } catch {
            lines.tell(.fault, "topics", error.words)
            return .no
        }
    }

    /// With a role, missing rights are reported with its rights: few roles need to read the settings of topics.
    private func isForRights(_ finding: TopicFinding) -> Bool {
        if case .forbidden = finding { role != nil } else { false }
    }

    private func tell(_ findings: [TopicFinding], of count: Int) {
        let missing = findings.count { if case .missing = $0 { true } else { false } }
        if missing > 0 {
            lines.tell(.fault, "topics", "\(missing) of \(count) topics are missing: run perennial topics apply")
        }
        for finding in findings {
            switch finding {
            case .missing, .forbidden: continue
            default: lines.tell(.fault, "topics", "\(finding.topic.name): \(finding.words)")
            }
        }
        let changes = findings.count { if case .differentSettings = $0 { true } else { false } }
        if changes > 0 {
            lines.tell(.fault, "topics", "\(changes) topics have other settings: perennial topics apply corrects them")
        }
        let lacking = findings.compactMap { finding -> Right? in
            guard case .forbidden(let topic, let operation) = finding else { return nil }
            return Right(operation, .topic(topic.name))
        }
        for operation in Set(lacking.map(\.operation)).sorted() {
            let hidden = lacking.count { $0.operation == operation }
            lines.tell(
                .fault, "rights",
                "this user has no right to \(operation.rawValue) \(hidden) of \(count) topics; perennial check ROLE checks "
                    + "only the topics of one role")
        }
        for line in lacking.grants(configuration) { lines.more(line) }
    }

    private func rights(_ role: RoleRights, _ access: ClusterAccess, by deadline: Deadline) -> ExitCode {
        let tried: TriedRights
        do throws(PropertyFault) {
            tried = TriedRights(
                try RightsTrial.answers(to: role.rights, access.admin, configuration.clientProperties, by: deadline))
        } catch {
            lines.tell(.fault, "rights", "\(error)")
            return .no
        }
        for words in tried.words { lines.tell(.fault, "rights", "missing for \(words)") }
        for line in tried.lacking.grants(configuration) { lines.more(line) }
        for (right, code) in tried.unknown {
            lines.tell(
                .fault, "rights",
                "\(right.operation.rawValue) of \(right.resource) could not be tried: \(code.explanation)")
        }
        guard tried.lacking.isEmpty, tried.unknown.isEmpty else { return .no }
        lines.tell(.ok, "rights", "of \(role.role.rawValue): \(role.rights.count)")
        return .done
    }
}
