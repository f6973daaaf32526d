// What one account owns, in all apps.

import Cluster
import CommandLine
import Contract
import Entitlements
import JSON
import Log
import Platform
import Records

struct AccountReport: Sendable {
    /// One record of `accounts`, unchanged.
    struct Binding: Sendable {
        let originalTransactionId: [UInt8]
        let offset: Int64
        let bytes: [UInt8]
        /// nil: this version cannot read it.
        let subscription: AccountSubscription?
    }

    let token: String
    let environment: Contract.Environment
    let topic: String
    let partition: Int32
    /// The offset after the last record that was read.
    let position: Int64
    /// The greatest timestamp in the partition; nil: the partition is empty.
    let clock: Int64?
    let instant: Int64
    let isAsked: Bool
    /// Sorted by original transaction id.
    let bindings: [Binding]

    var subscriptions: [AccountSubscription] { bindings.compactMap(\.subscription) }
    var account: Account { Account(subscriptions, at: instant) }
}

/// Takes every record of a partition of `accounts`, and keeps the last records of one account. One thread.
final class BindingFold {
    private let beginning: [UInt8]
    private var document = JSONDocument()
    private(set) var headers = HeaderCheck(.account)
    private var found: [[UInt8]: AccountReport.Binding] = [:]
    private(set) var clock: Int64?

    init(token: String) { beginning = Array("\(token)|".utf8) }

    func add(_ record: borrowing RecordView) {
        clock = max(clock ?? record.timestamp, record.timestamp)
        guard let key = record.key, begins(key, with: beginning), let bytes = record.copyOfKey() else { return }
        let id = Array(bytes.dropFirst(beginning.count))
        guard let value = record.copyOfValue() else {
            found[id] = nil
            return
        }
        let meaning = headers.meaning(of: record)
        if meaning == .unknownType { return }
        found[id] = AccountReport.Binding(
            originalTransactionId: id, offset: record.offset, bytes: value,
            subscription: meaning == .known ? read(value) : nil)
    }

    private func read(_ value: [UInt8]) -> AccountSubscription? {
        do throws(JSONFault) { try document.read(value.span) } catch { return nil }
        return AccountSubscription(document)
    }

    var bindings: [AccountReport.Binding] {
        found.values.sorted { $0.originalTransactionId.lexicographicallyPrecedes($1.originalTransactionId) }
    }
}

extension InspectRun {
    func inspect(account token: String) throws(ToolFault) -> ExitCode {
        let topic = names.topic(.accounts)
        try check(topic)
        let partition = Partitioner.partition(of: Array(token.utf8), count: partitions)
        let reader = try open([topic])
        defer { reader.close(by: Deadline(after: .seconds(5))) }
        let fold = BindingFold(token: token)
        var progress = ProgressBar.standardError()
        let scan = PartitionScan(reader: reader, partition: TopicPartition(topic, partition))
        let position = try scan.run(progress: { progress.update($0) { "\(scan.partition)" } }) { fold.add($0) }
        progress.end()
        tell(fold.headers, topic)
        let bindings = fold.bindings
        guard !bindings.isEmpty else {
            output.message(
                "perennial inspect: the account \(token) owns nothing: searched partition \(partition) of \(topic). "
                    + otherEnvironment)
            return .no
        }
        if let instant = query.instant { try check(bindings, tellOf: instant) }
        let report = AccountReport(
            token: token, environment: names.environment, topic: topic, partition: partition, position: position.value,
            clock: fold.clock, instant: query.instant ?? now, isAsked: query.instant != nil, bindings: bindings)
        if query.isJSON {
            output.data(report.json)
        } else {
            for line in report.card { output.data(line) }
        }
        return .done
    }

    /// The topic keeps only the last record of each subscription, which does not contain earlier states.
    private func check(_ bindings: [AccountReport.Binding], tellOf instant: Int64) throws(ToolFault) {
        let latest = bindings.compactMap { binding in
            binding.subscription.flatMap { found in found.asOf.map { (id: "\(found.originalTransactionId)", asOf: $0) }
            }
        }.max { $0.asOf < $1.asOf }
        guard let latest, instant < latest.asOf else { return }
        let id = shownText(latest.id)
        throw ToolFault(
            .wrongUsage,
            "the state of the account at \(shownTime(instant)) is not known: the topic keeps only the last record of each "
                + "subscription, and the record of \(id) is from \(shownTime(latest.asOf)). Ask for a later time, or for "
                + "one subscription: perennial inspect subscription \(id) --at")
    }
}
