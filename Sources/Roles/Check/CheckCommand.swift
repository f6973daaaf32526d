// `perennial check`: would it work?

import Configuration
import Contract
import Kafka
import Platform
import Settings

extension Command {
    static let check = Command(
        .check, "Reads the whole configuration, connects to Kafka, and says what is wrong.", operands: "[ROLE]",
        operandCount: 0...1,
        details: """
            With ROLE (\(RoleRights.roles.map(\.rawValue).joined(separator: ", "))) it looks at the topics of that role only, tries
            each right in Kafka that the role needs, in ways that change nothing, and prints the lines of kafka-acls.sh for those
            that are lacking. Run it as the user that the role signs in as.
            Answers within 10 s, one line a finding. Exit code 0: all is well; 1: something is not, such as a broker that does
            not answer; 2: the configuration is wrong.
            With consumption.policy it shows the rules of the refund policy and of its shadow as tables, and warns of rules
            that can never match; what is wrong in the file is told with line and column. Kafka is asked after that.
            The key of apple.key has to be one on P-256, and apple.ca PEM; neither is sent anywhere.
            """,
        action: .configured { invocation, configuration in
            var role: RoleRights?
            if let name = invocation.operands.first {
                role = CommandName(rawValue: name).flatMap { RoleRights($0, configuration) }
                guard role != nil else {
                    let nearest = nearestName(to: name, among: RoleRights.roles.map(\.rawValue))
                    invocation.output.message(
                        "perennial check: there is no role \(quoted(name))"
                            + (nearest.map { "; the nearest is \($0)" } ?? ""))
                    return .wrongUsage
                }
            }
            return CheckRun(configuration: configuration, output: invocation.output, role: role).run()
        })
}

struct CheckRun {
    /// The promise is 10 s; the rest is for starting and ending, on a busy machine.
    private static let limit: Duration = .seconds(5)

    private static let rightsLimit: Duration = .seconds(3)

    let configuration: Configuration
    let output: Output
    /// nil: all topics are looked at, and no rights are tried.
    var role: RoleRights?

    func run() -> ExitCode {
        let deadline = Deadline(after: Self.limit)
        do throws(ConfigurationFaults) {
            let files = try checkedFiles()
            output.data("ok      settings")
            if files.appleKey != nil { output.data("ok      apple.key  on P-256") }
            if files.appleAuthority != nil { output.data("ok      apple.ca") }
            if let policy = files.policy { PolicyFindings(policy: policy, output: output).tell() }
        } catch {
            for fault in error.faults { output.message("perennial check: \(fault)") }
            return .wrongUsage
        }
        for warning in [LibraryVersion.librdkafka, .openSSL, .rocksDB].flatMap(\.warnings) {
            output.message("warning: \(warning)")
        }
        do throws(ClusterAccess.Unreachable) {
            let access = try ClusterAccess.connect(configuration, as: "check", by: deadline)
            defer { access.close() }
            output.data(
                "ok      kafka  brokers: \(access.cluster.brokers.count)"
                    + (access.cluster.id.map { ", cluster \($0)" } ?? ""))
            let topics = topics(access, by: deadline)
            guard let role else { return topics }
            let rights = rights(role, access, by: Deadline(after: Self.rightsLimit))
            return topics == .done ? rights : topics
        } catch {
            if error.isWrongUsage {
                for cause in error.causes { output.message("perennial check: \(cause)") }
                return .wrongUsage
            }
            for cause in error.causes { output.data("wrong   kafka  \(cause)") }
            return .no
        }
    }

    /// Throws what ingest and the answers to refund requests would refuse to start with, all of it.
    private func checkedFiles() throws(ConfigurationFaults) -> ConsumptionFiles {
        var faults: [SettingFault] = []
        do throws(ConfigurationFaults) {
            _ = try checkedPolicy(configuration)
        } catch {
            faults += error.faults
        }
        do throws(ConfigurationFaults) {
            let files = try ConsumptionFiles(configuration)
            if faults.isEmpty { return files }
        } catch {
            faults += error.faults
        }
        throw ConfigurationFaults(faults: faults)
    }

    private func topics(_ access: ClusterAccess, by deadline: Deadline) -> ExitCode {
        let planned = configuration.namedEnvironments.flatMap { configuration.topicPlan.topics(in: $0) }
            .filter { role?.topics.contains($0.name) ?? true }
        do throws(KafkaFault) {
            let seen = try access.existing(planned, by: deadline)
            let all = TopicComparison.findings(planned, seen)
            for warning in KeptHistory.warnings(planned, seen, configuration, by: deadline) {
                output.message("warning: \(warning)")
            }
            let findings = all.filter { !isForRights($0) }
            tell(findings, of: planned.count)
            let hidden = all.count { if case .forbidden(_, .describe) = $0 { true } else { false } }
            if findings.isEmpty, hidden < planned.count {
                output.data(
                    "ok      topics  \(planned.count - hidden)"
                        + (hidden == 0 ? "" : " of \(planned.count) can be seen"))
            }
            return findings.isEmpty ? .done : .no
        } catch {
            output.data("wrong   topics  \(error.words)")
            return .no
        }
    }

    /// Which rights a role lacks is told with its rights. Few roles need to read settings.
    private func isForRights(_ finding: TopicFinding) -> Bool {
        if case .forbidden = finding { role != nil } else { false }
    }

    private func tell(_ findings: [TopicFinding], of count: Int) {
        let missing = findings.count { if case .missing = $0 { true } else { false } }
        if missing > 0 {
            output.data("wrong   topics  \(missing) of \(count) are missing: run perennial topics apply")
        }
        for finding in findings {
            switch finding {
            case .missing, .forbidden: continue
            default: output.data(finding.line)
            }
        }
        let changes = findings.count { if case .differentSettings = $0 { true } else { false } }
        if changes > 0 {
            output.data("wrong   topics  \(changes) have other settings: perennial topics apply corrects them")
        }
        let lacking = findings.compactMap { finding -> Right? in
            guard case .forbidden(let topic, let operation) = finding else { return nil }
            return Right(operation, .topic(topic.name))
        }
        for operation in Set(lacking.map(\.operation)).sorted() {
            let hidden = lacking.count { $0.operation == operation }
            output.data(
                "wrong   rights  there is no right to \(operation.rawValue) \(hidden) of \(count) topics; perennial check ROLE "
                    + "looks at those of one role only")
        }
        for line in lacking.grants(configuration) { output.data("        \(line)") }
    }

    private func rights(_ role: RoleRights, _ access: ClusterAccess, by deadline: Deadline) -> ExitCode {
        let tried: TriedRights
        do throws(PropertyFault) {
            tried = TriedRights(
                try RightsTrial.answers(to: role.rights, access.admin, configuration.kafka, by: deadline))
        } catch {
            output.data("wrong   rights  \(error)")
            return .no
        }
        for words in tried.words { output.data("wrong   rights  lacking for \(words)") }
        for line in tried.lacking.grants(configuration) { output.data("        \(line)") }
        for (right, code) in tried.unknown {
            output.data(
                "wrong   rights  \(right.operation.rawValue) of \(right.resource) could not be tried: \(code.explanation)"
            )
        }
        guard tried.lacking.isEmpty, tried.unknown.isEmpty else { return .no }
        output.data("ok      rights  of \(role.role.rawValue): \(role.rights.count)")
        return .done
    }
}
