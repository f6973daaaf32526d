// `perennial topics plan|apply`: every topic of the contract, created and checked.

import Cluster
package import CommandLine
import Configuration
import Contract
import Kafka
import Platform
import Settings

extension Command {
    package static let topics = Command(
        .topics, "Creates every topic with its settings, or shows what would be done.", operands: "plan|apply",
        operandCount: 1...1,
        options: [
            CommandOption(
                "format", value: "text|json", effect: "plan: json: one object, with every setting of each topic.")
        ],
        details: """
            plan shows what would be done and changes nothing. Exit code 1: there is something to do, or something is wrong.
            apply creates missing topics and corrects settings. Exit code 1: something is still wrong; each such topic is named.
            Neither deletes a topic, changes its number of partitions or moves its replicas.
            Both work on the topics of both environments, unless --environment names one.
            """,
        action: .configured { invocation, configuration in
            let verb = invocation.operands[0]
            guard verb == "plan" || verb == "apply" else {
                invocation.output.message("perennial topics: the operand must be plan or apply, not \(quoted(verb))")
                return .wrongUsage
            }
            let format = invocation.option("format") ?? "text"
            guard ["text", "json"].contains(format) else {
                invocation.output.message("perennial topics: --format must be text or json, not \(quoted(format))")
                return .wrongUsage
            }
            guard format == "text" || verb == "plan" else {
                invocation.output.message(
                    "perennial topics: --format json belongs to plan: apply prints its steps as text")
                return .wrongUsage
            }
            // The whole command ends within 30 s, even if the cluster does not answer.
            let deadline = Deadline(after: .seconds(28))
            do throws(ToolFault) {
                let access = try ClusterAccess.connect(configuration, as: "topics")
                defer { access.close() }
                return TopicsRun(
                    access: access, configuration: configuration, output: invocation.output, deadline: deadline,
                    isJSON: format == "json"
                )
                .run(applies: verb == "apply")
            } catch {
                for line in error.lines { invocation.output.message("perennial topics: \(line)") }
                return error.code
            }
        })
}

/// One call of the command, after the cluster has answered.
struct TopicsRun {
    let access: ClusterAccess
    let configuration: Configuration
    let output: Output
    let deadline: Deadline
    var isJSON = false

    private var planned: [PlannedTopic] {
        configuration.namedEnvironments.flatMap { configuration.topicPlan.topics(in: $0) }
    }

    func run(applies: Bool) -> ExitCode {
        do throws(KafkaFault) {
            let seen = try access.existing(planned, by: deadline)
            let findings = TopicComparison.findings(planned, seen)
            let report = TopicReport(planned: planned, findings: findings)
            for line in isJSON ? [report.json] : report.lines { output.data(line) }
            for warning in KeptHistory.warnings(planned, seen, configuration, by: deadline) {
                output.message("perennial topics: warning: \(warning)")
            }
            tellGrants(findings)
            let lacks = lacksBrokers(findings)
            if let lacks { output.message("perennial topics: \(lacks)") }
            if findings.isEmpty { return .done }
            return applies && lacks == nil ? try apply(findings) : .no
        } catch {
            output.message("perennial topics: \(error.words). It is safe to run the command again")
            return .gaveUp
        }
    }

    private func tellGrants(_ findings: [TopicFinding]) {
        let lacking = findings.compactMap { finding -> Right? in
            guard case .forbidden(let topic, let operation) = finding else { return nil }
            return Right(operation, .topic(topic.name))
        }
        for line in lacking.grants(configuration) { output.message("perennial topics: to grant that right: \(line)") }
    }

    /// Checked before anything is created: otherwise some topics would be created with settings that must change again.
    private func lacksBrokers(_ findings: [TopicFinding]) -> String? {
        let wanted = configuration.topicPlan.replicationFactor
        let brokers = access.cluster.brokers.count
        guard wanted > brokers, findings.contains(where: { if case .missing = $0 { true } else { false } }) else {
            return nil
        }
        return
            "nothing can be created: topics.replication.factor=\(wanted) needs as many brokers, but there are \(brokers); for "
            + "a single broker set topics.replication.factor=1 and topics.min.insync.replicas=1"
    }

    private func apply(_ findings: [TopicFinding]) throws(KafkaFault) -> ExitCode {
        let refused = try create(findings) + change(findings)
        let left = try TopicsSeen(refused: refused, pause: { pause(for: .milliseconds(100)) }).wait {
            (isLast) throws(KafkaFault) -> [TopicFinding]? in
            // If the brokers are busy, the next request decides, unless this was the last one.
            do throws(KafkaFault) {
                return TopicComparison.findings(planned, try access.existing(planned, by: deadline))
            } catch {
                guard error.remedy == .retrySameCall, !isLast else { throw error }
                return nil
            }
        } isOver: {
            deadline.remaining < Self.lastLook
        }
        for finding in left where !finding.isForPeople {
            let isRefused = refused.contains(finding.topic.name)
            output.message(
                "perennial topics: still to do: \(finding.line)"
                    + (isRefused ? "" : " (the brokers do not show it yet; it is safe to run the command again)"))
        }
        if left.isEmpty { output.data("ok      \(planned.count) topics are as they should be") }
        return left.isEmpty ? .done : .no
    }

    /// Time for a busy broker to answer the last request.
    private static let lastLook: Duration = .seconds(2)

    /// Returns the names of topics that the cluster refused, and prints the reasons.
    private func create(_ findings: [TopicFinding]) throws(KafkaFault) -> [String] {
        let topics = findings.compactMap { if case .missing(let topic) = $0 { topic } else { nil } }
        if topics.isEmpty { return [] }
        output.message("creating \(topics.count) topics...")
        let requests = topics.map { topic in
            Admin.NewTopic(
                name: topic.name, partitions: Int32(topic.partitions),
                replicationFactor: Int32(topic.replicationFactor),
                settings: topic.settings.map { ($0.name, $0.value) })
        }
        let outcomes = try access.admin.create(requests, by: deadline)
        // One cause often affects many topics; it is printed once.
        var refused: [(topics: [String], fault: KafkaFault)] = []
        for topic in topics {
            guard let fault = outcomes[topic.name] ?? nil, TopicsSeen.isRefusal(fault) else { continue }
            if let known = refused.firstIndex(where: { $0.fault.code == fault.code && $0.fault.detail == fault.detail })
            {
                refused[known].topics.append(topic.name)
            } else {
                refused.append(([topic.name], fault))
            }
        }
        for (topics, fault) in refused {
            let others = topics.count == 1 ? "" : " and \(topics.count - 1) more"
            output.message(
                "perennial topics: cannot create topic \(topics[0])\(others): \(fault.detail) (\(fault.code.name))")
        }
        return refused.flatMap(\.topics)
    }

    private func change(_ findings: [TopicFinding]) -> [String] {
        var refused: [String] = []
        for case .differentSettings(let topic, let changes) in findings {
            do throws(KafkaFault) {
                try access.admin.change(changes.map { ($0.name, $0.wanted) }, of: topic.name, by: deadline)
            } catch {
                output.message("perennial topics: \(error.words)")
                refused.append(topic.name)
            }
        }
        return refused
    }
}
