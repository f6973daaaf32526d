// One series as bars of characters.

import Churn
import Contract

struct MetricsChart {
    static let columns = 60
    static let rows = 8
    /// More groups are not drawn; csv has all.
    static let limitGroups = 8

    private let values: [Int64]
    private let areOpen: [Bool]
    private let days: [CivilDay]
    private let daysPerColumn: Int
    /// In characters, so that the chart of a month is not smaller than that of a year.
    private let columnWidth: Int

    static func lines(
        _ series: ChartSeries, _ table: CellTable, _ request: MetricsRequest,
        dayOf: @escaping @Sendable (Int64) -> CivilDay
    ) -> [String] {
        let request = series.isMoney ? request.byCurrency : request
        var groups: [(name: CellParts, rows: [(day: CivilDay, value: Int64, isFinal: Bool)])] = []
        MetricsReport.eachRow(table, request, dayOf: dayOf) { name, row in
            if groups.last?.name != name { groups.append((name, [])) }
            groups[groups.count - 1].rows.append((row.day, series.value(row), row.isFinal))
        }
        let drawn = groups.filter { group in group.rows.contains { $0.value != 0 } }
        var lines: [String] = []
        for group in drawn.prefix(limitGroups) {
            let chart = MetricsChart(group.rows, isStock: series.kind == .stock)
            lines += ["", ([series.name] + MetricsTable.title(group.name, request)).joined(separator: ", ")]
            lines += chart.drawing(isMoney: series.isMoney, isStock: series.kind == .stock)
        }
        if drawn.isEmpty { lines += ["", "\(series.name): all values are zero, nothing to draw"] }
        if drawn.count > limitGroups {
            lines += ["", "\(drawn.count - limitGroups) more groups are not drawn: --format csv has all"]
        }
        return lines
    }

    init(_ rows: [(day: CivilDay, value: Int64, isFinal: Bool)], isStock: Bool) {
        let daysPerColumn = (rows.count + Self.columns - 1) / Self.columns
        let pieces = stride(from: 0, to: rows.count, by: daysPerColumn).map {
            rows[$0..<min($0 + daysPerColumn, rows.count)]
        }
        self.daysPerColumn = daysPerColumn
        columnWidth = min(max(Self.columns / pieces.count, 1), 3)
        // The stock at the end of the piece, or the sum over the piece.
        values = pieces.map { piece in
            isStock ? piece.last?.value ?? 0 : piece.reduce(0) { $0 &+ $1.value }
        }
        areOpen = pieces.map { piece in piece.contains { !$0.isFinal } }
        days = rows.map(\.day)
    }

    func drawing(isMoney: Bool, isStock: Bool) -> [String] {
        let (low, high) = (min(values.min() ?? 0, 0), max(values.max() ?? 0, 0))
        func shown(_ value: Int64) -> String { isMoney ? groupedThousandths(value) : grouped(value) }
        let width = max(shown(low).count, shown(high).count)
        var lines = (0..<Self.rows).reversed().map { row in
            let label = row == Self.rows - 1 ? shown(high) : row == 0 ? shown(low) : ""
            let bars = values.map { wide(Self.mark($0, row, low: low, high: high)) }.joined()
            return "  " + aligned(label, to: width) + " |" + trimmed(bars)
        }
        let margin = String(repeating: " ", count: width + 4)
        if areOpen.contains(true) { lines.append(margin + trimmed(areOpen.map { wide($0 ? "*" : " ") }.joined())) }
        if let first = days.first, let last = days.last {
            let gap = max(values.count * columnWidth - 20, 1)
            let dates = days.count == 1 ? "\(first)" : "\(first)\(String(repeating: " ", count: gap))\(last)"
            lines.append(margin + dates)
        }
        let what = isStock ? "at the end of " : "in "
        lines.append(
            margin + what + (daysPerColumn == 1 ? "each day" : "every \(daysPerColumn) days")
                + (areOpen.contains(true) ? "; * not final" : ""))
        return lines
    }

    private func wide(_ mark: Character) -> String { String(repeating: mark, count: columnWidth) }

    /// A row is filled if the bar covers its middle. A bar that covers no middle leaves a dot next to zero.
    private static func mark(_ value: Int64, _ row: Int, low: Int64, high: Int64) -> Character {
        // Calculates in half rows, so that nothing is rounded.
        let scale = Int128(2 * rows)
        func middle(_ row: Int) -> Int128 { Int128(low) * scale + Int128(2 * row + 1) * (Int128(high) - Int128(low)) }
        let end = Int128(value) * scale
        let here = middle(row)
        if here > 0 ? end >= here : end <= here && value != 0 { return "#" }
        // The first row on the side of the bar.
        let isNext =
            here > 0 && (row == 0 || middle(row - 1) <= 0) && value > 0
            || here <= 0 && (row == rows - 1 || middle(row + 1) > 0) && value < 0
        return isNext ? "." : " "
    }
}

func trimmed(_ line: String) -> String { String(line.reversed().drop { $0 == " " }.reversed()) }

/// Right-aligned in this many columns.
func aligned(_ text: String, to width: Int) -> String {
    String(repeating: " ", count: max(width - text.count, 0)) + text
}

/// `1,234,567`.
func grouped(_ value: Int64) -> String { (value < 0 ? "-" : "") + grouped(value.magnitude) }

private func grouped(_ magnitude: UInt64) -> String {
    let digits = String(magnitude)
    var text = ""
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index) % 3 == 0 { text += "," }
        text.append(digit)
    }
    return text
}

/// `1,234.56` for milliunits; `1,234.567` if there are thousandths. Nothing is rounded, so that columns of amounts add up.
func groupedThousandths(_ value: Int64) -> String {
    let (whole, rest) = value.magnitude.quotientAndRemainder(dividingBy: 1000)
    let digits = rest % 10 == 0 ? String(100 + rest / 10) : String(1000 + rest)
    return (value < 0 ? "-" : "") + grouped(whole) + "." + digits.dropFirst()
}
