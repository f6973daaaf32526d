import Comparison
import Testing

@Suite struct `Two values` {
    private static let rules = ComparisonRules(
        leavingOut: ["sequence", "asOf", "cause", "offset"], sums: ["counts", "money"])

    /// Texts are quoted with `'`.
    private func compare(_ here: String, _ there: String) -> Verdict {
        var comparison = ValueComparison(Self.rules)
        return comparison.compare(here: bytes(here), there: bytes(there))
    }

    private func bytes(_ text: String) -> [UInt8] { Array(text.replacing("'", with: "\"").utf8) }

    private func difference(_ path: String, _ here: String?, _ there: String?) -> Difference {
        Difference(path, here: here.map(bytes), there: there.map(bytes))
    }

    @Test(arguments: [
        ("{'v':1,'state':'active'}", "{'v':1,'state':'active'}"),
        (
            "{'v':1,'sequence':1,'asOf':2,'cause':{'offset':3},'offset':4}",
            "{'v':1,'sequence':9,'asOf':8,'cause':null,'offset':7}"
        ),
        ("{'sequence':1,'v':1}", "{'v':1}"),
        ("{'a':1,'b':2}", "{'b':2,'a':1}"),
        ("{ 'a' : [ 1 , { 'b' : 2 } ] }", "{'a':[1,{'b':2}]}"),
        ("{'a':1.0}", "{'a':1}"), ("{'a':10e-1}", "{'a':1}"), ("{'a':-0}", "{'a':0}"), ("{'a':1E+2}", "{'a':100}"),
        ("{'a':0.10}", "{'a':1e-1}"), ("{'a':18446744073709551616}", "{'a':18446744073709551616.0}"),
        ("{'a':null}", "{}"), ("{'a':{'b':null}}", "{'a':{}}"),
        ("{'a':'\\u0041'}", "{'a':'A'}"),
        ("{'counts':{'failed':0}}", "{'counts':{}}"), ("{'money':{}}", "{}"), ("{}", "{'counts':{'failed':0}}"),
        ("no JSON", "no JSON"), ("", ""),
    ])
    func `are the same whatever the way there, and however they are spelled`(here: String, there: String) {
        #expect(compare(here, there) == .same)
        #expect(compare(there, here) == .same)
    }

