import Entitlements
import JSON
import Testing

@testable import ReadAPI

@Suite struct `A question to the read API` {
    @Test(arguments: [
        "", "/", "//", "/v1", "/v1/", "/v1/subscriptions", "/v1/subscriptions/", "/v1//1", "//v1/subscriptions/1",
        "/v2/subscriptions/1", "/V1/subscriptions/1", "/v1/subscriptions/1/", "/v1/subscriptions/1/contents",
        "/v1/subscriptions//content", "/v1/subscriptions/1/content/", "/v1/subscriptions/1/content/x", "/v1/accounts",
        "/v1/accounts/", "/v1/accounts/a/b", "/v1/metrics/1", "/v1/metrics/", "/v1/subscriptions/../accounts/1",
        "/v1/subscriptions/1/content/../../../../etc/passwd", "/v1/subscriptions%2F1", "v1/subscriptions/1",
    ])
    func `leads nowhere by another path`(_ path: String) { #expect(Question.route(path) == nil) }

    @Test func `names its subject, percent-encoded or not`() throws {
        func id(_ path: String) throws -> [UInt8]? {
            guard let (route, subject) = Question.route(path),
                case .subscription(let id) = try Question(route, subject, query: nil)
            else { return nil }
            return id
        }
        #expect(try id("/v1/subscriptions/2000000123456789") == Array("2000000123456789".utf8))
        #expect(try id("/v1/subscriptions/%32%30") == Array("20".utf8))
        #expect(try id("/v1/subscriptions/..") == Array("..".utf8))
        #expect(try id("/v1/subscriptions/a%2Fb%00%c3%A9+") == Array("a/b\u{0}é+".utf8))
        #expect(try id("/v1/subscriptions/\(String(repeating: "%61", count: 256))")?.count == 256)
    }

    @Test(arguments: [
        "%", "%2", "%zz", "%2g", "a%", "%ff", "%c3", String(repeating: "1", count: 257),
        String(repeating: "%61", count: 257), String(repeating: "x", count: 15_000),
    ])
    func `is refused an id that is none`(_ id: String) throws {
        let (route, subject) = try #require(Question.route("/v1/subscriptions/\(id)"))
        #expect(throws: Question.Flaw.invalid(parameter: "originalTransactionId")) {
            try Question(route, subject, query: nil)
        }
    }

    @Test(arguments: [
        "x", "7d6f1d1e00004000800000000000000a", "7d6f1d1e-0000-4000-8000-00000000000",
        "7d6f1d1e-0000-4000-8000-00000000000ab",
        "7d6f1d1e-0000-4000-8000-00000000000g", "7d6f1d1e_0000-4000-8000-00000000000a",
        "7d6f1d1-e0000-4000-8000-00000000000a",
        "{7d6f1d1e-0000-4000-8000-00000000000}", "7d6f1d1e-0000-4000-8000-00000000000%", "%",
        "------------------------------------",
        "7d6f1d1e-0000-4000-8000-0000000000é",
    ])
    func `is refused a token that is no UUID`(_ text: String) throws {
        let (route, subject) = try #require(Question.route("/v1/accounts/\(text)"))
        #expect(throws: Question.Flaw.invalid(parameter: "appAccountToken")) {
            try Question(route, subject, query: nil)
        }
    }

    private func content(_ query: String?) throws -> ([Int64], ContentScope)? {
        let (route, subject) = try #require(Question.route("/v1/subscriptions/1/content"))
        guard case .content(_, let published, let scope) = try Question(route, subject, query: query) else {
            return nil
        }
        return (published, scope)
    }

    @Test func `has dates in milliseconds, in their order, from the query`() throws {
        let (dates, scope) = try #require(
            try content(
                "published=3&&x=%zz&published=-1&published=3&%70ublished=%31&other&published=9223372036854775807"))
        #expect(dates == [3, -1, 3, 1, .max] && scope == .archive)
        #expect(try content("scope=current&published=1")?.1 == .current)
        #expect(try content("published=3,-1&published=7,%32%2C9")?.0 == [3, -1, 7, 2, 9])
        let many = (1...Question.limitDates).map { "published=\($0)" }.joined(separator: "&")
        #expect(try content(many)?.0.count == Question.limitDates)
        #expect(throws: Question.Flaw.tooMany(parameter: "published", limit: 1000)) {
            try content(many + "&published=0")
        }
    }

    @Test(arguments: [
        "", "-", "+1", " 1", "1 ", "1.0", "1e3", "0x1", "9223372036854775808", "-9223372036854775809", "١", "%", "1%00",
        "1,", ",1", "1,,2", "1;2", "1, 2", String(repeating: "9", count: 15_000),
    ])
    func `is refused a date that is no whole number`(_ date: String) throws {
        #expect(throws: Question.Flaw.invalid(parameter: "published")) { try content("published=1&published=\(date)") }
    }

    @Test func `is refused a misspelt name, and a scope that is none`() throws {
        for query in [nil, "", "publised=1", "Published=1"] {
            #expect(throws: Question.Flaw.missing(parameter: "published")) { try content(query) }
        }
        for query in ["scope=all", "scope=", "scope"] {
            #expect(throws: Question.Flaw.invalid(parameter: "scope")) { try content("published=1&\(query)") }
        }
        #expect(throws: Question.Flaw.tooMany(parameter: "scope", limit: 1)) {
            try content("published=1&scope=archive&scope=current")
        }
    }
}
