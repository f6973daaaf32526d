// The query of GET /v1/metrics.

internal import Churn

extension Question {
    static let metricsNames = ["from", "to", "by", "interval"]

    /// Each parameter once, and no others: a client that misspells `by` would take totals for groups. `by` and
    /// `interval` may be empty, because forms send empty fields.
    static func metrics(_ query: String) throws(Flaw) -> MetricsRequest {
        var texts: [String: String] = [:]
        for (name, value) in parameters(query) {
            let name = String(decoding: name, as: UTF8.self)
            // Read separately, as for every path.
            if name == environmentName { continue }
            guard metricsNames.contains(name) else {
                throw .invalid(parameter: name, reason: "only from, to, by, interval and environment are known")
            }
            guard texts[name] == nil else { throw .tooMany(parameter: name, limit: 1) }
            guard let value else { throw .invalid(parameter: name, reason: "it has an invalid percent escape") }
            texts[name] = String(decoding: value, as: UTF8.self)
        }
        guard let from = texts["from"] else { throw .missing(parameter: "from") }
        guard let to = texts["to"] else { throw .missing(parameter: "to") }
        do throws(MetricsRequest.Flaw) {
            return try MetricsRequest(
                from: from, to: to, by: texts["by"] ?? "", interval: texts["interval"].flatMap { $0.isEmpty ? nil : $0 }
            )
        } catch {
            switch error {
            case .day(let parameter): throw .invalid(parameter: parameter, reason: "it must be a day, as 2026-11-01")
            case .order:
                throw .invalid(
                    parameter: "to", reason: "it must be after from, and is not included: for one day it is the next")
            case .tooLong:
                throw .invalid(
                    parameter: "to", reason: "it is more than \(MetricsRequest.limitDays) days after from")
            case .dimension:
                let all = Dimension.allCases.map(\.rawValue).joined(separator: ", ")
                throw .invalid(parameter: "by", reason: "it must be one or more of \(all), separated by commas")
            case .interval:
                let all = Interval.allCases.map(\.rawValue).joined(separator: ", ")
                throw .invalid(parameter: "interval", reason: "it must be one of \(all)")
            }
        }
    }
}
