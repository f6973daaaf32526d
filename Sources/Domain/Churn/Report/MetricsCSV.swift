// Days, or the parts of a series, as CSV for other tools (RFC 4180).

internal import Contract
internal import Notices

/// A line for each day and group. Groups are also split by currency, so that amounts are valid and all lines add up.
public struct MetricsCSV: Sendable {
    private static let stocks = ["active", "inGrace", "paying", "inRetry", "trials", "mrr", "arr", "atRiskMRR"]

    /// For `MetricsReport.eachRow`.
    public let request: MetricsRequest

    public init(_ request: MetricsRequest) { self.request = request.byCurrency }

    public var header: String {
        let group = request.names(of: CellParts.none).map { "\($0.name)" }
        return (["day"] + group + ["final"] + Self.stocks.map { $0 + "AtEnd" } + ChurnCounter.allCases.map(\.name))
            .joined(
                separator: ",")
    }

    public func line(_ group: CellParts, _ row: DayRow) -> String {
        let name = request.names(of: group).map { Self.quoted("\($0.value)") }
        let stocks = Self.stocks.map { name in row.stocks.first { $0.name == name }?.end ?? 0 }
        let numbers = (stocks + ChurnCounter.allCases.map { row.sums[$0] }).map { "\($0)" }
        return ([row.day.description] + name + [row.isFinal ? "1" : "0"] + numbers).joined(separator: ",")
    }

    /// Protects text that begins like a formula, because spreadsheet programs would evaluate it.
    public static func quoted(_ text: String) -> String {
        // Not the first Character: with an accent "=" is another Character, but spreadsheet programs still see it.
        let text = text.unicodeScalars.first.map { "=+-@\t\r".unicodeScalars.contains($0) } == true ? "'" + text : text
        guard text.unicodeScalars.contains(where: { ",\"\r\n".unicodeScalars.contains($0) }) else { return text }
        return "\"" + text.replacing("\"", with: "\"\"") + "\""
    }
}

extension CellParts {
    fileprivate static let none = CellParts(bundleId: "", productId: "", billingPlan: "", storefront: "", currency: "")
}
