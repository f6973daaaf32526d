import Consumption
import Notices
import Testing

@Suite struct `A rule behind another` {
    /// Whether the second of two rules can never match.
    private func isShadowed(_ later: String, by earlier: String) throws -> Bool {
        let policy = try policy(
            rules: [("early", earlier), ("late", later)]
                .map { #"{"name":"\#($0.0)","when":\#($0.1),"answer":{"withhold":true}}"# }.joined(separator: ","))
        let found = policy.unreachable()
        for pair in found { #expect(pair.rule.name == "late" && pair.because.name == "early") }
        return !found.isEmpty
    }

    @Test(
        arguments: [
            // A rule for everything, and the same rule.
            (#"{"reason":"LEGAL"}"#, "{}", true), ("{}", "{}", true), ("{}", #"{"reason":"LEGAL"}"#, false),
            (#"{"reason":"LEGAL"}"#, #"{"reason":"LEGAL"}"#, true),
            (#"{"reason":"LEGAL"}"#, #"{"reason":"OTHER"}"#, false),
            // A list within a list.
            (#"{"reason":"LEGAL"}"#, #"{"reason":["OTHER","LEGAL"]}"#, true),
            (#"{"reason":["OTHER","LEGAL"]}"#, #"{"reason":"LEGAL"}"#, false),
            // More tests are narrower; a test on another fact is not narrower than this one.
            (#"{"reason":"LEGAL","storefront":"USA"}"#, #"{"reason":"LEGAL"}"#, true),
            (#"{"reason":"LEGAL"}"#, #"{"reason":"LEGAL","storefront":"USA"}"#, false),
            (#"{"bundleId":"a"}"#, #"{"productId":"*"}"#, false),
            // An unknown fact passes no test: even the widest test does not match everything that a rule without it matches.
            ("{}", #"{"productId":"*"}"#, false), ("{}", #"{"refundsGranted":{"from":-9223372036854775808}}"#, false),
            // Patterns.
            (#"{"productId":"coins.100"}"#, #"{"productId":"coins.*"}"#, true),
            (#"{"productId":"coins.*"}"#, #"{"productId":"*"}"#, true),
            (#"{"productId":"coins.*.x"}"#, #"{"productId":"coins.*"}"#, true),
            (#"{"productId":"coins.*"}"#, #"{"productId":"coins.*.x"}"#, false),
            (#"{"productId":"coins.*"}"#, #"{"productId":"coins.100"}"#, false),
            (#"{"productId":"*a*"}"#, #"{"productId":["*a","a*"]}"#, false),
            (#"{"productId":["a.1","b.*"]}"#, #"{"productId":["b*","a*"]}"#, true),
            (#"{"bundleId":"coins.100"}"#, #"{"bundleId":"coins.*"}"#, false),
            // Ranges.
            (#"{"daysSincePurchase":3}"#, #"{"daysSincePurchase":{"from":3}}"#, true),
            (#"{"daysSincePurchase":{"from":3}}"#, #"{"daysSincePurchase":{"from":3,"to":9}}"#, false),
            (#"{"daysSincePurchase":{"from":4,"to":8}}"#, #"{"daysSincePurchase":{"from":3,"to":9}}"#, true),
            (#"{"daysSincePurchase":{"to":8}}"#, #"{"daysSincePurchase":{"from":3,"to":9}}"#, false),
        ] as [(String, String, Bool)])
    func `can never match when the other takes all that it takes`(
        _ later: String, _ earlier: String, _ isShadowed: Bool
    ) throws {
        #expect(try self.isShadowed(later, by: earlier) == isShadowed)
    }

    /// Thousands of small policies, with every set of facts that they could distinguish.
    @Test(arguments: 0..<400 as Range<UInt64>)
    func `is only said never to match when no facts reach it`(_ seed: UInt64) throws {
        var dice = PolicyDice(seed: seed)
        let patterns = ["*", "a*", "*a", "a*b", "ab", "b*", "*b*", "a"]
        func test() -> String {
            var parts: [String] = []
            if dice.roll(2) == 0 {
                let list = (0...dice.roll(2)).map { _ in "\"\(patterns[dice.roll(patterns.count)])\"" }
                parts.append(#""productId":[\#(list.joined(separator: ","))]"#)
            }
            if dice.roll(2) == 0 {
                let list = (0...dice.roll(2)).map { _ in "\"\(["a", "b", "c"][dice.roll(3)])\"" }
                parts.append(#""storefront":[\#(list.joined(separator: ","))]"#)
            }
            if dice.roll(2) == 0 {
                let from = dice.roll(4)
                let ends = [#""from":\#(from)"#, #""to":\#(from + dice.roll(3))"#]
                let shown = [ends, [ends[0]], [ends[1]]][dice.roll(3)]
                parts.append(#""refundsGranted":{\#(shown.joined(separator: ","))}"#)
            }
            return "{\(parts.joined(separator: ","))}"
        }
        let policy = try policy(
            rules: (0..<6).map { #"{"name":"\#($0)","when":\#(test()),"answer":{"withhold":true}}"# }
                .joined(separator: ","))
        let everyFacts = Self.everyFacts()
        let reached = Set(everyFacts.compactMap { policy.rule(for: $0)?.name })
        for pair in policy.unreachable() {
            #expect(!reached.contains(pair.rule.name), "\(pair.rule) is reached in spite of \(pair.because)")
            // The rule that is named as the cause matches everything that this rule matches.
            let escaped = everyFacts.first { pair.rule.matches($0) && !pair.because.matches($0) }
            #expect(escaped == nil, "\(pair)")
        }
    }

    private static func everyFacts() -> [RefundFacts] {
        let products: [Text?] = [nil, "", "a", "b", "c", "ab", "ba", "acb", "bab", "cac", "aa"]
        let storefronts: [Text?] = [nil, "a", "b", "c", "d"]
        let counts: [Int64?] = [nil, -1, 0, 1, 2, 3, 4, 5, 6]
        return products.flatMap { product in
            storefronts.flatMap { storefront in
                counts.map { count in
                    var facts = RefundFacts()
                    facts.productId = product
                    facts.storefront = storefront
                    facts.refundsGranted = count
                    return facts
                }
            }
        }
    }

    @Test func `is remarked on when no fact can be so, and when Apple has no such word`() throws {
        let policy = try policy(
            when:
                #"{"consumptionPercentage":{"from":100001},"reason":["LEGAL","UNINTENDED"],"refundsRequested":{"to":0}}"#
        )
        #expect(
            policy.remarks() == [
                .unusualWord(
                    rule: "a", fact: .reason, "UNINTENDED",
                    usual: ["UNINTENDED_PURCHASE", "FULFILLMENT_ISSUE", "UNSATISFIED_WITH_PURCHASE", "LEGAL", "OTHER"]),
                .impossible(
                    rule: "a", fact: .consumptionPercentage,
                    try #require(Self.range(of: .consumptionPercentage, in: policy))),
                .impossible(
                    rule: "a", fact: .refundsRequested, try #require(Self.range(of: .refundsRequested, in: policy))),
            ])
        #expect(try Self.specified().remarks().isEmpty)
    }

    private static func specified() throws -> RefundPolicy { try policy(specifiedPolicy) }

    private static func range(of fact: NumberFact, in policy: RefundPolicy) -> NumberRange? {
        for case .number(fact, let range) in policy.rules[0].tests { return range }
        return nil
    }
}
