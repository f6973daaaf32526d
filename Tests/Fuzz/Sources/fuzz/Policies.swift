// Refund policies, as people write them by hand.

import Consumption
import JSON
import Notices

/// An accepted policy means the same however it is formatted; remarks about its rules are true; problems are reported in order of
/// their places.
let policy: Target = { bytes, count in
    let text = input(bytes, count)
    do throws(PolicyFaults) {
        let policy = try RefundPolicy.read(text)
        guard let value = try? JSONValue.read(text, limits: asWide), let told = try? JSONValue.read(policy.fingerprint)
        else { fatalError("an accepted policy is not JSON, or its fingerprint is malformed") }
        precondition(told["rules"]?.array?.count == policy.rules.count)
        var writer = JSONWriter()
        writer.value(value)
        precondition((try? RefundPolicy.read(writer.bytes)) == policy, "white space decides")
        precondition(policy.table.count > policy.rules.count)
        ask(policy)
        if let shadow = policy.shadow { ask(shadow) }
    } catch {
        precondition((1...PolicyFaults.limit).contains(error.faults.count))
        for (one, next) in zip(error.faults, error.faults.dropFirst()) {
            precondition(one.place < next.place || one.place == next.place, "faults out of order")
        }
    }
    return 0
}

private let asWide: JSONLimits = {
    var limits = JSONLimits()
    limits.bytes = RefundPolicy.limitBytes
    limits.depth = 16
    return limits
}()

private func ask(_ policy: RefundPolicy) {
    let dead = policy.unreachable()
    for rule in policy.rules {
        for stars in ["", "x", "*"] {
            let facts = facts(of: rule, stars: stars)
            precondition(rule.matches(facts), "a rule does not match its own facts")
            let first = policy.rule(for: facts)
            precondition(first != nil && !dead.contains { $0.rule.name == first?.name }, "a dead rule has matched")
        }
    }
    _ = policy.remarks()
}

/// Facts that the rule matches.
private func facts(of rule: RefundPolicy.Rule, stars: String) -> RefundFacts {
    var facts = RefundFacts()
    for test in rule.tests {
        switch test {
        case .text(let fact, let texts):
            let text = texts.last
            switch fact {
            case .productId: facts.productId = text.map { Text($0.description.replacing("*", with: stars)) }
            case .productType: facts.productType = text
            case .bundleId: facts.bundleId = text
            case .storefront: facts.storefront = text
            case .reason: facts.reason = text
            case .billingPlan: facts.billingPlan = text
            case .offerType: facts.offerType = text
            case .deliveryStatus: facts.deliveryStatus = text
            }
        case .number(let fact, let range):
            let number = range.from ?? range.to ?? 0
            switch fact {
            case .commitmentPeriod: facts.commitmentPeriod = number
            case .consumptionPercentage: facts.consumptionPercentage = number
            case .daysSincePurchase: facts.daysSincePurchase = number
            case .refundsRequested: facts.refundsRequested = number
            case .refundsGranted: facts.refundsGranted = number
            }
        }
    }
    return facts
}

extension World {
    static let policies = [
        "whole": """
        {"version":"2026-11","defaults":{"deliveryStatus":"DELIVERED","sampleContentProvided":false},"rules":[
        {"name":"new","when":{"daysSincePurchase":{"to":2},"refundsRequested":1},"answer":{"refundPreference":"GRANT_FULL"}},
        {"name":"coins","when":{"productId":"coins.*","consumptionPercentage":{"from":50000}},
        "answer":{"refundPreference":"DECLINE"}},{"name":"legal","when":{"reason":["LEGAL","OTHER"]},
        "answer":{"withhold":true}},{"name":"rest","when":{},"answer":{"refundPreference":null}}],
        "shadow":{"version":"2026-12","rules":[]}}
        """,
        "facts": """
        {"version":"1","rules":[{"name":"a","when":{"productId":["*a","a*b"],"productType":"Consumable","bundleId":"b",
        "storefront":"USA","reason":"OTHER","billingPlan":"MONTHLY","offerType":["code","7"],"deliveryStatus":"DELIVERED",
        "commitmentPeriod":{"from":1,"to":12},"consumptionPercentage":0,"daysSincePurchase":{"from":-1},
        "refundsRequested":1,"refundsGranted":0},"answer":{"refundPreference":"GRANT_PRORATED"}}]}
        """,
        "wrong": """
        {"version":1,"rules":[{"name":"a","when":{"reson":1,"refundsGranted":{"from":2,"to":1}},"answer":{}},
        {"name":"a","when":{"reason":[]},"answer":{"withhold":true,"refundPreference":1}}],"defaults":7,"shadow":{"shadow":{}}}
        """,
    ]
}
