// `inspect refunds`: Apple's requests, the answers, and the outcomes.

import Cluster
import CommandLine
import Consumption
import Contract
import JSON
import Log
import Platform

extension InspectRun {
    func inspect(refunds query: RefundsQuery) throws(ToolFault) -> ExitCode {
        let topic = names.topic(.consumption)
        try check(topic)
        let reader = try open([topic])
        defer { reader.close(by: Deadline(after: .seconds(5))) }
        let fold = RefundFold(query)
        let scan = ConsumptionScan(reader, topic: topic)
        var progress = ProgressBar.standardError()
        try scan.run(
            order(of: query), since: query.period.from,
            progress: { part, place in progress.update(part) { "\(place)" } },
            // All requests of one purchase are in one partition. Without an ID all partitions are read.
            isEnough: { query.id != nil && !fold.isEmpty }
        ) { record, _ in fold.add(record) }
        progress.end()
        tell(scan.headers, topic)
        if scan.unreadable > 0 {
            output.message(
                "perennial inspect: \(scan.unreadable) records of \(topic) were written by another version; they are left out"
            )
        }
        let found = fold.found
        if found.isEmpty {
            output.message("perennial inspect: \(nothingFound(query)). \(otherEnvironment)")
            return .no
        }
        if query.isJSON {
            output.data(json(found, fold, scan))
        } else if query.id == nil {
            for line in RefundTable(found, names.environment).lines { output.data(line) }
        } else {
            show(found, query, topic)
        }
        let isCut = fold.count > found.count || fold.hasDropped
        if isCut {
            output.message(
                "perennial inspect: only the newest \(found.count) are shown"
                    + (query.showsAll || query.id != nil ? "; --from and --to show others" : "; --all shows more"))
        }
        return .done
    }

    /// The partition of an originalTransactionId comes first.
    private func order(of query: RefundsQuery) -> [Int32] {
        let all = Array(0..<partitions)
        guard let id = query.id else { return all }
        let home = Partitioner.partition(of: Array(id.utf8), count: partitions)
        return [home] + all.filter { $0 != home }
    }

    private func nothingFound(_ query: RefundsQuery) -> String {
        let topic = names.topic(.consumption)
        let period = query.period.words.isEmpty ? "" : " \(query.period.words)"
        guard let id = query.id else { return "\(topic) has no refund requests\(period)" }
        return "there is no refund request\(period) of \(id): searched for a notificationUUID, a transactionId and an "
            + "originalTransactionId in all partitions of \(topic)"
    }

    private func show(_ found: [RefundStory], _ query: RefundsQuery, _ topic: String) {
        let shown = query.showsAll ? found[...] : found.prefix(RefundsQuery.limitCards)
        for (index, story) in shown.enumerated() {
            if index > 0 { output.data("") }
            for line in RefundCard(story, names.environment, now: now, topic: topic).lines { output.data(line) }
        }
        if shown.count < found.count {
            output.message(
                "perennial inspect: the newest \(shown.count) of \(found.count) requests are shown; --all shows all")
        }
    }

    private func json(_ found: [RefundStory], _ fold: RefundFold, _ scan: ConsumptionScan) -> String {
        var writer = JSONWriter(capacity: 4096 * found.count)
        writer.object { report in
            report.member("environment", names.environment.rawValue)
            report.name("refunds")
            report.array { list in for story in found { story.write(to: &list) } }
            report.member("refundsTruncated", fold.count > found.count || fold.hasDropped)
            report.name("position")
            scan.writePosition(to: &report)
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
