// What GET /v1/metrics is asked.

internal import Churn

extension Question {
    static let metricsNames = ["from", "to", "by"]

    /// Once each, and nothing else: who has misspelt `by` would take totals for groups. `by` may be empty: a form that has it and
    /// asks for nothing means nothing.
    static func metrics(_ query: String) throws(Flaw) -> MetricsRequest {
        var texts: [String: String] = [:]
        for (name, value) in parameters(query) {
            let name = String(decoding: name, as: UTF8.self)
            // Read apart, as of every path.
            if name == environmentName { continue }
            guard metricsNames.contains(name) else {
                throw .invalid(parameter: name, reason: "there are from, to, by and environment, and no other")
            }
            guard texts[name] == nil else { throw .tooMany(parameter: name, limit: 1) }
            guard let value else { throw .invalid(parameter: name, reason: "it has an escape that is none") }
            texts[name] = String(decoding: value, as: UTF8.self)
        }
        guard let from = texts["from"] else { throw .missing(parameter: "from") }
        guard let to = texts["to"] else { throw .missing(parameter: "to") }
        do throws(MetricsRequest.Flaw) {
            return try MetricsRequest(from: from, to: to, by: texts["by"] ?? "")
        } catch {
            switch error {
            case .day(let parameter): throw .invalid(parameter: parameter, reason: "it takes a day, as 2026-11-01")
            case .order:
                throw .invalid(
                    parameter: "to", reason: "it must be after from, and is not in it: of one day it is the next")
            case .tooLong:
                throw .invalid(
                    parameter: "to", reason: "it lies more than \(MetricsRequest.limitDays) days behind from")
            case .dimension:
                let all = Dimension.allCases.map(\.rawValue).joined(separator: ", ")
                throw .invalid(parameter: "by", reason: "it takes one or more of \(all), separated by commas")
            }
        }
    }
}
