// What GET /v1/metrics is asked.

internal import Churn

extension Question {
    /// Once each. `by` may be empty: a form that has it and asks for nothing means nothing.
    static func metrics(_ query: String) throws(Flaw) -> MetricsRequest {
        var texts: [String: String] = [:]
        for (name, value) in parameters(query) {
            let name = String(decoding: name, as: UTF8.self)
            guard ["from", "to", "by"].contains(name) else { continue }
            guard texts[name] == nil, let value else { throw .invalid(parameter: name) }
            texts[name] = String(decoding: value, as: UTF8.self)
        }
        guard let from = texts["from"] else { throw .missing(parameter: "from") }
        guard let to = texts["to"] else { throw .missing(parameter: "to") }
        do throws(MetricsRequest.Flaw) {
            return try MetricsRequest(from: from, to: to, by: texts["by"] ?? "")
        } catch {
            switch error {
            case .day(let parameter): throw .invalid(parameter: parameter)
            case .order, .tooLong: throw .invalid(parameter: "to")
            case .dimension: throw .invalid(parameter: "by")
            }
        }
    }
}
