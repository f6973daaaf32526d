// The input of the worker of refund answers: rows that anybody may write, and the states that it wrote itself.

import Consumption
import Contract
import JSON
import Notices
import Records

/// A row of usage: an accepted row decides a request or leaves it waiting, and stays the same in the stored bytes.
let usage: Target = { bytes, count in
    guard let row = try? JSONValue.read(input(bytes, count)), (try? UsageRecord(row)) != nil else { return 0 }
    var state = RefundState()
    take(UsageRow(row, timestamp: World.now), in: &state, at: World.now)
    ask(&state)
    return 0
}

/// Bytes that are accepted as a state are a state that could have been written, and the worker can continue with it.
let refunds: Target = { bytes, count in
    guard var state = RefundState(input(bytes, count)) else { return 0 }
    precondition(RefundState(state.bytes) == state, "a state reads back as another")
    ask(&state)
    return 0
}

private let rules: ConsumptionRules = {
    let app = App(
        bundleId: "com.example.app", appAppleId: 123, entitlements: [],
        periods: Period("P10D").map { [App.ProductPeriod(productId: "pass", period: $0)] } ?? [])
    let text = #"""
        {"version":"1","rules":[{"name":"a","when":{"refundsGranted":{"from":2}},"answer":{"withhold":true}},
        {"name":"b","when":{},"answer":{"refundPreference":"GRANT_PRORATED"}}],"shadow":{"version":"2","rules":[]}}
        """#
    return ConsumptionRules(apps: [app], policy: try? RefundPolicy.read(Array(text.utf8)), wait: 3_600_000)
}()

private func take(_ row: UsageRow, in state: inout RefundState, at clock: Int64) {
    step(&state, at: clock) { $0.take(row, &$1) }
}

private func step(_ state: inout RefundState, at clock: Int64, _ body: (inout RefundState, inout RefundStep) -> Void) {
    var step = RefundStep(originalTransactionId: "1000", clock: clock, timestamp: clock, rules: rules)
    body(&state, &step)
    for record in step.records {
        precondition(!record.value.isEmpty)
        precondition(record.body == nil || record.kind == .decided || record.kind == .shadow, "a stray body")
    }
    precondition(RefundState(state.bytes) == state, "a state reads back as another")
}

/// Requests of each type of purchase, an answer of Apple, an outcome, and the end of time.
private func ask(_ state: inout RefundState) {
    let types = ["Auto-Renewable Subscription", "Non-Renewing Subscription", "Consumable"]
    for (number, type) in types.enumerated() {
        let notice = notice("CONSUMPTION_REQUEST", "q\(number)", type)
        step(&state, at: World.now) { try? $0.take(notice, &$1) }
    }
    if let said = try? JSONValue.read(Array(#"{"consented":true,"deliveryStatus":"DELIVERED"}"#.utf8)) {
        take(UsageRow(said, timestamp: .max), in: &state, at: World.now)
    }
    let attempt = Attempt(id: "q0", number: 1, at: World.now, httpStatus: nil, errorCode: nil, retryAt: nil)
    step(&state, at: World.now) { $0.take(attempt, &$1) }
    let outcome = notice("REFUND", "r", types[2])
    step(&state, at: World.now) { try? $0.take(outcome, &$1) }
    for clock in [World.now + 3_600_000, .max] { step(&state, at: clock) { $0.wake(&$1) } }
}

private func notice(_ kind: String, _ id: String, _ type: String) -> RefundNotice {
    let text = """
        {"v":1,"notificationUUID":"\(id)","notificationType":"\(kind)","signedDate":\(World.now),"transaction":\
        {"transactionId":"7","purchaseDate":\(World.now - 86_400_000),"type":"\(type)","productId":"pass",\
        "bundleId":"com.example.app","price":9990,"currency":"USD","advancedCommerceInfo":{}}}
        """
    var json = JSONDocument()
    guard (try? json.read(Array(text.utf8).span)) != nil else { fatalError("no JSON: \(text)") }
    return RefundNotice(json)
}

extension World {
    static let usages = [
        "whole": """
        {"v":1,"originalTransactionId":"1000","transactionId":"7","consented":true,"consentedAt":1,\
        "deliveryStatus":"DELIVERED","sampleContentProvided":false,"consumptionPercentage":50000,\
        "refundPreference":"DECLINE","accountCreatedAt":1,"playTimeSeconds":1,"userStatus":1,"platform":1,\
        "environment":"Production"}
        """,
        "all": """
        {"v":1,"originalTransactionId":"1000","transactionId":null,"consented":false,"deliveryStatus":"UNDELIVERED_OTHER"}
        """,
    ]

    /// The states after each step of a request's life.
    static let refundStates: [String: [UInt8]] = {
        var states: [String: [UInt8]] = [:]
        for (name, text) in usages {
            var state = RefundState()
            guard let row = try? JSONValue.read(Array(text.utf8)) else { fatalError("no JSON: \(text)") }
            take(UsageRow(row, timestamp: now), in: &state, at: now)
            states["\(name)-said"] = state.bytes
            let notice = notice("CONSUMPTION_REQUEST", "q0", "Consumable")
            step(&state, at: now) { try? $0.take(notice, &$1) }
            states["\(name)-asked"] = state.bytes
            ask(&state)
            states["\(name)-over"] = state.bytes
        }
        return states
    }()
}
