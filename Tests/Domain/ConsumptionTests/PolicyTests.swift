import Consumption
import Notices
import Records
import Testing

@Suite struct `A refund policy` {
    @Test func `gives the answer of the first rule that matches`() throws {
        let policy = try policy(specifiedPolicy)
        var facts = RefundFacts()
        #expect(policy.rule(for: facts)?.name == "rest")
        facts.reason = "LEGAL"
        #expect(policy.rule(for: facts)?.answer == .withhold)
        facts.productId = "coins.100"
        facts.consumptionPercentage = 50_000
        #expect(policy.rule(for: facts)?.answer == .prefer(.decline))
        facts.daysSincePurchase = 2
        facts.refundsRequested = 1
        #expect(policy.rule(for: facts)?.answer == .prefer(.grantFull))
        facts.refundsRequested = 2
        #expect(policy.rule(for: facts)?.name == "used up coins")
        facts.consumptionPercentage = 49_999
        #expect(policy.rule(for: facts)?.name == "legal")
        facts.reason = "LEGA"
        #expect(policy.rule(for: facts)?.answer == .prefer(nil))
    }

    @Test func `gives no rule when none matches`() throws {
        let policy = try policy(when: #"{"storefront":"USA"}"#)
        var facts = RefundFacts()
        facts.storefront = "DEU"
        #expect(policy.rule(for: facts) == nil)
        #expect(policy.rule(for: RefundFacts()) == nil)
    }

    @Test func `carries its version, its defaults and its shadow`() throws {
        let policy = try policy(specifiedPolicy)
        #expect(policy.version == "2026-11")
        #expect(policy.deliveryStatus == .delivered && policy.sampleContentProvided == false)
        #expect(policy.shadow?.version == "2026-12" && policy.shadow?.rules.isEmpty == true)
        #expect(policy.shadow?.shadow == nil)
        let bare = try Self.bare()
        #expect(bare.deliveryStatus == nil && bare.sampleContentProvided == nil && bare.shadow == nil)
    }

    private static func bare() throws -> RefundPolicy {
        try policy(#"{"version":"1","rules":[],"shadow":null,"defaults":{"deliveryStatus":null}}"#)
    }

    @Test(arguments: TextFact.allCases)
    func `tests every text for being one of a list`(_ fact: TextFact) throws {
        let (word, other, third) =
            switch fact {
            case .deliveryStatus: ("DELIVERED", "UNDELIVERED_OTHER", "UNDELIVERED_WRONG_ITEM")
            case .offerType: ("code", "win_back", "introductory")
            default: ("A", "B", "C")
            }
        let one = try policy(when: #"{"\#(fact.rawValue)":"\#(word)"}"#)
        let two = try policy(when: #"{"\#(fact.rawValue)":["\#(word)","\#(other)"]}"#)
        func facts(_ text: String) -> RefundFacts {
            var facts = RefundFacts()
            switch fact {
            case .productId: facts.productId = Text(text)
            case .productType: facts.productType = Text(text)
            case .bundleId: facts.bundleId = Text(text)
            case .storefront: facts.storefront = Text(text)
            case .reason: facts.reason = Text(text)
            case .billingPlan: facts.billingPlan = Text(text)
            case .offerType: facts.offerType = Text(text)
            case .deliveryStatus: facts.deliveryStatus = Text(text)
            }
            return facts
        }
        #expect(one.rule(for: facts(word)) != nil && one.rule(for: facts(other)) == nil)
        #expect(two.rule(for: facts(word)) != nil && two.rule(for: facts(other)) != nil)
        #expect(two.rule(for: facts(third)) == nil)
        #expect(one.rule(for: facts(word + " ")) == nil && one.rule(for: facts(word.lowercased() + "é")) == nil)
        #expect(one.rule(for: RefundFacts()) == nil && two.rule(for: RefundFacts()) == nil)
    }

    @Test(arguments: NumberFact.allCases)
    func `tests every number for its value and for both ends of a range`(_ fact: NumberFact) throws {
        func facts(_ number: Int64) -> RefundFacts {
            var facts = RefundFacts()
            switch fact {
            case .commitmentPeriod: facts.commitmentPeriod = number
            case .consumptionPercentage: facts.consumptionPercentage = number
            case .daysSincePurchase: facts.daysSincePurchase = number
            case .refundsRequested: facts.refundsRequested = number
            case .refundsGranted: facts.refundsGranted = number
            }
            return facts
        }
        func taken(_ test: String) throws -> [Int64] {
            let policy = try policy(when: #"{"\#(fact.rawValue)":\#(test)}"#)
            #expect(policy.rule(for: RefundFacts()) == nil)
            return [Int64.min, 1, 2, 3, 4, Int64.max].filter { policy.rule(for: facts($0)) != nil }
        }
        #expect(try taken("2") == [2])
        #expect(try taken(#"{"from":2}"#) == [2, 3, 4, .max])
        #expect(try taken(#"{"to":2}"#) == [.min, 1, 2])
        #expect(try taken(#"{"from":2,"to":3}"#) == [2, 3])
        #expect(try taken(#"{"from":-9223372036854775808,"to":9223372036854775807}"#) == [.min, 1, 2, 3, 4, .max])
    }

    @Test(
        arguments: [
            ("coins.*", "coins.100", true), ("coins.*", "coins.", true), ("coins.*", "coin.100", false),
            ("*", "", true), ("*.pro.*", "com.pro.yearly", true), ("*.pro.*", "com.prolog.yearly", false),
            ("a*b*c", "abc", true), ("a*b*c", "a-b-b-c", true), ("a*b*c", "acb", false), ("*ab", "aab", true),
            ("**", "x", true), ("a*", "b", false), ("*a", "ab", false), ("coins", "coins.1", false),
        ] as [(String, String, Bool)])
    func `takes an asterisk in productId for any run of characters`(
        _ pattern: String, _ productId: String, _ isTaken: Bool
    ) throws {
        var facts = RefundFacts()
        facts.productId = Text(productId)
        #expect((try policy(when: #"{"productId":"\#(pattern)"}"#).rule(for: facts) != nil) == isTaken)
        // Elsewhere it is an ordinary character.
        facts.bundleId = "coins.100"
        #expect(try policy(when: #"{"bundleId":"\#(pattern)"}"#).rule(for: facts) == nil)
    }

    @Test func `matches a long pattern in a long text in no time to speak of`() throws {
        let pattern = String(repeating: "*a", count: 500) + "b"
        var facts = RefundFacts()
        facts.productId = Text(String(repeating: "a", count: 1_000))
        #expect(try policy(when: #"{"productId":"\#(pattern)"}"#).rule(for: facts) == nil)
    }

    @Test func `has the numbers of Apple's older interface for its words`() {
        #expect(DeliveryStatus.allCases.map(\.numberOfV1) == [0, 1, 2, 3, 5])
        #expect(RefundPreference.allCases.map(\.numberOfV1) == [2, 1, 1])
    }

    @Test func `shows its rules as a table`() throws {
        #expect(
            try policy(specifiedPolicy).table == [
                "   rule                             when                                  answer",
                "1  first request of a new customer  daysSincePurchase at most 2           GRANT_FULL",
                "                                    refundsRequested 1",
                "2  used up coins                    productId coins.*                     DECLINE",
                "                                    consumptionPercentage at least 50000",
                "3  legal                            reason LEGAL or OTHER                 withhold",
                "4  rest                             always                                usage's, if any",
            ])
        let words = (1...12).map { #""product.number.\#($0)""# }.joined(separator: ",")
        let long = try policy(when: #"{"productId":[\#(words)],"daysSincePurchase":{"from":1,"to":3}}"#)
        #expect(long.table.count == 9 && long.table.allSatisfy { $0.count < 90 && $0.last != " " })
        #expect(long.table.last == "   (no rule)  nothing above matches                            no preference")
        #expect(long.table.contains { $0.contains("daysSincePurchase 1 to 3") })
    }
}

@Suite struct `The fingerprint of a refund policy` {
    @Test func `is the same for any white space, order of members and order of a list`() throws {
        let one = try policy(
            #"{"version":"1","rules":[{"name":"a","when":{"reason":["LEGAL","OTHER"],"productId":"p"},"answer":{"withhold":true}}]}"#
        )
        let other = try policy(
            """
            {"rules": [
              {"answer": {"withhold": true}, "name": "\\u0061",
               "when": {"productId": ["p"], "reason": ["OTHER", "LEGAL", "OTHER"]}}
            ], "version": "1", "shadow": null, "defaults": {}}
            """)
        #expect(one == other)
        #expect(one.fingerprint == other.fingerprint)
    }

    @Test func `differs with everything that decides`() throws {
        let texts = [
            specifiedPolicy, specifiedPolicy.replacing("2026-11", with: "2026-10"),
            specifiedPolicy.replacing("2026-12", with: "2026-13"),
            specifiedPolicy.replacing(#""DELIVERED""#, with: #""UNDELIVERED_OTHER""#),
            specifiedPolicy.replacing(#""sampleContentProvided":false"#, with: #""sampleContentProvided":true"#),
            specifiedPolicy.replacing(#","sampleContentProvided":false"#, with: ""),
            specifiedPolicy.replacing(#"{"to":2}"#, with: #"{"to":3}"#),
            specifiedPolicy.replacing(#"{"to":2}"#, with: #"{"from":2}"#),
            specifiedPolicy.replacing(#"{"to":2}"#, with: "2"), specifiedPolicy.replacing("coins.*", with: "coins"),
            specifiedPolicy.replacing(#","OTHER""#, with: ""),
            specifiedPolicy.replacing("GRANT_FULL", with: "GRANT_PRORATED"),
            specifiedPolicy.replacing(#""withhold":true"#, with: #""refundPreference":null"#),
            specifiedPolicy.replacing("legal", with: "lawful"),
        ]
        let prints = try texts.map { try policy($0).fingerprint }
        #expect(Set(prints).count == prints.count)
        let rule = #"{"name":"a","when":{},"answer":{"withhold":true}}"#
        let second = #"{"name":"b","when":{},"answer":{"withhold":true}}"#
        #expect(try policy(rules: "\(rule),\(second)").fingerprint != policy(rules: "\(second),\(rule)").fingerprint)
    }
}
