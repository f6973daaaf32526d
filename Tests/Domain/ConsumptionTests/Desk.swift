// The refunds of one subscription, driven in the same way as the worker drives them.

import Contract
import JSON
import MakeBelieve
import Notices
import Testing

@testable import Consumption

let minute: Int64 = 60_000
/// When the customer asks, unless a test says otherwise.
let asked = d(10) + 9 * hour
let waitForUsage = hour

/// Between two steps only bytes are kept.
struct Desk {
    let rules: ConsumptionRules
    /// Tests that need thousands of steps turn this off.
    var isKeptAsBytes = true
    private(set) var state = RefundState()
    private(set) var clock = d(0)
    private(set) var told: [ConsumptionRecord] = []
    private(set) var lateAcceptances = 0
    private(set) var strayAttempts = 0
    private(set) var tooLate = 0

    init(_ rules: ConsumptionRules = Desk.rules()) { self.rules = rules }

    static func rules(
        _ policy: RefundPolicy? = nil, wait: Int64 = waitForUsage, periods: [String: String] = ["pass": "P10D"]
    ) -> ConsumptionRules {
        let periods = periods.compactMap { product, text in
            Period(text).map { App.ProductPeriod(productId: product, period: $0) }
        }
        return ConsumptionRules(
            apps: [App(bundleId: "com.example.one", appAppleId: 1, entitlements: [], periods: periods)],
            policy: policy, wait: wait)
    }

    /// The published records, each as its kind and detail.
    var words: [String] { told.map(\.word) }

    func told(about id: String) -> [ConsumptionRecord] { told.filter { $0.id == Text(id) } }

    var decision: ConsumptionRecord? { told.last { $0.kind == .decided } }
    var body: String? { decision?.bodyText }

    func facts() throws -> JSONValue {
        try JSONValue.read(try #require(told.last { $0.facts != nil }?.facts))
    }

    // MARK: Steps

    /// A notification, at the partition's time `instant`.
    mutating func hear(_ text: String, at instant: Int64) throws {
        try pass(until: instant)
        var json = JSONDocument()
        try json.read(Array(text.utf8).span)
        let notice = RefundNotice(json)
        if notice.isSilent { return }
        try step(instant) { state, step in try state.take(notice, &step) }
    }

    /// A request whose transaction has these members in addition to, or in place of, the usual ones of a consumable.
    mutating func ask(
        _ id: String = "q", of transaction: String = "7", signed: Int64 = asked, at instant: Int64? = nil,
        _ more: [String: String] = [:]
    ) throws {
        try hear(request(id, of: transaction, signed: signed, more), at: instant ?? signed)
    }

    /// A row of usage does not move the clock.
    mutating func say(_ members: String, of transaction: String? = "7", at timestamp: Int64? = nil) throws {
        let transaction = transaction.map { "\"\($0)\"" } ?? "null"
        let comma = members.isEmpty ? "" : ","
        let text = "{\"v\":1,\"originalTransactionId\":\"1000\",\"transactionId\":\(transaction)\(comma)\(members)}"
        let row = UsageRow(try JSONValue.read(Array(text.utf8)), timestamp: timestamp ?? clock)
        try step(timestamp ?? clock) { state, step in state.take(row, &step) }
    }

    mutating func attempt(
        _ number: Int64 = 1, _ status: Int64?, of id: String = "q", code: Int64? = nil, retryAt: Int64? = nil,
        at instant: Int64? = nil
    ) throws {
        let attempt = Attempt(
            id: Text(id), number: number, at: instant ?? clock, httpStatus: status, errorCode: code, retryAt: retryAt)
        try step(clock) { state, step in state.take(attempt, &step) }
    }

    /// Timers that are due until then fire at their own times.
    mutating func pass(until instant: Int64) throws {
        var fired = 0
        while let due = state.nextDue(rules), due <= instant {
            clock = max(clock, due)
            try step(clock) { state, step in state.wake(&step) }
            fired += 1
            guard fired < 10_000 else {
                Issue.record("time stands still at \(due)")
                return
            }
        }
        clock = max(clock, instant)
    }

    private mutating func step(
        _ timestamp: Int64, _ body: (inout RefundState, inout RefundStep) throws -> Void
    ) throws {
        var step = RefundStep(originalTransactionId: "1000", clock: clock, timestamp: timestamp, rules: rules)
        try body(&state, &step)
        told += step.records
        lateAcceptances += step.lateAcceptances
        strayAttempts += step.strayAttempts
        tooLate += step.tooLate
        guard isKeptAsBytes else { return }
        let kept = try #require(RefundState(state.bytes))
        #expect(kept == state)
        #expect(kept.bytes == state.bytes)
        state = kept
    }
}

extension ConsumptionRecord {
    var word: String { [kind.rawValue, detail?.description].compactMap(\.self).joined(separator: " ") }
    var bodyText: String? { body.map { String(decoding: $0, as: UTF8.self) } }
    var text: String { String(decoding: value, as: UTF8.self) }
}

/// A consumable, bought on the first of the days.
func coins(_ id: String, signed: Int64, _ more: [String: String] = [:]) -> String {
    bought(
        id, from: d(0), to: nil, signed: signed,
        ["productId": "\"coins.100\"", "type": "\"Consumable\"", "storefront": "\"USA\"", "quantity": "1"]
            .merging(more) { _, new in new })
}

func notification(
    _ type: String, _ id: String, signed: Int64, reason: String? = nil, _ transaction: String?
) -> String {
    "{\"v\":1,\"notificationUUID\":\"\(id)\",\"notificationType\":\"\(type)\",\"subtype\":null,\"signedDate\":\(signed),"
        + "\"consumptionRequestReason\":\(reason.map { "\"\($0)\"" } ?? "null"),"
        + "\"transaction\":\(transaction ?? "null"),\"renewalInfo\":null}"
}

func request(
    _ id: String = "q", of transaction: String = "7", signed: Int64 = asked, _ more: [String: String] = [:]
) -> String {
    notification(
        "CONSUMPTION_REQUEST", id, signed: signed, reason: "UNINTENDED_PURCHASE",
        coins(transaction, signed: signed, more))
}

func outcome(
    _ type: String, _ id: String, of transaction: String = "7", signed: Int64, _ more: [String: String] = [:]
) -> String {
    notification(type, id, signed: signed, coins(transaction, signed: signed, more))
}

/// The types of purchases, as members of a transaction.
enum Bought {
    static let subscription = ["type": "\"Auto-Renewable Subscription\"", "productId": "\"pro\""]
    static let pass = ["type": "\"Non-Renewing Subscription\"", "productId": "\"pass\""]
    static let forEver = ["type": "\"Non-Consumable\"", "productId": "\"lifetime\""]
    static let advanced = ["advancedCommerceInfo": "{}"]
}

let delivered = #""consented":true,"deliveryStatus":"DELIVERED""#
/// All facts about a consumable.
let whole = delivered + #","consumptionPercentage":40000"#
