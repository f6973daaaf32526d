// `dead-letters redrive`: verifies refused notifications again, and publishes those that verify now.

import AppStore
import Cluster
import CommandLine
import Configuration
import Contract
import Ingest
import JSON
import Kafka
import Log
import Platform

struct Redrive {
    /// The results for the letters of one reason.
    private struct Tally {
        var hold = 0
        /// Counts by the reason of the new refusal, or `noVerdict`.
        var refused: [String: Int] = [:]
    }

    /// Printed in the place of a reason code.
    private static let noVerdict = "no_verdict"

    let query: LetterQuery
    let configuration: Configuration
    let policy: VerificationPolicy
    let output: Output

    /// The same policy as in ingest.
    static func policy(_ configuration: Configuration) throws(ToolFault) -> VerificationPolicy {
        do throws(ConfigurationFaults) {
            return try VerificationPolicy(configuration)
        } catch {
            throw ToolFault(.wrongUsage, error.description)
        }
    }

    func run(_ scans: [LetterScan]) throws(ToolFault) -> ExitCode {
        let judge = try judge()
        defer { judge.close() }
        let records = RecordFactory(
            app: "perennial/\(PerennialVersion.text)",
            archivesSignedPayloads: configuration.verification.archivesSignedPayloads)
        var tallies: [String: Tally] = [:]
        try query.redrive(scans, to: topics, configuration) { letter, record in
            do throws(Rejection) {
                let found = try judge.notification(
                    in: record.copyOfValue() ?? [], refusedAs: letter.reason, now: WallClock.milliseconds())
                guard let (notification, jws) = found else {
                    tallies[letter.reason, default: Tally()].refused[Self.noVerdict, default: 0] += 1
                    return []
                }
                tallies[letter.reason, default: Tally()].hold += 1
                return records.records(of: notification, jws: jws, receivedDate: letter.firstTime).map(placed)
            } catch {
                tallies[letter.reason, default: Tally()].refused[error.reason.rawValue, default: 0] += 1
                return []
            }
        }
        report(tallies)
        guard tallies.values.contains(where: { $0.refused[Self.noVerdict] != nil }) else { return .done }
        output.message(
            "perennial dead-letters: no verdict for some letters: verify.ocsp is hard, and it is not known whether the "
                + "certificates are revoked")
        return .gaveUp
    }

    private var topics: [String] {
        let ids: [TopicID] =
            configuration.verification.archivesSignedPayloads ? [.notifications, .signed] : [.notifications]
        return Contract.Environment.allCases.flatMap { environment in ids.map { name($0, environment) } }
    }

    private func name(_ topic: TopicID, _ environment: Contract.Environment) -> String {
        Names(prefix: configuration.topicPlan.prefix, environment: environment).topic(topic)
    }

    private func placed(_ record: OutgoingRecord) -> ToolRecord {
        ToolRecord(
            topic: name(record.topic, record.environment),
            partition: Partitioner.partition(of: record.key, count: Int32(configuration.topicPlan.partitions)),
            key: record.key, value: record.value, headers: record.headers, timestamp: record.timestamp)
    }

    private func judge() throws(ToolFault) -> RedriveJudge {
        do {
            let message = output.message
            return try RedriveJudge(
                policy, ocsp: configuration.verification.ocsp, message: { message("perennial dead-letters: \($0)") })
        } catch {
            throw ToolFault(.gaveUp, "\(error)")
        }
    }

    private func report(_ tallies: [String: Tally]) {
        for (reason, tally) in tallies.sorted(by: { $0.key < $1.key }) {
            output.data(query.isJSON ? Self.json(reason, tally) : Self.text(reason, tally))
        }
        let hold = tallies.values.reduce(0) { $0 + $1.hold }
        if tallies.isEmpty {
            output.message("perennial dead-letters: no letters found")
        } else if query.applies {
            output.message("perennial dead-letters: \(hold) notifications are published")
        } else {
            output.message("perennial dead-letters: nothing was written; --apply publishes the \(hold) that verify")
        }
    }

    private static func text(_ reason: String, _ tally: Tally) -> String {
        let refused = tally.refused.sorted { $0.key < $1.key }
        let again = refused.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        return "\(printable(reason))  verify now: \(tally.hold)  refused again: \(refused.reduce(0) { $0 + $1.value })"
            + (again.isEmpty ? "" : " (\(again))")
    }

    private static func json(_ reason: String, _ tally: Tally) -> String {
        var writer = JSONWriter()
        writer.object { line in
            line.member("reason", reason)
            line.member("hold", tally.hold)
            line.name("refused")
            line.object { refused in
                for (reason, count) in tally.refused.sorted(by: { $0.key < $1.key }) {
                    refused.name(text: reason)
                    refused.integer(count)
                }
            }
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
