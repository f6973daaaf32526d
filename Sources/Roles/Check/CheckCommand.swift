// `perennial check`: would it work?

import Configuration
import Contract
import Kafka
import Platform
import Settings

extension Command {
    static let check = Command(
        .check, "Reads the whole configuration, connects to Kafka, and says what is wrong.",
        details: """
            Answers within 10 s, one line a finding. Exit code 0: all is well; 1: something is not, such as a broker that does
            not answer; 2: the configuration is wrong.
            With consumption.policy it shows the rules of the refund policy and of its shadow as tables, and warns of rules
            that can never match; what is wrong in the file is told with line and column. Kafka is asked after that.
            The key of apple.key has to be one on P-256, and apple.ca PEM; neither is sent anywhere.
            """,
        action: .configured { invocation, configuration in
            CheckRun(configuration: configuration, output: invocation.output).run()
        })
}

struct CheckRun {
    /// The promise is 10 s; the rest is for starting and ending, on a busy machine.
    private static let limit: Duration = .seconds(5)

    let configuration: Configuration
    let output: Output

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
            return topics(access, by: deadline)
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
        do throws(KafkaFault) {
            let findings = TopicComparison.findings(planned, try access.existing(planned, by: deadline))
            let missing = findings.count { if case .missing = $0 { true } else { false } }
            if missing > 0 {
                output.data("wrong   topics  \(missing) of \(planned.count) are missing: run perennial topics apply")
            }
            for finding in findings {
                if case .missing = finding { continue }
                output.data(finding.line)
            }
            let changes = findings.count { if case .differentSettings = $0 { true } else { false } }
            if changes > 0 {
                output.data("wrong   topics  \(changes) have other settings: perennial topics apply corrects them")
            }
            if findings.isEmpty { output.data("ok      topics  \(planned.count)") }
            return findings.isEmpty ? .done : .no
        } catch {
            output.data("wrong   topics  \(error.words)")
            return .no
        }
    }
}
