// The results of refund requests, read from the topic of the consumption worker.

import Consumption
import Contract
import JSON
import Notices

/// Takes the records of `consumption`; records of one request in order.
struct DemoRefunds: ~Copyable {
    private enum Stage: Equatable {
        case open
        case withheld(String)
        /// Apple has accepted the answer that this rule gave.
        case answered(rule: String)
        case failed
        case expired
    }

    private struct Request {
        var stage = Stage.open
        var rule = RefundFigures.noRule
        var transactionId: Text?
        /// The price of the purchase.
        var price: Money?
        var outcome: String?
    }

    private struct Money {
        var amount: Int64
        var currency: Text
    }

    private var requests: [Text: Request] = [:]
    /// By transaction, because a transaction with two requests is declined once.
    private var saved: [Text: Money] = [:]
    private var shortestMargin: Int64?
    private var json = JSONDocument()
    /// Records that could not be read. There should be none.
    private(set) var unreadable = 0

    /// Takes a record of `consumption`.
    /// - Parameter clock: slows down while a request needs time.
    mutating func take(_ value: [UInt8], _ clock: StoreClock) {
        guard let record = read(value) else {
            unreadable += 1
            return
        }
        let id = record.id.description
        switch record.kind {
        // The decision may be late, because the customer consented late.
        case .decided: clock.wait(forRequest: id, deadline: record.deadline)
        case .withheld, .sent, .failed, .expired: clock.settle(request: id)
        case .requested, .retrying, .shadow, .outcome: break
        }
        take(record)
    }

    private mutating func take(_ record: ConsumptionRecord) {
        var request = requests[record.id] ?? Request()
        defer { requests[record.id] = request }
        request.transactionId = record.transactionId ?? request.transactionId
        switch record.kind {
        case .requested, .retrying, .shadow: break
        case .decided:
            request.stage = .open
            request.rule = record.policy?.rule?.description ?? RefundFigures.noRule
            request.price = record.facts.flatMap(Self.price)
        case .withheld: request.stage = .withheld(record.detail?.description ?? "?")
        case .sent:
            request.stage = .answered(rule: request.rule)
            shortestMargin = min(shortestMargin ?? .max, record.deadline - record.at)
        case .failed: request.stage = .failed
        case .expired: request.stage = .expired
        case .outcome:
            request.outcome = record.detail?.description
            count(request)
        }
    }

    /// Counts only requests that Apple declined after it had the answer.
    private mutating func count(_ request: Request) {
        guard let transaction = request.transactionId else { return }
        guard request.outcome == RefundFigures.declined else {
            saved[transaction] = nil
            return
        }
        if case .answered = request.stage, let price = request.price { saved[transaction] = price }
    }

    private mutating func read(_ value: [UInt8]) -> ConsumptionRecord? {
        do throws(JSONFault) { try json.read(value.span) } catch { return nil }
        guard json.kind(of: json.root) == .object else { return nil }
        return ConsumptionRecord(json)
    }

    private static func price(in facts: [UInt8]) -> Money? {
        let read: JSONValue
        do throws(JSONFault) { read = try JSONValue.read(facts) } catch { return nil }
        guard let price = read["price"]?.integer, let currency = read["currency"]?.string else { return nil }
        return Money(amount: price, currency: Text(currency))
    }

    /// nil: nobody has asked for a refund yet.
    var figures: RefundFigures? {
        guard !requests.isEmpty else { return nil }
        var figures = RefundFigures()
        figures.requests = requests.count
        figures.shortestMargin = shortestMargin
        for request in requests.values {
            switch request.stage {
            case .open: figures.waiting += 1
            case .withheld(let reason): figures.withheld[reason, default: 0] += 1
            case .answered(let rule): figures.answered[rule, default: 0] += 1
            case .failed: figures.failed += 1
            case .expired: figures.expired += 1
            }
            if let outcome = request.outcome { figures.outcomes[outcome, default: 0] += 1 }
        }
        for money in saved.values {
            figures.saved[money.currency.description, default: RefundFigures.Saved()].add(money.amount)
        }
        return figures
    }
}
