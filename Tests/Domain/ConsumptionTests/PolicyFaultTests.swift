import Consumption
import Notices
import Testing

@Suite struct `A policy file` {
    @Test(
        arguments: [
            // The frame.
            ("", "1:1 there is no JSON value"),
            ("[]", "1:1 a policy must be an object, not a list"),
            (#"{"rules":[]}"#, #"1:1 the policy has no version, such as "version": "2026-11""#),
            (#"{"version":1,"rules":[]}"#, #"1:12 version must be a text such as "2026-11", not a number"#),
            (#"{"version":"","rules":[]}"#, "1:12 version must have 1 to 200 bytes, and no control characters"),
            (#"{"version":"1"}"#, #"1:1 rules is missing; write "rules": [] for a policy without rules"#),
            (#"{"version":"1","rules":{}}"#, "1:24 rules must be a list of rules, not an object"),
            (
                #"{"version":"1","rules":[],"rules":[]}"#,
                #"1:27 "rules" appears here a second time; keep one of the two"#
            ),
            (
                #"{"version":"1","rules":[],"rule":[]}"#,
                #"1:27 a policy has no member called "rule"; use one of version, defaults, rules, shadow"#
            ),
            (
                #"{"version":"1","rules":[],"shadow":{"version":"2","rules":[],"shadow":{}}}"#,
                "1:71 a shadow cannot have a shadow of its own; remove it"
            ),
            (
                #"{"version":"1","rules":[],"shadow":{"rules":[]}}"#,
                #"1:36 the policy has no version, such as "version": "2026-11""#
            ),
            // Defaults.
            (#"{"version":"1","rules":[],"defaults":[]}"#, "1:38 defaults must be an object, not a list"),
            (
                #"{"version":"1","rules":[],"defaults":{"sampleContentProvided":"no"}}"#,
                "1:63 sampleContentProvided must be true or false, not a text"
            ),
            (
                #"{"version":"1","rules":[],"defaults":{"deliveryStatus":"delivered"}}"#,
                #"1:56 no deliveryStatus is called "delivered"; use one of DELIVERED, UNDELIVERED_QUALITY_ISSUE, "#
                    + "UNDELIVERED_WRONG_ITEM, UNDELIVERED_SERVER_OUTAGE, UNDELIVERED_OTHER"
            ),
            // What is no JSON.
            ("{\"version\":\n  \"1}", "2:3 a string is not closed by a quotation mark"),
            ("{\n\"version\":\"1\"", "2:14 a bracket is not closed"),
            ("{\"a\":\n\n tru}", "3:2 expected a value; text must be in quotation marks"),
            (
                String(repeating: "[", count: 17) + String(repeating: "]", count: 17),
                "1:17 brackets are nested too deeply (limit 16)"
            ),
        ] as [(String, String)])
    func `is refused with the place of what is wrong`(_ text: String, _ fault: String) {
        #expect(faults(text) == [fault])
    }

    @Test(
        arguments: [
            (#"{"when":{},"answer":{"withhold":true}}"#, #"1:1 the rule has no name, such as "name": "late requests""#),
            (
                #"{"name":7,"when":{},"answer":{"withhold":true}}"#,
                #"1:9 name must be a text such as "late requests", not a number"#
            ),
            (
                #"{"name":"a\n","when":{},"answer":{"withhold":true}}"#,
                "1:9 name must have 1 to 200 bytes, and no control characters"
            ),
            (
                #"{"name":"a","answer":{"withhold":true}}"#,
                #"1:1 the rule has no when; write "when": {} for a rule that matches every request"#
            ),
            (
                #"{"name":"a","when":{}}"#,
                #"1:1 the rule has no answer, such as "answer": {"refundPreference": "DECLINE"}"#
            ),
            (
                #"{"name":"a","when":{},"answer":{}}"#,
                #"1:32 the answer is empty; give a refundPreference (null for none), or "withhold": true"#
            ),
            (
                #"{"name":"a","when":{},"answer":{"withhold":false}}"#,
                "1:44 withhold can only be true; to send an answer, remove it and give a refundPreference"
            ),
            (
                #"{"name":"a","when":{},"answer":{"withhold":true,"refundPreference":"DECLINE"}}"#,
                "1:44 withhold sends nothing and cannot be combined with refundPreference; keep one of the two"
            ),
            (
                #"{"name":"a","when":{},"answer":{"refundPreference":"GRANT"}}"#,
                #"1:52 no refundPreference is called "GRANT"; use one of DECLINE, GRANT_FULL, GRANT_PRORATED"#
            ),
            (
                #"{"name":"a","when":{},"answer":{"refundPreference":1}}"#,
                "1:52 refundPreference must be one of DECLINE, GRANT_FULL, GRANT_PRORATED, null, not a number"
            ),
            (#"{"name":"a","when":[],"answer":{"withhold":true}}"#, "1:20 when must be an object, not a list"),
            ("7", "1:1 a rule must be an object, not a number"),
        ] as [(String, String)])
    func `is refused with the place in the rule`(_ rule: String, _ fault: String) {
        let start = #"{"version":"1","rules":["#
        let column = Int(fault.dropFirst(2).prefix { $0 != " " }) ?? 0
        let rest = fault.drop { $0 != " " }
        #expect(faults(start + rule + "]}") == ["1:\(column + start.count)\(rest)"])
    }

    @Test(
        arguments: [
            (#"{"reason":7}"#, "11 reason must be a text or a list of texts, not a number"),
            (#"{"reason":null}"#, "11 reason must be a text or a list of texts, not null"),
            (#"{"reason":[]}"#, "11 the list for reason is empty and could never match; add a text, or remove it"),
            (#"{"reason":["A",7]}"#, "16 a list for reason must contain texts, not a number"),
            (#"{"reason":""}"#, "11 a text for reason must have 1 to 1024 bytes, and no control characters"),
            (
                #"{"offerType":"winback"}"#,
                #"14 no offerType is called "winback"; use one of introductory, promotional, code, win_back"#
            ),
            (
                #"{"refundsGranted":"1"}"#,
                #"19 refundsGranted must be a whole number or a range such as {"from": 1, "to": 3}, not a text"#
            ),
            (
                #"{"refundsGranted":1.5}"#,
                "19 refundsGranted must be a whole number of at most 64 bits, without fraction and exponent"
            ),
            (
                #"{"refundsGranted":9223372036854775808}"#,
                "19 refundsGranted must be a whole number of at most 64 bits, without fraction and exponent"
            ),
            (
                #"{"refundsGranted":{"from":1e3}}"#,
                "27 from must be a whole number of at most 64 bits, without fraction and exponent"
            ),
            (#"{"refundsGranted":{"to":"x"}}"#, "25 to must be a whole number, not a text"),
            (#"{"refundsGranted":{}}"#, #"19 a range needs from, to or both, such as {"from": 1, "to": 3}"#),
            (#"{"refundsGranted":{"from":3,"to":2}}"#, "19 the range from 3 to 2 is empty; swap the two numbers"),
            (
                #"{"refundsGranted":{"from":3,"until":4}}"#,
                #"29 a range has no member called "until"; use one of from, to"#
            ),
            (
                #"{"refundsGranted":1,"refundsGranted":2}"#,
                #"21 "refundsGranted" appears here a second time; keep one of the two"#
            ),
        ] as [(String, String)])
    func `is refused with the place of the test`(_ when: String, _ fault: String) {
        let start = #"{"version":"1","rules":[{"name":"a","when":"#
        let column = Int(fault.prefix { $0 != " " }) ?? 0
        let rest = fault.drop { $0 != " " }
        #expect(faults(start + when + #","answer":{"withhold":true}}]}"#) == ["1:\(column + start.count)\(rest)"])
    }

    @Test func `is told all that is wrong, in the order of the file`() {
        let text = """
            {
              "rules": [
                {"name": "ä", "when": {"reson": "LEGAL"}, "answer": {"refundPreference": "DENY"}},
                {"name": "ä", "when": {"refundsGranted": {"from": 2, "to": 1}}, "answer": {"withhold": 1}}
              ],
              "version": 1
            }
            """
        #expect(
            faults(text).map { String($0.prefix { $0 != " " }) } == ["3:28", "3:78", "4:14", "4:46", "4:92", "6:14"])
        #expect(faults(text)[2] == #"4:14 a rule above is also called "ä"; every rule needs a unique name"#)
    }

    @Test func `names what was probably meant`() throws {
        let text = #"{"version":"1","rules":[],"ruels":[],"defaults":{"deliveryStatus":"DELIVRED"}}"#
        var asked: [String] = []
        let found = #expect(throws: PolicyFaults.self) {
            _ = try RefundPolicy.read(Array(text.utf8)) { name, known in
                asked.append(name)
                return known.first { $0.first == name.first }
            }
        }
        #expect(asked == ["ruels", "DELIVRED"])
        #expect(
            found?.description == """
                line 1, column 27: a policy has no member called "ruels"; the nearest is rules
                line 1, column 67: no deliveryStatus is called "DELIVRED"; the nearest is DELIVERED
                """)
    }

    @Test func `is refused when it is too large, and beyond the limits of rules, texts and names`() {
        let large = Array(repeating: UInt8(ascii: " "), count: RefundPolicy.limitBytes + 1)
        #expect(throws: PolicyFaults.self) { _ = try RefundPolicy.read(large) }
        func rules(_ count: Int) -> String {
            (0..<count).map { #"{"name":"\#($0)","when":{},"answer":{"withhold":true}}"# }.joined(separator: ",")
        }
        #expect(throws: Never.self) { _ = try policy(rules: rules(RefundPolicy.limitRules)) }
        #expect(
            faults(#"{"version":"1","rules":[\#(rules(501))]}"#).map { $0.hasSuffix("at most 500 rules") } == [true])
        func texts(_ count: Int) -> String {
            let list = (0..<count).map { "\"\($0)\"" }.joined(separator: ",")
            return #"{"version":"1","rules":[{"name":"a","when":{"reason":[\#(list)]},"answer":{"withhold":true}}]}"#
        }
        #expect(faults(texts(RefundPolicy.limitTexts)).isEmpty)
        #expect(faults(texts(501)).map { $0.hasSuffix("a list has at most 500 texts") } == [true])
        let name = String(repeating: "n", count: RefundPolicy.limitNameBytes)
        #expect(faults(#"{"version":"\#(name)","rules":[]}"#).isEmpty)
        #expect(faults(#"{"version":"\#(name)n","rules":[]}"#).count == 1)
    }

    @Test func `is refused when it is not UTF-8, and never echoes a control character`() {
        let notText = Array("{\"version\":\"1\",\n\"rul".utf8) + [0xff] + Array("es\":[]}".utf8)
        let found = #expect(throws: PolicyFaults.self) { _ = try RefundPolicy.read(notText) }
        #expect(found?.faults.first?.line == 2 && found?.faults.first?.column == 5)
        let told = faults("{\"version\":\"1\",\"rules\":[],\"\\u001b[2J\":1}")
        #expect(told.count == 1 && told[0].unicodeScalars.allSatisfy { $0.value >= 0x20 })
    }

    @Test func `tells at most a bounded number of faults`() {
        let rules = (0..<400).map { _ in "7" }.joined(separator: ",")
        #expect(faults(#"{"version":"1","rules":[\#(rules)]}"#).count == PolicyFaults.limit)
    }
}
