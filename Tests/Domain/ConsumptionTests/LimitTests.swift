import JSON
import MakeBelieve
import Notices
import Testing

@testable import Consumption

@Suite struct `Limits of what is kept of one subscription` {
    @Test func `requests: of more open ones the next is refused, and one that is over makes room`() throws {
        var desk = Desk()
        desk.isKeptAsBytes = false
        for number in 0..<RefundState.limitRequests { try desk.ask("q\(number)", signed: asked + Int64(number)) }
        #expect(throws: RefundFault.tooManyRequests) { try desk.ask("more", signed: asked + 1_000) }
        #expect(desk.told.count { $0.kind == .requested } == RefundState.limitRequests)
        try desk.pass(until: asked + 12 * hour + minute - 1)
        #expect(throws: RefundFault.tooManyRequests) { try desk.ask("more", signed: asked + 12 * hour, at: desk.clock) }
        desk.isKeptAsBytes = true
        try desk.ask("more", signed: asked + 12 * hour, at: asked + 12 * hour + minute)
        #expect(desk.told.last?.id == "more")
        // The oldest one was dropped. If its request came again, it would be too old to be answered.
        try desk.ask("q0", signed: asked, at: asked + 13 * hour)
        #expect(desk.told(about: "q0").suffix(2).map(\.word) == ["requested", "expired"])
    }

    @Test func `a request without its UUID is refused`() throws {
        var desk = Desk()
        for id in [#""notificationUUID":null"#, #""notificationUUID":"""#, #""notificationUUID":5"#] {
            let text = request().replacing(#""notificationUUID":"q""#, with: id)
            #expect(throws: RefundFault.noUUID) { try desk.hear(text, at: asked) }
        }
        #expect(desk.words == [])
    }

    @Test func `rows of usage: the oldest is forgotten, but not that somebody refused`() throws {
        var desk = Desk()
        desk.isKeptAsBytes = false
        try desk.say(#""consented":true,"deliveryStatus":"DELIVERED""#, of: nil, at: d(1))
        try desk.say(#""consented":false"#, of: "a0", at: d(2))
        for number in 1..<UsageTable.limitTransactions {
            try desk.say(#""consumptionPercentage":5"#, of: "a\(number)", at: d(3))
        }
        #expect(desk.state.usage.entries.count == UsageTable.limitTransactions)
        #expect(desk.state.usage.forgottenRefusal == nil)
        try desk.say(#""consumptionPercentage":7"#, of: "b", at: d(3))
        #expect(desk.state.usage.entries.count == UsageTable.limitTransactions)
        #expect(desk.state.usage.forgottenRefusal == d(2))
        desk.isKeptAsBytes = true
        try desk.ask("q", of: "a0", Bought.subscription)
        try desk.ask("q2", of: "a7", Bought.subscription)
        try desk.pass(until: asked + hour)
        #expect(desk.told(about: "q").map(\.word) == ["requested", "withheld no_consent"])
        #expect(desk.told(about: "q2").map(\.word) == ["requested", "decided"])
        // A newer consent for all purchases counts before it.
        try desk.say(#""consented":true"#, of: nil, at: d(11))
        #expect(desk.told(about: "q").map(\.word) == ["requested", "withheld no_consent", "decided"])
    }

    @Test func `rows of attempts that belong to no request: the rest is counted`() throws {
        var desk = Desk()
        for number in 1...Int64(RefundState.limitEarlyAttempts + 3) { try desk.attempt(number, 500) }
        #expect(desk.state.earlyAttempts.count == RefundState.limitEarlyAttempts)
        #expect(desk.strayAttempts == 3)
    }

    @Test func `outcomes and refunded purchases: the oldest are forgotten`() throws {
        var desk = Desk()
        desk.isKeptAsBytes = false
        for number in 0...1_001 {
            let signed = d(1) + Int64(number)
            try desk.hear(
                outcome(
                    "REFUND", "r\(number)", of: "\(10_000 + number)", signed: signed, ["revocationDate": "\(signed)"]),
                at: signed)
        }
        desk.isKeptAsBytes = true
        try desk.say(whole)
        #expect(desk.state.outcomes.count == RefundState.limitOutcomes)
        #expect(desk.state.standings.count == RefundState.limitStandings)
    }

    @Test func `purchases that were asked about go on being counted when they are forgotten`() throws {
        var desk = Desk()
        desk.isKeptAsBytes = false
        for number in 0..<1_100 {
            let signed = asked + Int64(number) * day
            try desk.ask("q\(number)", of: "\(number)", signed: signed, at: signed)
        }
        desk.isKeptAsBytes = true
        try desk.say(whole, of: "1099")
        #expect(try desk.facts()["refundsRequested"]?.integer == 1_100)
        #expect(desk.state.asked.count == RefundState.limitAsked)
    }
}
