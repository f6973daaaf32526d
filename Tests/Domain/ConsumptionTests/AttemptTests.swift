import JSON
import MakeBelieve
import Notices
import Testing

@testable import Consumption

private func decided() throws -> Desk {
    var desk = Desk()
    try desk.say(whole)
    try desk.ask()
    return desk
}

/// Apple's answers, and whether the same bytes are sent again.
private struct Row: Sendable, CustomTestStringConvertible {
    let status: Int64?
    var code: Int64?
    let becomes: String
    var testDescription: String { "\(status ?? 0) \(code ?? 0) \(becomes)" }

    static let all =
        [
            Row(status: 202, becomes: "sent"), Row(status: nil, becomes: "retrying"),
            Row(status: 401, becomes: "retrying"), Row(status: 408, becomes: "retrying"),
            Row(status: 429, code: 4_290_000, becomes: "retrying"),
            Row(status: 500, code: 5_000_000, becomes: "retrying"),
            Row(status: 500, code: 5_000_001, becomes: "retrying"), Row(status: 502, becomes: "retrying"),
            Row(status: 503, becomes: "retrying"), Row(status: 599, becomes: "retrying"),
            Row(status: 400, becomes: "failed"), Row(status: 404, code: 4_040_010, becomes: "failed"),
            Row(status: 403, becomes: "failed"), Row(status: 200, becomes: "failed"),
            Row(status: 204, becomes: "failed"),
            Row(status: 302, becomes: "failed"), Row(status: 600, becomes: "failed"),
            Row(status: -1, becomes: "failed"),
        ]
        + [
            4_000_006, 4_000_032, 4_000_033, 4_000_034, 4_000_035, 4_000_036, 4_000_037, 4_000_038, 4_000_039,
            4_000_040,
            4_000_041, 4_000_042, 4_000_043, 4_000_044, 4_000_047, 4_000_048, 4_000_185, 4_000_209,
        ].map { Row(status: 400, code: $0, becomes: "failed") }
}

@Suite struct `What Apple answers` {
    @Test(arguments: Row.all)
    private func `ends the request or lets it go on, row by row of the table`(_ row: Row) throws {
        var desk = try decided()
        try desk.attempt(
            1, row.status, code: row.code, retryAt: row.becomes == "retrying" ? asked + 900 : nil, at: asked + 7)
        #expect(desk.words == ["requested", "decided", row.becomes])
        let record = try #require(desk.told.last)
        #expect(record.at == asked + 7 && record.attempt == 1)
        #expect(record.httpStatus == row.status && record.errorCode == row.code)
        #expect(record.retryAt == (row.becomes == "retrying" ? asked + 900 : nil))
        #expect(record.body == nil && record.facts == nil)
        try desk.pass(until: asked + day)
        #expect(desk.words.last == (row.becomes == "retrying" ? "expired" : row.becomes))
    }

    @Test func `is told once for each number, and ends with the last word`() throws {
        var desk = try decided()
        for (number, status) in [(1, nil), (2, 500), (2, 503), (1, 429), (3, 401), (3, nil)] as [(Int64, Int64?)] {
            try desk.attempt(number, status)
        }
        try desk.attempt(4, 202)
        for status in [nil, 500, 400, 202] as [Int64?] { try desk.attempt(5, status) }
        #expect(desk.words == ["requested", "decided", "retrying", "retrying", "retrying", "sent"])
        #expect(desk.told.compactMap(\.attempt) == [1, 2, 3, 4])
        #expect(desk.lateAcceptances == 0)
    }

    @Test func `202 counts in any row of a number, also one that was told to be tried again`() throws {
        for first in [nil, 500] as [Int64?] {
            var desk = try decided()
            try desk.attempt(1, first)
            try desk.attempt(1, 202)
            #expect(desk.words == ["requested", "decided", "retrying", "sent"])
        }
    }

    @Test func `fails as maybe sent when an earlier attempt had no answer`() throws {
        for (earlier, detail) in [(nil, "maybe_sent"), (500, nil), (429, nil)] as [(Int64?, Text?)] {
            var desk = try decided()
            try desk.attempt(1, earlier)
            try desk.attempt(2, 400)
            #expect(desk.told.last?.kind == .failed && desk.told.last?.detail == detail)
        }
        // Both rows are about attempt 1, so there was no earlier attempt.
        var desk = try decided()
        try desk.attempt(1, nil)
        try desk.attempt(1, 400)
        #expect(desk.told.last?.detail == nil)
    }

