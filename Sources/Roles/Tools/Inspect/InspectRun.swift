// One call of `inspect`, on any log.

import Churn
import Cluster
import CommandLine
import Contract
import Entitlements
import JSON
import Log
import Platform
import ReadAPI
import Records

struct InspectRun {
    let query: InspectQuery
    let names: Names
    /// The setting `partitions`.
    let partitions: Int32
    let rules: EntitlementRules
    let log: any RecordLog
    let output: Output
    /// The clock of this host.
    let now: Int64
    /// The partition counts of the existing topics.
    var partitionCounts: [String: Int32] = [:]
    var hasApps = true
    /// The day of a time, for cells.
    var dayOf: @Sendable (Int64) -> CivilDay = { dayInUTC($0) }
    /// The rules of this host's `churn.zone`; nil: the rules of the cells are not checked.
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
        // There may be notifications before the first worker runs, without a topic of entitlements.
        let hasEntitlements = partitionCounts[entitlements] != nil
        if hasEntitlements { try check(entitlements) }
        let events = names.topic(.entitlementEvents)
        let hasEvents = query.isJSON && partitionCounts[events] != nil
        if hasEvents { try check(events) }
        // One reader for all: each connects to the brokers again.
        let reader = try open(
            [notifications] + (hasEntitlements ? [entitlements] : []) + (hasEvents ? [events] : []))
        defer { reader.close(by: Deadline(after: .seconds(5))) }

        var published: PublishedValue?
        var headers = HeaderCheck(.entitlement)
        var progress = ProgressBar.standardError()
        if hasEntitlements {
            let answers = PartitionScan(reader: reader, partition: TopicPartition(entitlements, partition))
            try answers.run(progress: { progress.update($0) { "\(answers.partition)" } }) { record in
                guard let found = record.key, equal(found, key) else { return }
                // Only the last record of the key says anything.
                headers = HeaderCheck(.entitlement)
                switch record.value == nil ? .known : headers.meaning(of: record) {
                case .newer: published = nil
                case .known, .unknownType, .strange: published = PublishedValue(record)
                }
            }
        }
        // Read after the value, so that all notifications of the value are read.
        let told = PartitionScan(reader: reader, partition: TopicPartition(notifications, partition))
        let (fold, position) = try whatWasTold(of: key, published, told, &progress)
        progress.end()
        tell(headers, entitlements)
        tell(fold.headers, notifications)

        guard fold.count > 0 || fold.unreadable > 0 || published != nil else {
            let topics = hasEntitlements ? "\(notifications) and \(entitlements)" : notifications
            output.message(
                "perennial inspect: there is no subscription \(id): searched partition \(partition) of \(topics). "
                    + otherEnvironment)
            if let token = AppAccountToken.canonical(key) {
                output.message(
                    "perennial inspect: \(id) looks like an appAccountToken: perennial inspect account \(token)")
            }
            return .no
        }
        if !hasApps {
            output.message(
                "perennial inspect: apps is not set: entitlements and periods of non-renewing products are not known")
        }
        let report = SubscriptionReport(
            id: id, topic: notifications, partition: partition, position: position.value, fold: fold,
            published: published,
            history: hasEvents ? try history(of: key, TopicPartition(events, partition), reader) : nil, self)
        if query.isJSON {
            output.data(report.json)
        } else {
            for line in report.card(showsAll: query.showsAll) { output.data(line) }
        }
        return .done
    }

    /// Reads all notifications of the key, but not the years of other records before them.
    ///
    /// No notification of a subscription arrives before its first purchase. Its transactions contain the date of that purchase. The
    /// first period of the published value says where to look for one of these transactions.
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

    /// The greatest difference between Apple's clock and the clocks of the ingest hosts; more than any real one.
    private static let clockDifference: Int64 = 86_400_000

    private static func before(_ date: Int64) -> Int64 { date > clockDifference ? date - clockDifference : 0 }

    /// The events of the worker about this key, for programs.
    private func history(
        of key: [UInt8], _ partition: TopicPartition, _ reader: any LogReader
    ) throws(ToolFault) -> [HistoryEntry] {
        var document = JSONDocument()
        var entries: [HistoryEntry] = []
        var headers = HeaderCheck(.entitlementEvent)
        let events = PartitionScan(reader: reader, partition: partition)
        var progress = ProgressBar.standardError()
        try events.run(progress: { progress.update($0) { "\(events.partition)" } }) { record in
            guard let found = record.key, equal(found, key), let value = record.value else { return }
            if case .newer = headers.meaning(of: record) { return }
            do throws(JSONFault) { try document.read(value) } catch { return }
            if let entry = HistoryEntry(record, document) { entries.append(entry) }
        }
        progress.end()
        tell(headers, partition.topic)
        return entries.sorted(by: HistoryEntry.isNewer)
    }

    // MARK: Topics

    func open(_ topics: [String]) throws(ToolFault) -> any LogReader {
        // A name that access lists can grant: it is neither joined nor committed to, but librdkafka looks up its coordinator.
        var options = ReaderOptions(
            name: "perennial-inspect", group: "\(names.prefix).\(names.environment.rawValue).inspect", topics: topics)
        options.readsAhead = true
        // It asks many questions between short reads, and nobody waits for new records here.
        options.fetchWait = .milliseconds(2)
        do throws(LogFault) { return try log.openReader(options) } catch { throw ToolFault(.wrongUsage, error.words) }
    }

    /// With another number of partitions, keys would be in other partitions.
    func check(_ topic: String) throws(ToolFault) {
        guard let count = partitionCounts[topic] else { throw ToolFault.missing(topic: topic) }
        guard count == partitions else {
            throw ToolFault(.wrongUsage, LogFault.partitions(of: topic, are: count, not: partitions).words)
        }
    }

    /// Says that this build is too old for the topic, if it is.
    func tell(_ headers: HeaderCheck, _ topic: String) {
        if let words = headers.tooNew { output.message("perennial inspect: \(topic): \(words)") }
    }

    var otherEnvironment: String {
        let other: Contract.Environment = names.environment == .production ? .sandbox : .production
        return "If it belongs to \(other.rawValue), add --environment \(other.rawValue)"
    }
}