    @Test func `differ in the members that differ, wherever they stand`() {
        #expect(
            compare("{'v':1,'state':'active','access':true}", "{'v':1,'state':'grace','access':true}")
                == .different([difference("state", "'active'", "'grace'")]))
        #expect(
            compare(
                "{'retry':{'since':1,'until':2},'runs':[{'start':1,'end':2},{'start':3}]}",
                "{'retry':{'since':1,'until':3},'runs':[{'start':1,'end':9}]}")
                == .different([
                    difference("retry.until", "2", "3"), difference("runs[0].end", "2", "9"),
                    difference("runs[1]", "{'start':3}", nil),
                ]))
        #expect(compare("{'a':[null]}", "{'a':[]}") == .different([difference("a[0]", "null", nil)]))
        #expect(compare("{'a':null}", "{'a':false}") == .different([difference("a", nil, "false")]))
    }

    @Test func `differ in a member that nobody knows`() {
        #expect(compare("{'v':1,'later':1}", "{'v':1}") == .different([difference("later", "1", nil)]))
        #expect(compare("{'v':1}", "{'v':1,'later':{}}") == .different([difference("later", nil, "{}")]))
    }

    @Test func `are compared without the way there at the top only`() {
        #expect(
            compare("{'commitment':{'offset':1}}", "{'commitment':{'offset':2}}")
                == .different([difference("commitment.offset", "1", "2")]))
        #expect(compare("{'asOfDay':1}", "{'asOfDay':2}") == .different([difference("asOfDay", "1", "2")]))
    }

    @Test func `of numbers differ by as little as there is`() {
        let far = "1234567890123456789012345678901234567890"
        #expect(compare("{'a':\(far)}", "{'a':\(far.dropLast())1}") != .same)
        #expect(compare("{'a':1.00000000000000000001}", "{'a':1}") != .same)
        #expect(compare("{'a':-1}", "{'a':1}") != .same)
        #expect(compare("{'a':10}", "{'a':1}") != .same)
        #expect(compare("{'a':'1'}", "{'a':1}") != .same)
    }

    @Test func `of sums differ from nothing where they are not zero`() {
        #expect(
            compare("{'counts':{'failed':3,'renewed':1}}", "{'counts':{'renewed':1,'charged':2}}")
                == .different([difference("counts.failed", "3", "0"), difference("counts.charged", "0", "2")]))
        #expect(compare("{'counts':{'failed':3}}", "{}") == .different([difference("counts.failed", "3", "0")]))
        #expect(compare("{'counts':1}", "{'counts':{}}") == .different([difference("counts", "1", "{}")]))
    }

    @Test(arguments: ["{", "[]", "1", "{'a':1,'a':2}", "{'a':", "\u{1}"])
    func `that are no JSON objects are compared as bytes`(strange: String) {
        #expect(compare(strange, "{'a':1}") == .different([difference("", strange, "{'a':1}")]))
        #expect(compare("{'a':1}", strange) == .different([difference("", "{'a':1}", strange)]))
        #expect(compare(strange, strange) == .same)
    }

    @Test func `that are deeper or larger than any record are compared as bytes`() {
        let deep = String(repeating: "[", count: 100) + String(repeating: "]", count: 100)
        #expect(compare("{'a':\(deep)}", "{'a':\(deep) }") != .same)
        let large = "{'a':'\(String(repeating: "x", count: ValueComparison.limitBytes))'}"
        #expect(compare(large, large) == .same)
        #expect(compare(large, large + " ") != .same)
    }

    @Test func `with names that only look alike differ`() {
        #expect(compare("{'e\u{301}':1}", "{'\u{e9}':1}") != .same)
        #expect(compare("{'a':'e\u{301}'}", "{'a':'\u{e9}'}") != .same)
    }

    @Test func `that differ everywhere are told up to a limit`() {
        let many = (0..<3000).map { "'m\($0)':1" }.joined(separator: ",")
        guard case .different(let differences) = compare("{\(many)}", "{}") else {
            Issue.record("they differ")
            return
        }
        #expect(differences.count == ValueComparison.limitDifferences)
    }

    @Test func `are compared one pair after the other`() {
        var comparison = ValueComparison(Self.rules)
        #expect(comparison.compare(here: bytes("{'a':1}"), there: bytes("{'a':2}")) != .same)
        #expect(comparison.compare(here: bytes("{"), there: bytes("{'a':2}")) != .same)
        #expect(comparison.compare(here: bytes("{'a':1}"), there: bytes("{'a':1 }")) == .same)
    }
}

@Suite struct `A key of two topics` {
    private func judge(_ here: KeptValue?, _ there: KeptValue?) -> KeyVerdict {
        var judge = KeyJudge(ComparisonRules(leavingOut: ["asOf"]))
        return judge.judge(here: here, there: there)
    }

    private let one = KeptValue(Array(#"{"a":1,"asOf":1}"#.utf8))
    private let two = KeptValue(Array(#"{"a":2,"asOf":1}"#.utf8))
    private let deleted = KeptValue(nil)

    private func newer(_ value: KeptValue) -> KeptValue { KeptValue(value.value, isNewer: true) }

    @Test func `is the same, different, or of one side`() {
        #expect(judge(one, one) == .same)
        #expect(judge(one, two) == .different([Difference("a", here: Array("1".utf8), there: Array("2".utf8))]))
        #expect(judge(one, nil) == .onlyHere)
        #expect(judge(nil, one) == .onlyThere)
    }

    @Test func `that was deleted is not there`() {
        #expect(judge(one, deleted) == .onlyHere)
        #expect(judge(deleted, one) == .onlyThere)
        #expect(judge(deleted, deleted) == .nothing)
        #expect(judge(deleted, nil) == .nothing)
        #expect(judge(nil, newer(deleted)) == .nothing)
    }

    @Test func `that one side has moved on is newer, whatever its values`() {
        #expect(judge(one, newer(two)) == .newer)
        #expect(judge(one, newer(one)) == .newer)
        #expect(judge(one, newer(deleted)) == .newer)
        #expect(judge(nil, newer(one)) == .newer)
        #expect(judge(newer(two), one) == .newer)
        #expect(judge(newer(one), nil) == .newer)
        #expect(judge(newer(deleted), one) == .newer)
    }
}