    @Test func `202 behind the last word is counted and changes nothing`() throws {
        var failed = try decided()
        try failed.attempt(1, 400)
        try failed.attempt(2, 202)
        #expect(failed.words.last == "failed" && failed.lateAcceptances == 1)
        var expired = try decided()
        try expired.pass(until: asked + day)
        try expired.attempt(1, 202)
        try expired.attempt(2, 500)
        #expect(expired.words.last == "expired" && expired.lateAcceptances == 1)
    }

    @Test func `202 counts also for what may not be sent any more`() throws {
        var withdrawn = try decided()
        try withdrawn.say(#""consented":false"#)
        try withdrawn.attempt(1, 202)
        #expect(withdrawn.words == ["requested", "decided", "withheld no_consent", "sent"])
        try withdrawn.say(#""consented":true"#)
        #expect(withdrawn.words.count == 4)
        var settled = try decided()
        try settled.hear(outcome("REFUND", "r", signed: asked + 1), at: asked + 1)
        try settled.attempt(1, 202)
        #expect(settled.words == ["requested", "decided", "outcome refunded", "withheld settled", "sent"])
    }

    @Test func `read before the request counts as if it came behind the decision`() throws {
        var desk = Desk()
        try desk.attempt(1, 500)
        try desk.attempt(1, 500)
        try desk.attempt(2, 202)
        try desk.attempt(1, 400, of: "other")
        #expect(desk.words == [] && desk.strayAttempts == 0)
        try desk.ask()
        #expect(desk.words == ["requested"])
        try desk.say(whole)
        #expect(desk.words == ["requested", "decided", "retrying", "sent"])
        try desk.pass(until: asked + day)
        #expect(desk.words.count == 4)
    }

    @Test func `read before or behind what is withheld counts for nothing`() throws {
        let never = try policy(rules: #"{"name":"a","when":{},"answer":{"withhold":true}}"#)
        for isBefore in [true, false] {
            var desk = Desk(Desk.rules(never))
            if isBefore { try desk.attempt(1, 202) }
            try desk.say(whole)
            try desk.ask()
            if !isBefore { try desk.attempt(1, 202) }
            #expect(desk.words == ["requested", "withheld policy"])
        }
    }

    @Test func `is read from a row that has all that it needs`() throws {
        func read(_ text: String) throws -> Attempt? {
            var json = JSONDocument()
            try json.read(Array(text.utf8).span)
            return Attempt(json)
        }
        let all = Attempt(id: "q", number: 3, at: 5, httpStatus: 429, errorCode: 4_290_000, retryAt: 9)
        let none = Attempt(id: "q", number: 1, at: -5, httpStatus: nil, errorCode: nil, retryAt: nil)
        for attempt in [all, none] { #expect(try read(String(decoding: attempt.value, as: UTF8.self)) == attempt) }
        #expect(
            String(decoding: all.value, as: UTF8.self)
                == #"{"v":1,"id":"q","attempt":3,"at":5,"httpStatus":429,"errorCode":4290000,"retryAt":9}"#)
        for wrong in [
            "[]", "{}", "1", #"{"v":2,"id":"q","attempt":1,"at":5}"#, #"{"v":1,"id":"","attempt":1,"at":5}"#,
            #"{"v":1,"id":7,"attempt":1,"at":5}"#, #"{"v":1,"id":"q","attempt":0,"at":5}"#,
            #"{"v":1,"id":"q","attempt":-1,"at":5}"#, #"{"v":1,"id":"q","attempt":1.5,"at":5}"#,
            #"{"v":1,"id":"q","attempt":1,"at":"5"}"#, #"{"id":"q","attempt":1,"at":5}"#,
        ] { #expect(try read(wrong) == nil, "\(wrong)") }
        #expect(try read(#"{"v":1,"id":"q","attempt":1,"at":5}"#) != nil)
    }
}
