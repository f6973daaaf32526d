// The results of refund requests, as the demo shows them.

import Contract

struct RefundFigures: Equatable, Sendable {
    /// The amounts of one currency.
    struct Saved: Equatable, Sendable {
        /// In thousandths of the currency's unit.
        var amount: Int64 = 0
        var purchases = 0

        mutating func add(_ price: Int64) {
            amount += price
            purchases += 1
        }
    }

    static let noRule = "no rule"
    static let declined = "declined"

    var requests = 0
    /// Requests that wait for usage, for consent, or for Apple to accept the answer.
    var waiting = 0
    /// Answers that Apple has accepted, by the rule that gave them.
    var answered: [String: Int] = [:]
    var withheld: [String: Int] = [:]
    var failed = 0
    var expired = 0
    /// The shortest time to a deadline when Apple accepted an answer, in milliseconds.
    var shortestMargin: Int64?
    /// Counts of the newest outcome of each request.
    var outcomes: [String: Int] = [:]
    /// Prices of purchases whose refund Apple declined after it had an answer, by currency.
    var saved: [String: Saved] = [:]
}

extension RefundFigures {
    /// More currencies do not fit into a line.
    private static let limitCurrencies = 4
    /// The outcomes of the contract, in the order in which they may happen.
    private static let order = ["refunded", declined, "reversed"]

    var standing: String {
        var parts = [
            "\(grouped(requests)) requests", "\(grouped(waiting)) waiting",
            "\(grouped(answered.values.reduce(0, +))) answered", "\(grouped(withheld.values.reduce(0, +))) withheld",
        ]
        if failed > 0 { parts.append("\(grouped(failed)) failed") }
        if expired > 0 { parts.append("\(grouped(expired)) expired") }
        return parts.joined(separator: ", ")
    }

    var rules: String? { Self.listed(answered) }
    var reasons: String? { Self.listed(withheld) }

    /// nil: Apple has not decided anything yet.
    var decisions: String? {
        let known = Self.order + outcomes.keys.filter { !Self.order.contains($0) }.sorted()
        let parts = known.compactMap { name in outcomes[name].map { "\(grouped($0)) \(name)" } }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }

    /// `8 h 45 min`; nil: nothing is answered yet.
    var margin: String? {
        shortestMargin.map { milliseconds in
            let minutes = max(0, milliseconds) / 60_000
            return "\(minutes / 60) h \(minutes % 60) min"
        }
    }

    /// Currencies with most purchases first, because amounts of different currencies cannot be compared.
    /// nil: nothing was saved yet.
    var amounts: String? {
        let sorted = saved.sorted { ($1.value.purchases, $0.key) < ($0.value.purchases, $1.key) }
        guard !sorted.isEmpty else { return nil }
        let shown = sorted.prefix(Self.limitCurrencies).map { "\($0.key) \(amountText($0.value.amount, $0.key))" }
        let more = sorted.count - shown.count
        return shown.joined(separator: ", ") + (more > 0 ? ", \(more) more currencies" : "")
    }

    private static func listed(_ counts: [String: Int]) -> String? {
        let sorted = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        return sorted.isEmpty ? nil : sorted.map { "\(grouped($0.value)) \($0.key)" }.joined(separator: ", ")
    }
}
