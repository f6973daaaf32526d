// The options of `perennial size`.

import CommandLine
import Configuration
import Contract
import Platform
import Settings
import Sizing

struct SizeOptions {
    let installation: Installation
    /// What was not given, in words.
    let assumptions: [String]

    private static let monthlyChurn = 5.0
    private static let years = 3
    private static let peakFactor = 10.0
    private static let kinds = 100
    private static let monthsInYear = 12.0

    /// Length in days of the periods that Apple sells.
    private static let periods: [(name: String, days: Double)] = [
        ("weekly", 7), ("monthly", 365.25 / 12), ("quarterly", 365.25 / 4), ("halfyearly", 365.25 / 2),
        ("yearly", 365.25),
    ]

    static let options = [
        CommandOption("subscribers", value: "N", effect: "Subscriptions that are paid now."),
        CommandOption(
            "plans", value: "PLAN:PERCENT[,...]",
            effect:
                "Shares of subscribers by the length of their period: \(periods.map(\.name).joined(separator: ", ")) "
                + "(monthly:100)."),
        CommandOption("renewals-a-day", value: "N", effect: "Renewals a day, instead of --plans."),
        CommandOption(
            "churn-a-month", value: "PERCENT",
            effect: "Share of subscribers that leaves each month and is replaced: what is known of them is kept (5)."),
        CommandOption(
            "churned", value: "N",
            effect: "Subscriptions that will have ended after --years, instead of --churn-a-month."),
        CommandOption(
            "purchases-a-day", value: "N", effect: "One-time purchases (0). Each is kept like a subscription."),
        CommandOption("refund-requests-a-day", value: "N", effect: "Refund requests of Apple (0)."),
        CommandOption(
            "usage-a-day", value: "N", effect: "Usage records of the app's backend (one for each refund request)."),
        CommandOption("questions-a-second", value: "N", effect: "Questions to the read API, on average (0)."),
        CommandOption(
            "kinds", value: "N",
            effect: "Kinds that churn counts apart: product, billing plan, storefront and currency together (100)."),
        CommandOption("years", value: "N", effect: "After so many years bytes are counted (3)."),
        CommandOption("peak", value: "N", effect: "How many times the average the busiest time is (10)."),
        CommandOption(
            "notification-bytes", value: "N", effect: "Bytes of a record of notifications (as measured)."),
        CommandOption("signed-bytes", value: "N", effect: "Bytes of a record of signed, compressed (as measured)."),
        CommandOption("format", value: "text|json", effect: "json: one object, with every figure."),
    ]

    init(_ invocation: Invocation, _ configuration: Configuration) throws(SizingFaults) {
        var reader = SizeReader(invocation)
        let subscribers = reader.whole("subscribers")
        if !invocation.has("subscribers") {
            reader.faults.append("give --subscribers: how many subscriptions are paid")
        }
        reader.refuse("renewals-a-day", with: "plans")
        reader.refuse("churned", with: "churn-a-month")
        let years = reader.whole("years", assumed: Self.years, "\(Self.years) years")
        let peak = reader.number(
            "peak", assumed: Self.peakFactor, "a busiest time of \(Int(Self.peakFactor)) times the average")
        let renewals = Self.renewals(&reader, invocation, Double(subscribers ?? 0))
        let churned = Self.churned(&reader, invocation, Double(subscribers ?? 0), years: Double(years))
        var customers = Installation.Customers(
            subscribers: subscribers ?? 0, renewalsADay: renewals, churned: churned)
        customers.purchasesADay = reader.number("purchases-a-day", assumed: 0, "no one-time purchases")
        customers.refundRequestsADay = reader.number("refund-requests-a-day", assumed: 0, "no refund requests")
        customers.usageRecordsADay = reader.number(
            "usage-a-day", assumed: customers.refundRequestsADay, "a usage record for each refund request")
        customers.questionsASecond = reader.number("questions-a-second", assumed: 0, "no questions to the read API")
        customers.kinds = reader.whole("kinds", assumed: Self.kinds, "\(Self.kinds) kinds of subscriptions")
        var decisions = Installation.Decisions(
            plan: configuration.topicPlan, stateCacheBytes: Double(configuration.worker.stateCacheBytes),
            ingestBufferedBytes: Double(configuration.ingest.maxBufferedBytes))
        decisions.years = years
        decisions.peakFactor = peak
        decisions.tickSeconds =
            Double(configuration.tickInterval.components.seconds)
            + Double(configuration.tickInterval.components.attoseconds) / 1e18
        decisions.archivesSignedPayloads = configuration.verification.archivesSignedPayloads
        decisions.workerThreads = configuration.worker.threads
        decisions.notificationBytes = reader.optional("notification-bytes")
        decisions.signedBytes = reader.optional("signed-bytes")
        guard reader.faults.isEmpty else { throw SizingFaults(texts: reader.faults) }
        installation = try Installation(customers, decisions)
        assumptions = reader.assumptions
    }

