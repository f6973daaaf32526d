import Consumption
import Notices

/// A policy from its text. Problems fail the test that reads it.
func policy(_ text: String) throws -> RefundPolicy { try RefundPolicy.read(Array(text.utf8)) }

/// A policy with only rules.
func policy(rules: String) throws -> RefundPolicy { try policy(#"{"version":"1","rules":[\#(rules)]}"#) }

/// A policy with one rule, called `a`, that declines when the tests hold.
func policy(when tests: String) throws -> RefundPolicy {
    try policy(rules: #"{"name":"a","when":\#(tests),"answer":{"refundPreference":"DECLINE"}}"#)
}

/// What is wrong, as "line:column problem".
func faults(_ text: String) -> [String] {
    do throws(PolicyFaults) {
        _ = try RefundPolicy.read(Array(text.utf8))
        return []
    } catch {
        return error.faults.map { "\($0.line):\($0.column) \($0.problem)" }
    }
}

/// The policy of the specification, unchanged.
let specifiedPolicy = #"""
    {"version":"2026-11",
     "defaults":{"deliveryStatus":"DELIVERED","sampleContentProvided":false},
     "rules":[
      {"name":"first request of a new customer","when":{"daysSincePurchase":{"to":2},"refundsRequested":1},"answer":{"refundPreference":"GRANT_FULL"}},
      {"name":"used up coins","when":{"productId":"coins.*","consumptionPercentage":{"from":50000}},"answer":{"refundPreference":"DECLINE"}},
      {"name":"legal","when":{"reason":["LEGAL","OTHER"]},"answer":{"withhold":true}},
      {"name":"rest","when":{},"answer":{"refundPreference":null}}],
     "shadow":{"version":"2026-12","rules":[]}}
    """#

/// SplitMix64: the same numbers everywhere.
struct PolicyDice {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func roll(_ sides: Int) -> Int {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return Int((mixed ^ mixed >> 31) % UInt64(sides))
    }
}
