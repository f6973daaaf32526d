import Consumption
import JSON
import Schemas
import Testing

@Suite struct `The schema of policy files` {
    private func problems(_ text: String) throws -> [String] {
        try Schema("refund-policy").problems(of: JSONValue.read(Array(text.utf8)))
    }

    @Test func `takes the policy of the specification`() throws {
        #expect(try problems(specifiedPolicy) == [])
    }

    /// Each is the specified policy with one place changed.
    private static let changes: [(String, String)] = [
        (#""version":"2026-11","#, ""), (#""version":"2026-11""#, #""version":7"#), (#""DELIVERED""#, #""DELIVRED""#),
        (#""DELIVERED""#, "null"), (#""sampleContentProvided":false"#, #""sampleContentProvided":"no""#),
        (#""sampleContentProvided":false"#, #""other":false"#), (#""defaults":{"#, #""default":{"#),
        (#""name":"legal","#, ""), (#""name":"legal""#, #""name":"""#), (#""when":{},"#, ""),
        (#""when":{}"#, #""when":[]"#), (#""reason":["LEGAL","OTHER"]"#, #""reason":[]"#),
        (#""reason":["LEGAL","OTHER"]"#, #""reason":[7]"#), (#""reason":["LEGAL","OTHER"]"#, #""reason":"""#),
        (#""reason":["LEGAL","OTHER"]"#, #""reson":"LEGAL""#), (#""refundsRequested":1"#, #""refundsRequested":"1""#),
        (#""refundsRequested":1"#, #""refundsRequested":1.5"#), (#"{"to":2}"#, "{}"), (#"{"to":2}"#, #"{"to":null}"#),
        (#"{"to":2}"#, #"{"from":1,"to":2}"#), (#"{"to":2}"#, #"{"from":1,"until":2}"#), (#"{"to":2}"#, "[1,2]"),
        (#"{"withhold":true}"#, #"{"withhold":false}"#), (#"{"withhold":true}"#, "{}"),
        (#"{"withhold":true}"#, #"{"withhold":true,"refundPreference":null}"#),
        (#""refundPreference":"DECLINE""#, #""refundPreference":"NO""#),
        (#""refundPreference":"DECLINE""#, #""refundPreference":3"#),
        (#","rules":[]}"#, "}"), (#""rules":[]}"#, #""rules":[],"shadow":null}"#),
        (#""rules":[]}"#, #""rules":[],"shadow":{"version":"3","rules":[]}}"#),
        (#""rules":[]}"#, #""rules":[],"defaults":{"deliveryStatus":"x"}}"#),
        (#"{"version":"2026-12","rules":[]}"#, "null"), (#"{"version":"2026-12","rules":[]}"#, "[]"),
    ]

    @Test(arguments: changes)
    func `takes and refuses what the program does`(_ old: String, _ new: String) throws {
        try #require(specifiedPolicy.contains(old))
        let text = specifiedPolicy.replacing(old, with: new)
        let told = faults(text)
        #expect(try problems(text).isEmpty == told.isEmpty, "the program says \(told)")
    }

    @Test func `names every fact that a rule may test`() throws {
        let tests = try Schema("refund-policy").names(of: "when", in: "rule")
        #expect(tests == TextFact.allCases.map(\.rawValue) + NumberFact.allCases.map(\.rawValue))
    }
}
