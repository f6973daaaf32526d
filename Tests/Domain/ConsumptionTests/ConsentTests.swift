import JSON
import MakeBelieve
import Testing

@testable import Consumption

@Suite struct `Consent to tell Apple` {
    @Test func `given lets the answer go at once, and is the first thing that it says`() throws {
        var desk = Desk()
        try desk.say(whole)
        try desk.ask()
        #expect(desk.words == ["requested", "decided"])
        #expect(desk.body?.hasPrefix(#"{"customerConsented":true,"#) == true)
    }

    @Test func `of the instant of the request gives the same records, whichever of the two is read first`() throws {
        var before = Desk()
        try before.say(whole, at: asked)
        try before.ask()
        var after = Desk()
        try after.ask()
        try after.say(whole, at: asked)
        #expect(before.words == ["requested", "decided"])
        #expect(before.told.map(\.value) == after.told.map(\.value))
    }

    private static let noes: [String?] = [
        nil, #""consented":false"#, #""consented":null"#, #""consented":"true""#, #""consented":1"#,
    ]

    @Test(arguments: noes)
    func `not given, or never spoken of, lets nothing go, and no body is made`(word: String?) throws {
        var desk = Desk()
        try desk.say(#""deliveryStatus":"DELIVERED","consumptionPercentage":1"#)
        if let word { try desk.say(word) }
        try desk.ask()
        #expect(desk.words == ["requested"])
        try desk.pass(until: asked + waitForUsage - 1)
        #expect(desk.words == ["requested"])
        try desk.pass(until: asked + 20 * hour)
        #expect(desk.words == ["requested", "withheld no_consent"])
        #expect(desk.told.last?.at == asked + waitForUsage)
        #expect(desk.told.allSatisfy { $0.body == nil })
    }

    /// Rows in the order of arrival: for all purchases or for this one, the consent, and its date.
    struct Words: Sendable, CustomTestStringConvertible {
        let said: [(ofAll: Bool, given: Bool, at: Int64)]
        let holds: Bool
        var testDescription: String {
            said.map { "\($0.ofAll ? "all" : "one") \($0.given) at \($0.at)" }.joined(separator: ", ")
        }

        static let all = [
            Words(said: [(true, true, 1)], holds: true),
            Words(said: [(false, true, 1)], holds: true),
            Words(said: [(true, true, 1), (false, false, 2)], holds: false),
            Words(said: [(false, false, 1), (true, true, 2)], holds: true),
            Words(said: [(false, true, 1), (true, false, 2)], holds: false),
            Words(said: [(true, false, 1), (false, true, 2)], holds: true),
            // The consent with the later date counts, not the one that arrived later.
            Words(said: [(true, false, 2), (true, true, 1)], holds: false),
            Words(said: [(false, true, 3), (false, false, 2)], holds: true),
            Words(said: [(true, true, 3), (false, false, 2)], holds: true),
            // Of two with one date, the refusal counts.
            Words(said: [(true, true, 2), (false, false, 2)], holds: false),
            Words(said: [(true, false, 2), (false, true, 2)], holds: false),
            Words(said: [(false, false, 2), (false, true, 2)], holds: false),
            Words(said: [(true, true, 2), (true, false, 2), (true, true, 3)], holds: true),
        ]
    }

    @Test(arguments: Words.all)
    func `is the newest word over both rows by its own date, and of two of one instant the refusal`(
        _ words: Words
    ) throws {
        for isBefore in [true, false] {
            var desk = Desk()
            if !isBefore { try desk.ask() }
            for word in words.said {
                try desk.say(
                    "\"consented\":\(word.given),\"consentedAt\":\(d(-1) + word.at)", of: word.ofAll ? nil : "7")
            }
            if isBefore { try desk.ask() }
            try desk.pass(until: asked + waitForUsage)
            #expect((desk.decision != nil) == words.holds)
        }
    }

    @Test func `without a date is of when its record was written`() throws {
        for (first, second, holds) in [(true, false, false), (false, true, true)] {
            var desk = Desk()
            try desk.say("\"consented\":\(second)", at: d(3))
            try desk.say("\"consented\":\(first)", at: d(2))
            try desk.ask()
            try desk.pass(until: asked + hour)
            #expect((desk.decision != nil) == holds)
        }
    }

    @Test func `of the future does not outlast a withdrawal`() throws {
        var desk = Desk()
        try desk.say("\(whole),\"consentedAt\":\(Int64.max)", at: d(1))
        try desk.say(#""consented":false"#, at: d(2))
        try desk.ask()
        try desk.pass(until: asked + hour)
        #expect(desk.words == ["requested", "withheld no_consent"])
        // A refusal may have any date: it counts until a later row.
        var other = Desk()
        try other.say("\"consented\":false,\"consentedAt\":\(Int64.max)", at: d(1))
        try other.say(whole, at: d(5))
        try other.ask()
        try other.pass(until: asked + hour)
        #expect(other.words == ["requested", "withheld no_consent"])
    }

    @Test func `of another purchase is none of this one`() throws {
        var desk = Desk()
        try desk.say(whole, of: "8")
        try desk.ask()
        try desk.pass(until: asked + hour)
        #expect(desk.words == ["requested", "withheld no_consent"])
    }

    @Test func `that comes until the deadline turns what was withheld into an answer, and then no more`() throws {
        let cases: [(Int64, Bool)] = [(12 * hour - 1, true), (12 * hour, false), (20 * hour, false)]
        for (instant, isAnswered) in cases {
            var desk = Desk()
            try desk.ask()
            try desk.pass(until: asked + instant)
            try desk.say(whole)
            #expect(desk.words == ["requested", "withheld no_consent"] + (isAnswered ? ["decided"] : []))
        }
    }

    @Test func `withdrawn stops what was decided, and given again repeats the same bytes`() throws {
        var desk = Desk(Desk.rules(try policy(rules: "")))
        try desk.say(whole)
        try desk.ask()
        let first = try #require(desk.decision)
        try desk.pass(until: asked + minute)
        try desk.say(#""consented":false"#, of: nil)
        #expect(desk.words == ["requested", "decided", "withheld no_consent"])
        try desk.pass(until: asked + 2 * minute)
        try desk.say(#""consented":true,"deliveryStatus":"UNDELIVERED_OTHER","consumptionPercentage":7"#)
        let second = try #require(desk.decision)
        #expect(desk.words == ["requested", "decided", "withheld no_consent", "decided"])
        #expect(second.body == first.body && second.facts == first.facts && second.policy == first.policy)
        #expect(second.at == asked + 2 * minute)
        // And nothing is written while it does not change.
        try desk.say(#""consented":true"#)
        #expect(desk.told.count == 4)
    }

    @Test func `withdrawn until the deadline leaves it at that: it is not told to be expired`() throws {
        var desk = Desk()
        try desk.say(whole)
        try desk.ask()
        try desk.pass(until: asked + 1)
        try desk.say(#""consented":false"#)
        try desk.pass(until: asked + 3 * day)
        try desk.say(#""consented":true"#)
        #expect(desk.words == ["requested", "decided", "withheld no_consent"])
        #expect(desk.state.nextDue(desk.rules) == nil)
    }
}
