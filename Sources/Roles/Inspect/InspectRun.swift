// One call of `inspect`, over any log.

import Churn
import Contract
import Entitlements
import JSON
import Log
import Platform
import ReadAPI

struct InspectRun {
    let query: InspectQuery
    let names: Names
    /// As the settings have it.
    let partitions: Int32
    let rules: EntitlementRules
    let log: any RecordLog
    let output: Output
    /// This host's clock.
    let now: Int64
    /// Of the topics that there are.
    var partitionCounts: [String: Int32] = [:]
    var hasApps = true
    /// Of cells.
    var dayOf: @Sendable (Int64) -> CivilDay = { dayInUTC($0) }
    /// Of this host's `churn.zone`; nil: those of the cells are not looked at.
    var cellRules: CellRules?

    func run() throws(ToolFault) -> ExitCode {
        switch query.subject {
        case .subscription(let id): return try inspect(subscription: id)
        case .account(let token): return try inspect(account: token)
        case .metrics(let query): return try inspect(metrics: query)
        case .refunds(let query): return try inspect(refunds: query)
        }
    }

    // MARK: Subscriptions

    private func inspect(subscription id: String) throws(ToolFault) -> ExitCode {
        let key = Array(id.utf8)
        let (notifications, entitlements) = (names.topic(.notifications), names.topic(.entitlements))
        let partition = Partitioner.partition(of: key, count: partitions)
        try check(notifications)
        // Before the first worker ran there may be notifications, and no topic of answers.
        let hasEntitlements = partitionCounts[entitlements] != nil
        if hasEntitlements { try check(entitlements) }
        let reader = try open(hasEntitlements ? [notifications, entitlements] : [notifications])
        defer { reader.close(by: Deadline(after: .seconds(5))) }

        var published: PublishedValue?
        var progress = ProgressBar.standardError()
        if hasEntitlements {
            let answers = PartitionScan(reader: reader, partition: TopicPartition(entitlements, partition))
            try answers.run(progress: { progress.update($0) { "\(answers.partition)" } }) { record in
                if let found = record.key, equal(found, key) { published = PublishedValue(record) }
            }
        }
        // Afterwards: all that the value rests on is there by now.
        let told = PartitionScan(reader: reader, partition: TopicPartition(notifications, partition))
        let (fold, position) = try whatWasTold(of: key, published, told, &progress)
        progress.end()

        guard fold.count > 0 || fold.unreadable > 0 || published != nil else {
            let topics = hasEntitlements ? "\(notifications) and \(entitlements)" : notifications
            output.message(
                "perennial inspect: there is no subscription \(id): looked into partition \(partition) of \(topics). "
                    + otherEnvironment)
            if let token = AppAccountToken.canonical(key) {
                output.message(
                    "perennial inspect: \(id) looks like an appAccountToken: perennial inspect account \(token)")
            }
            return .no
        }
        if !hasApps {
            output.message(
                "perennial inspect: apps is not set: what products are for, and how long passes last, is not known")
        }
        let report = SubscriptionReport(
            id: id, topic: notifications, partition: partition, position: position.value, fold: fold,
            published: published, history: try history(of: key, partition), self)
        if query.isJSON {
            output.data(report.json)
        } else {
            for line in report.card(showsAll: query.showsAll) { output.data(line) }
        }
        return .done
    }

    /// All notifications of the key, without the years of others and of ticks that lie before them.
    ///
    /// Nothing of a subscription came before it was bought for the first time. When that was its transactions say; where to begin
    /// to look for one, the first period of the published value.
    private func whatWasTold(
        of key: [UInt8], _ published: PublishedValue?, _ scan: PartitionScan, _ progress: inout ProgressBar
    ) throws(ToolFault) -> (SubscriptionFold, NextOffset) {
        var start = published?.firstPeriod.map(Self.before)
        while true {
            let fold = SubscriptionFold(key: key)
            let first: NextOffset? = if let start { try scan.start(at: start) } else { nil }
            let position = try scan.run(from: first, progress: { progress.update($0) { "\(scan.partition)" } }) {
                fold.add($0)
            }
            guard let begun = start else { return (fold, position) }
            let bought = fold.firstPurchase.map(Self.before)
            if let bought, bought >= begun { return (fold, position) }
            start = bought
        }
    }

    /// Of Apple's clock and those of the hosts that take notifications; more than any of them is wrong.
    private static let clockDifference: Int64 = 86_400_000

    private static func before(_ date: Int64) -> Int64 { date > clockDifference ? date - clockDifference : 0 }

    /// What the worker has told of it, for programs; nil where there is no such topic.
    private func history(of key: [UInt8], _ partition: Int32) throws(ToolFault) -> [HistoryEntry]? {
        let topic = names.topic(.entitlementEvents)
        guard query.isJSON, partitionCounts[topic] != nil else { return nil }
        try check(topic)
        let reader = try open([topic])
        defer { reader.close(by: Deadline(after: .seconds(5))) }
        var document = JSONDocument()
        var entries: [HistoryEntry] = []
        let events = PartitionScan(reader: reader, partition: TopicPartition(topic, partition))
        var progress = ProgressBar.standardError()
        try events.run(progress: { progress.update($0) { "\(events.partition)" } }) { record in
            guard let found = record.key, equal(found, key), let value = record.value else { return }
            do throws(JSONFault) { try document.read(value) } catch { return }
            if let entry = HistoryEntry(record, document) { entries.append(entry) }
        }
        progress.end()
        return entries.sorted(by: HistoryEntry.isNewer)
    }

    // MARK: Topics

    func open(_ topics: [String]) throws(ToolFault) -> any LogReader {
        // A name that access lists can give: it is neither joined nor committed to, but the library looks its coordinator up.
        var options = ReaderOptions(
            name: "perennial-inspect", group: "\(names.prefix).\(names.environment.rawValue).inspect", topics: topics)
        options.readsAhead = true
        do throws(LogFault) { return try log.openReader(options) } catch { throw ToolFault(.wrongUsage, error.words) }
    }

    /// Keys would be in other places.
    func check(_ topic: String) throws(ToolFault) {
        guard let count = partitionCounts[topic] else {
            throw ToolFault(
                .wrongUsage,
                "the topic \(topic) is not there: check topic.prefix, and whether perennial topics apply was run")
        }
        guard count == partitions else {
            throw ToolFault(.wrongUsage, LogFault.partitions(of: topic, are: count, not: partitions).words)
        }
    }

    var otherEnvironment: String {
        let other: Contract.Environment = names.environment == .production ? .sandbox : .production
        return "If it is of \(other.rawValue): --environment \(other.rawValue)"
    }
}
