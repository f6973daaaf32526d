// Compares what the workers have written with the oracle.

/// All input is given partition by partition, in order.
public struct LedgerCheck {
    /// Empty if everything is right.
    public private(set) var wrong: [String] = []

    public init(
        prefix: String = "", partitions: Int32, events: [LedgerRecord], rows: [LedgerRecord], told: [LedgerRecord],
        totals: [LedgerRecord], letters: [LedgerRecord]
    ) {
        let oracle = LedgerOracle(prefix: prefix, events: events, rows: rows, partitions: partitions)
        for partition in 0..<partitions {
            let mine = told.filter { $0.partition == partition }
            let isOfRow = { (record: LedgerRecord) in record.headers["id"]?.hasPrefix("\(prefix)rows-") == true }
            compare(mine.filter { !isOfRow($0) }, oracle.told[partition] ?? [], "partition \(partition)")
            compare(mine.filter(isOfRow), oracle.rowsTold[partition] ?? [], "rows of partition \(partition)")
            compareTotals(totals.filter { $0.partition == partition }, oracle.totals[partition] ?? [:], partition)
        }
        compareCarriedRows(told)
        compareLetters(letters, oracle)
        compareMisplaced(rows, oracle)
    }

    private mutating func compare(_ records: [LedgerRecord], _ expected: [Expected], _ what: String) {
        let found = records.map { record in
            Expected(
                id: record.headers["id"] ?? "", key: record.keyText, text: Self.withoutRow(record.valueText),
                timestamp: record.timestamp, source: record.headers["source"] ?? "")
        }
        for record in records where record.headerNames != ["id", "schema", "app", "source"] {
            wrong.append("\(what): headers of \(record.headers["id"] ?? "?"): \(record.headerNames)")
        }
        guard found != expected else { return }
        let place =
            zip(found, expected).enumerated().first { $0.element.0 != $0.element.1 }?.offset
            ?? min(found.count, expected.count)
        let byID = Dictionary(found.map { ($0.id, $0) }) { first, _ in first }
        let missing = expected.filter { byID[$0.id] == nil }
        let other = expected.filter { byID[$0.id] != nil && byID[$0.id] != $0 }
        wrong.append("missing \(missing.map(\.id)), different \(other.count), seen twice \(found.count - byID.count)")
        wrong.append(
            "\(what): \(found.count) outputs, expected \(expected.count); the first difference is at \(place): "
                + "\(place < found.count ? "\(found[place])" : "nothing") instead of "
                + "\(place < expected.count ? "\(expected[place])" : "nothing")")
    }

    private static func withoutRow(_ text: String) -> String {
        guard text.hasPrefix("sum "), let place = text.firstRange(of: " row ") else { return text }
        return text[..<place.upperBound] + "?"
    }

    /// The row that a sum carries is the last one that was emitted for its key.
    private mutating func compareCarriedRows(_ told: [LedgerRecord]) {
        var newest: [String: String] = [:]
        for record in told {
            let words = record.valueText.split(separator: " ").map(String.init)
            if words[0] == "row" { newest[record.keyText] = words[1] }
            if words[0] == "sum", words[6] != newest[record.keyText] ?? "0" {
                wrong.append("\(record.valueText) carries another row than \(newest[record.keyText] ?? "0")")
            }
        }
    }

    /// When commits happen is random. So only some values of a total are published, in its order, ending with the last, and none
    /// of them twice.
    private mutating func compareTotals(_ records: [LedgerRecord], _ expected: [String: [String?]], _ partition: Int32)
    {
        let published = Dictionary(grouping: records, by: \.keyText)
        for key in published.keys where expected[key] == nil {
            wrong.append("no number was added to \(key.debugDescription)")
        }
        for (key, history) in expected {
            let values = (published[key] ?? []).map { $0.value == nil ? nil : $0.valueText }
            var rest = history[...]
            let isInOrder = values.allSatisfy { value in
                guard let place = rest.firstIndex(of: value) else { return false }
                rest = rest[(place + 1)...]
                return true
            }
            let isLast = (values.last ?? nil) == (history.last ?? nil)
            if isInOrder, isLast { continue }
            wrong.append(
                "\(key.dropFirst()) of partition \(partition): \(values.count) published of \(history.count), in order: "
                    + "\(isInOrder), the last is \(values.last.debugDescription) instead of \(history.last.debugDescription)"
            )
        }
        for record in records where record.value != nil {
            let words = record.valueText.split(separator: " ")
            let topic = record.headers["source"]?.split(separator: ":").first ?? ""
            if record.headers["id"] == "\(partition)-\(words[2])-\(record.keyText.dropFirst())",
                topic.hasSuffix("events"),
                record.headers["source"] == "\(topic):\(partition):\(words[2])", "\(record.timestamp)" == words[3],
                record.headerNames == ["id", "schema", "app", "source"]
            {
                continue
            }
            wrong.append("\(record.valueText) of partition \(partition) has the headers \(record.headers)")
        }
    }

    private mutating func compareLetters(_ letters: [LedgerRecord], _ oracle: LedgerOracle) {
        let found = letters.map { letter in
            [letter.headers["source"] ?? "", letter.headers["reason"] ?? "", letter.keyText, letter.valueText]
        }.sorted { $0.lexicographicallyPrecedes($1) }
        let expected = oracle.letters.sorted { $0.lexicographicallyPrecedes($1) }
        if found == expected { return }
        let odd = found.first { !expected.contains($0) } ?? expected.first { !found.contains($0) }
        wrong.append("dead letters: \(found.count), expected \(expected.count), one of them \(odd ?? [])")
    }

    /// Each row in a wrong partition was forwarded to the right one, once.
    private mutating func compareMisplaced(_ rows: [LedgerRecord], _ oracle: LedgerOracle) {
        var copies: [String: [Int32]] = [:]
        for row in rows {
            if let source = row.headers["rerouted"] { copies[source, default: []].append(row.partition) }
        }
        if copies == oracle.misplaced.mapValues({ [$0] }) { return }
        let missing = oracle.misplaced.filter { copies[$0.key] == nil }
            .sorted { $0.key < $1.key }.map { "\($0.key) to \($0.value)" }
        wrong.append("rows sent on: \(copies.count), expected \(oracle.misplaced.count), missing \(missing)")
    }
}
