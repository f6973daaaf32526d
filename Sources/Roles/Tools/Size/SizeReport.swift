// What `perennial size` prints for people.

import Contract
import Sizing

struct SizeReport {
    let sizing: Sizing
    let assumptions: [String]

    var lines: [String] {
        head + [""] + topicTable + [""] + processTable + [""] + [processLine] + brokerLines + stateLines + warnings
    }

    private var decisions: Installation.Decisions { sizing.installation.decisions }
    private var years: String { decisions.years == 1 ? "1 year" : "\(decisions.years) years" }
    private var partitions: String {
        decisions.plan.partitions == 1 ? "1 partition" : "\(decisions.plan.partitions) partitions"
    }
    private var copies: String {
        decisions.plan.replicationFactor == 1 ? "1 copy" : "\(decisions.plan.replicationFactor) copies"
    }

    private var head: [String] {
        let customers = sizing.installation.customers
        var lines = [
            "\(grouped(Double(customers.subscribers))) subscribers, \(grouped(customers.churned)) that will have left after "
                + "\(years), \(grouped(customers.renewalsADay)) renewals a day",
            "\(grouped(sizing.rates.notifications)) notifications and \(grouped(sizing.rates.ticks)) ticks a day; busiest time "
                + "\(rounded(decisions.peakFactor)) times the average",
            "\(partitions), \(copies), \(years); signed payloads "
                + (decisions.archivesSignedPayloads ? "are archived" : "are not archived"),
        ]
        if !assumptions.isEmpty { lines += ["assumed, because it was not given:"] + assumptions.map { "  \($0)" } }
        lines.append("computed from figures of \(sizing.figures.date), measured on \(sizing.figures.machine)")
        return lines
    }

    private var topicTable: [String] {
        let rows = sizing.topics.map { topic in
            [
                topic.id.name, grouped(topic.recordsADay), rounded(topic.recordsASecondAtPeak), bytes(topic.bytesADay),
                kept(topic.retention), bytes(topic.keptBytes), bytes(topic.keptBytesInAllCopies),
            ]
        }
        return table(
            ["topic", "records a day", "a second at peak", "bytes a day", "kept", "bytes kept", "in all copies"],
            rows + [
                [
                    "all", grouped(sizing.topics.reduce(0) { $0 + $1.recordsADay }),
                    rounded(sizing.topics.reduce(0) { $0 + $1.recordsASecondAtPeak }), bytes(sizing.bytesADay), "",
                    bytes(sizing.keptBytes), bytes(sizing.keptBytesInAllCopies),
                ]
            ])
    }

    private var processTable: [String] {
        table(
            ["role", "processes", "cores, average", "cores at peak", "memory of each", "disk of each"],
            sizing.processes.map { process in
                [
                    process.role.rawValue, "\(process.processes)", rounded(process.coresOnAverage),
                    rounded(process.coresAtPeak), bytes(process.memoryBytes), bytes(process.diskBytes),
                ]
            })
    }

    private var processLine: String {
        func all(_ value: (ProcessSizing) -> Double) -> Double { sizing.processes.reduce(0) { $0 + value($1) } }
        return
            "all \(grouped(all { Double($0.processes) })) processes: \(rounded(all(\.coresOnAverage))) cores on average and "
            + "\(rounded(all(\.coresAtPeak))) at peak, \(bytes(all { $0.memoryBytes * Double($0.processes) })) of memory, "
            + "\(bytes(all { $0.diskBytes * Double($0.processes) })) of disk"
    }

    private var brokerLines: [String] {
        let brokers = sizing.brokers
        return [
            "brokers: \(brokers.brokers), together \(rounded(brokers.coresOnAverage)) cores on average and "
                + "\(rounded(brokers.coresAtPeak)) at peak",
            "each broker: \(rounded(brokers.coresOfEach)) cores at peak when one is lost, \(bytes(brokers.memoryBytes)) of memory beside the "
                + "cache of files, \(bytes(brokers.diskBytes)) of disk",
        ]
    }

    private var stateLines: [String] {
        let parts = sizing.stateBytes.map { "\($0.role.rawValue) \(bytes($0.bytes))" }
        return [
            "state of the workers: \(parts.joined(separator: ", "))",
            "not counted: memory of the read API for cells of churn, up to \(grouped(sizing.cellsInMemory)), one for each day and kind",
        ]
    }

    private var warnings: [String] {
        var lines: [String] = sizing.processes.compactMap { process in
            process.lacksPartitions.map {
                "warning: \(process.role.rawValue) needs \($0) threads in the busiest time, but there are only "
                    + "\(decisions.plan.partitions) partitions: choose more before the topics are created"
            }
        }
        if sizing.brokers.areTooFew {
            lines.append(
                "warning: \(sizing.brokers.brokers) brokers are few for this work: take more of them than a topic has copies, "
                    + "and they share it")
        }
        return lines
    }

    private func kept(_ retention: Retention) -> String {
        switch retention {
        case .days(let days): "\(days) days"
        case .forEver: "for ever"
        case .lastOfKey: "last of key"
        }
    }

    /// Columns that are as wide as they must be; the first is for words, the others for numbers.
    private func table(_ head: [String], _ rows: [[String]]) -> [String] {
        let widths = head.indices.map { column in ([head] + rows).map { $0[column].count }.max() ?? 0 }
        return ([head] + rows).map { row in
            row.indices.map { column in
                let space = String(repeating: " ", count: widths[column] - row[column].count)
                return column == 0 ? row[column] + space : space + row[column]
            }.joined(separator: "  ")
        }
    }
}

/// A whole number with commas: 1,234,567. Below ten it has up to two decimals.
func grouped(_ value: Double) -> String {
    guard value >= 10 else { return rounded(value) }
    var rest = wholeNumber(value)
    var groups: [String] = []
    while rest >= 1000 {
        let group = String(rest % 1000)
        groups.append(String(repeating: "0", count: 3 - group.count) + group)
        rest /= 1000
    }
    return ([String(rest)] + groups.reversed()).joined(separator: ",")
}

/// Up to two decimals below 10, one below 100, none above. Something that is not 0 never looks like 0.
func rounded(_ value: Double) -> String {
    if value > 0, value < 0.01 { return "<0.01" }
    if value < 100, value == value.rounded() { return String(wholeNumber(value)) }
    if value >= 100 { return grouped(value) }
    let digits = value < 10 ? 100 : 10
    let parts = wholeNumber(value * Double(digits))
    let fraction = String(parts % digits)
    let zeros = String(repeating: "0", count: (digits == 100 ? 2 : 1) - fraction.count)
    return "\(parts / digits).\(zeros)\(fraction)"
}

/// In units of a thousand, as disks are sold.
func bytes(_ value: Double) -> String {
    var (value, units) = (value, ["B", "kB", "MB", "GB", "TB", "PB"][...])
    while value >= 999.5, units.count > 1 {
        value /= 1000
        units = units.dropFirst()
    }
    return "\(value >= 10 ? String(wholeNumber(value)) : rounded(value)) \(units.first!)"
}

/// No number of a sizing is nearly so large; a conversion that overflows would end the program.
func wholeNumber(_ value: Double) -> Int { Int(min(max(value, 0), 9e18).rounded()) }
