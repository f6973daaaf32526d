// `inspect metrics`: reads all cells and prints the metrics.

import Churn
import Cluster
import CommandLine
import Contract
import JSON
import Log
import Platform
import Records

/// The last cells of one partition. One thread.
final class CellFold {
    private var document = JSONDocument()
    private(set) var headers = HeaderCheck(.churnCell)
    private var cells: [[UInt8]: (sums: PackedSums, asOf: Int64)] = [:]
    private(set) var clock: Int64?
    /// Records that this version cannot read.
    private(set) var unreadable = 0
    private let rules: CellRules?
    /// Only for the last record of each cell: older ones may have an older version of the time zone data.
    private(set) var hasOtherRules = false

    /// - Parameter rules: the rules of the reader.
    init(_ rules: CellRules?) { self.rules = rules }

    func add(_ record: borrowing RecordView) {
        if let rules { hasOtherRules = rules.differ(from: record.rules) }
        clock = max(clock ?? record.timestamp, record.timestamp)
        guard let key = record.copyOfKey() else { return unreadable += 1 }
        guard let value = record.value else {
            cells[key] = nil
            return
        }
        let meaning = headers.meaning(of: record)
        if meaning == .unknownType { return }
        // The earlier value of the cell is not current any more.
        cells[key] = nil
        guard meaning == .known else { return unreadable += 1 }
        do throws(JSONFault) { try document.read(value) } catch { return unreadable += 1 }
        guard let cell = CellRecord(document), cell.key.bytes == key else { return unreadable += 1 }
        cells[key] = (PackedSums(cell.sums), cell.mark.asOf)
    }

    func add(to table: inout CellTable) {
        for (bytes, cell) in cells {
            guard let key = CellKey(bytes) else { continue }
            table.replace(Sums(), by: cell.sums.sums, of: key.parts, on: key.day)
            table.see(asOf: cell.asOf)
        }
    }
}

extension InspectRun {
    func inspect(metrics query: MetricsQuery) throws(ToolFault) -> ExitCode {
        let topic = names.topic(.churnCells)
        try check(topic)
        let reader = try open([topic])
        defer { reader.close(by: Deadline(after: .seconds(5))) }
        var table = CellTable()
        var unreadable = 0
        var hasOtherRules = false
        var headers = HeaderCheck(.churnCell)
        var progress = ProgressBar.standardError()
        var places: [(end: NextOffset, clock: Int64?)] = []
        for number in 0..<partitions {
            // One partition at a time: its cells are dropped before the next one.
            let fold = CellFold(cellRules)
            let scan = PartitionScan(reader: reader, partition: TopicPartition(topic, number))
            let end = try scan.run(progress: { fraction in
                progress.update((Double(number) + fraction) / Double(partitions)) { "\(scan.partition)" }
            }) { fold.add($0) }
            fold.add(to: &table)
            unreadable += fold.unreadable
            if fold.hasOtherRules { hasOtherRules = true }
            if fold.headers.tooNew != nil { headers = fold.headers }
            places.append((end, fold.clock))
        }
        progress.end()
        tell(headers, topic)
        if unreadable > 0 {
            output.message(
                "perennial inspect: this version cannot read \(unreadable) records of \(topic); they are left out")
        }
        if hasOtherRules, let cellRules { output.message("perennial inspect: \(cellRules.warning)") }
        tell(table, query, position: position(of: topic, places))
        guard table.count == 0 else { return .done }
        output.message(
            "perennial inspect: \(topic) is empty; perennial churn writes it. \(otherEnvironment)")
        return .no
    }

    private func position(of topic: String, _ places: [(end: NextOffset, clock: Int64?)]) -> [UInt8] {
        var position = JSONWriter()
        position.array { list in
            for (number, place) in places.enumerated() {
                list.object { json in
                    json.member("topic", topic)
                    json.member("partition", number)
                    json.member("offset", place.end.value)
                    json.member("asOf", orNull: place.clock)
                }
            }
        }
        return position.bytes
    }

    private func tell(_ table: CellTable, _ query: MetricsQuery, position: [UInt8]) {
        switch query.format {
        case .json:
            var json = JSONWriter()
            json.object { json in
                MetricsReport(table, query.request, dayOf: dayOf).write(to: &json)
                json.member("position", json: position)
            }
            output.data(String(decoding: json.bytes, as: UTF8.self))
        case .csv:
            let csv = MetricsCSV(query.request)
            output.data(csv.header)
            MetricsReport.eachRow(table, csv.request, dayOf: dayOf) { output.data(csv.line($0, $1)) }
        case .table:
            guard table.count > 0 else { return }
            let report = MetricsReport(table, query.request, dayOf: dayOf)
            for line in MetricsTable(report, names.environment).lines { output.data(line) }
            guard let series = query.chart else { return }
            for line in MetricsChart.lines(series, table, query.request, dayOf: dayOf) { output.data(line) }
        }
    }
}
