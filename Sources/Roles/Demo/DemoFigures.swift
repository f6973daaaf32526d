// What the churn worker has counted, as the demo shows it.

import Churn
import CommandLine
import Contract

struct DemoFigures: Equatable, Sendable {
    var cells = 0
    var active = 0
    var trials = 0
    var inGrace = 0
    var inRetry = 0
    /// Failed payments that were recovered.
    var recovered = 0
    var failed = 0
    var undecided = 0
    /// For the current day; the currency with most customers first.
    var bridges: [RevenueBridge] = []
}

extension DemoFigures {
    var standing: String {
        "\(grouped(active)) active, \(grouped(trials)) on trial, \(grouped(inGrace)) in grace, "
            + "\(grouped(inRetry)) in billing retry"
    }

    /// The rate with its formula. nil: no failed payment is decided, so there is no rate.
    var recovery: String? {
        let decided = failed - undecided
        guard decided > 0 else { return nil }
        let share = Ratio(Int64(recovered), of: Int64(decided)).decimal(digits: 1, times: 100) ?? ""
        return "\(share) % = \(grouped(recovered)) recovered / "
            + "(\(grouped(failed)) failed - \(grouped(undecided)) undecided)"
    }
}

/// From the monthly revenue at the start of a day to the revenue now, in thousandths of a currency's unit.
struct RevenueBridge: Equatable, Sendable {
    var currency: String
    var start: Int64 = 0
    var new: Int64 = 0
    /// Resubscriptions and recovered payments.
    var wonBack: Int64 = 0
    var expansion: Int64 = 0
    var contraction: Int64 = 0
    /// All lost revenue, for any reason.
    var churn: Int64 = 0
    /// All other changes: adopted, or moved from another currency.
    var other: Int64 = 0

    static let otherName = "other"

    var end: Int64 { steps.reduce(start) { $0 + $1.amount } }

    private var steps: [(name: String, amount: Int64)] {
        [
            ("new", new), ("won back", wonBack), ("expansion", expansion), ("contraction", contraction),
            ("churn", churn), (Self.otherName, other),
        ]
    }
}

extension RevenueBridge {
    /// The amounts as text. The printed amounts add up to the printed end: a step is the difference of two rounded amounts, so
    /// it may differ by one unit of the last place.
    struct Written: Equatable {
        let start: String
        let steps: [(name: String, amount: String)]
        let end: String

        static func == (left: Written, right: Written) -> Bool {
            left.start == right.start && left.end == right.end && left.steps.elementsEqual(right.steps, by: ==)
        }
    }

    var written: Written {
        let places = decimalPlaces(of: currency)
        func units(_ amount: Int64) -> Int64 { wholeUnits(amount, places: places) }
        var reached = start
        let steps = steps.map { step in
            let before = units(reached)
            reached += step.amount
            let change = units(reached) - before
            return (step.name, (change > 0 ? "+" : "") + decimalText(change, places: places))
        }
        return Written(
            start: decimalText(units(start), places: places), steps: steps,
            end: decimalText(units(reached), places: places))
    }

    /// `EUR 12.00 = 10.00 at midnight +2.00 new`, without steps of zero.
    var words: String {
        let written = written
        let steps = written.steps.filter { !$0.amount.allSatisfy { "0.".contains($0) } }
        return "\(currency) \(written.end) = \(written.start) at midnight"
            + steps.map { " \($0.amount) \($0.name)" }.joined()
    }
}

/// For the currencies of the simulated store.
private func decimalPlaces(of currency: String) -> Int { ["JPY", "KRW"].contains(currency) ? 0 : 2 }

/// Rounds thousandths, half to even.
private func wholeUnits(_ amount: Int64, places: Int) -> Int64 {
    rounded(amount, times: 1, over: places == 0 ? 1000 : 10)
}

/// `1,234.05` of 1234050 thousandths, as people write the currency.
func amountText(_ amount: Int64, _ currency: String) -> String {
    let places = decimalPlaces(of: currency)
    return decimalText(wholeUnits(amount, places: places), places: places)
}

/// `-1,234.05` of 123405 hundredths.
private func decimalText(_ number: Int64, places: Int) -> String {
    guard places > 0 else { return grouped(Int(number)) }
    let digits = String(number.magnitude)
    let padded = String(repeating: "0", count: max(0, places + 1 - digits.count)) + digits
    let whole = grouped(Int(padded.dropLast(places)) ?? 0)
    return (number < 0 ? "-" : "") + whole + "." + padded.suffix(places)
}