    private static func renewals(_ reader: inout SizeReader, _ invocation: Invocation, _ subscribers: Double) -> Double
    {
        if invocation.has("renewals-a-day") { return reader.optional("renewals-a-day") ?? 0 }
        if !invocation.has("plans") { reader.assumptions.append("all subscribers pay monthly") }
        let text = invocation.option("plans") ?? "monthly:100"
        var (renewals, sum) = (0.0, 0.0)
        var seen: Set<String> = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let words = part.split(separator: ":", omittingEmptySubsequences: false)
            guard words.count == 2, let share = decimalNumber(String(words[1])),
                let period = periods.first(where: { $0.name == words[0] }), seen.insert(period.name).inserted
            else {
                reader.faults.append(
                    "--plans must be shares such as monthly:80,yearly:20, each of \(periods.map(\.name).joined(separator: ", ")) at most "
                        + "once, not \(quoted(text))")
                return 1
            }
            sum += share
            renewals += subscribers * share / 100 / period.days
        }
        if abs(sum - 100) > 0.01 {
            reader.faults.append("the shares of --plans must add up to 100, not \(quoted(text))")
        }
        // Shares of a third may add up to 99.99.
        return sum > 0 ? renewals * (100 / sum) : 1
    }

    private static func churned(
        _ reader: inout SizeReader, _ invocation: Invocation, _ subscribers: Double, years: Double
    ) -> Double {
        if invocation.has("churned") { return reader.optional("churned") ?? 0 }
        let percent = reader.number(
            "churn-a-month", assumed: monthlyChurn,
            "\(Int(monthlyChurn)) % of the subscribers leave each month and are replaced")
        if percent > 100 { reader.faults.append("--churn-a-month must be a percentage from 0 to 100") }
        return subscribers * percent / 100 * monthsInYear * years
    }
}

/// Reads options that are numbers, and collects what is wrong and what is assumed.
private struct SizeReader {
    let invocation: Invocation
    var faults: [String] = []
    var assumptions: [String] = []

    init(_ invocation: Invocation) { self.invocation = invocation }

    mutating func refuse(_ one: String, with other: String) {
        guard invocation.has(one), invocation.has(other) else { return }
        faults.append("--\(one) and --\(other) say the same in two ways: give only one of them")
    }

    /// nil: it was not given, or is wrong.
    mutating func optional(_ name: String) -> Double? {
        guard let text = invocation.option(name) else { return nil }
        guard let number = decimalNumber(text) else {
            faults.append("--\(name) must be a number of at most 15 digits, such as 1000 or 2.5, not \(quoted(text))")
            return nil
        }
        return number
    }

    mutating func whole(_ name: String) -> Int? {
        guard let text = invocation.option(name) else { return nil }
        guard !text.contains("."), let number = decimalNumber(text) else {
            faults.append("--\(name) must be a whole number of at most 15 digits, not \(quoted(text))")
            return nil
        }
        return Int(number)
    }

    mutating func number(_ name: String, assumed: Double, _ words: String) -> Double {
        if !invocation.has(name) { assumptions.append(words) }
        return optional(name) ?? assumed
    }

    mutating func whole(_ name: String, assumed: Int, _ words: String) -> Int {
        if !invocation.has(name) { assumptions.append(words) }
        return whole(name) ?? assumed
    }
}

/// Digits with at most one point: `Double` would also accept "nan", "0x1p3" and "1e9".
private func decimalNumber(_ text: String) -> Double? {
    guard (1...15).contains(text.utf8.count), text.utf8.first != UInt8(ascii: "."),
        text.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == 0x2E })
    else { return nil }
    return Double(text)
}
