import Foundation
import JSON
import KafkaTestKit
import Platform
import Testing

@Suite struct `What another policy would say` {
    private let desk: RefundDesk
    private let folder: ScratchDirectory

    init() throws {
        desk = try RefundDesk()
        try desk.tellAll()
        folder = try ScratchDirectory("what-if")
    }

    private func file(_ text: String) throws -> String { try folder.write(text, to: "new.json") }

    private static let other = #"""
        {"version":"2027-01","rules":[
          {"name":"coins","when":{"productId":"coins.*"},"answer":{"refundPreference":"DECLINE"}},
          {"name":"nothing","when":{},"answer":{"withhold":true}}]}
        """#

    @Test func `is counted by answers, with the money at stake, and listed newest first`() throws {
        let path = try file(Self.other)
        let answer = desk.whatIf(["--policy", path])
        #expect(answer.code == .done && answer.messages == [])
        let lines = answer.lines.split(separator: "\n", omittingEmptySubsequences: false)
        for line in lines { #expect(line.count <= 80 && line.last != " ", "\(line)") }
        // The path differs in each run.
        let url = try #require(Bundle.module.url(forResource: "what-if", withExtension: "txt", subdirectory: "Cards"))
        let rest = lines.drop { !$0.hasPrefix("requests") }.joined(separator: "\n")
        #expect(rest + "\n" == (try String(contentsOf: url, encoding: .utf8)), "it is:\n\(rest)")
        #expect(answer.lines.contains("policy        2027-01,"))
    }

    @Test func `is one JSON document with every change`() throws {
        let answer = desk.whatIf(["--policy", try file(Self.other), "--format", "json"])
        #expect(answer.code == .done)
        let told = try JSONValue.read(Array(answer.lines.utf8))
        #expect(told["policy"]?.string == "2027-01")
        #expect(told["requests"]?.integer == 4 && told["same"]?.integer == 2 && told["changed"]?.integer == 2)
        let changes = try #require(told["changes"]?.array)
        #expect(Set(changes.map { $0["id"]?.string }) == [RefundDesk.uuid(2), RefundDesk.uuid(4)])
        let subscription = try #require(changes.first { $0["id"]?.string == RefundDesk.uuid(4) })
        #expect(subscription["before"]?["refundPreference"]?.string == "GRANT_FULL")
        #expect(subscription["before"]?["rule"]?.string == "rest")
        #expect(subscription["after"]?["withhold"]?.bool == true)
        #expect(told["atStake"]?["JPY"]?.integer == 600_000 && told["atStake"]?["USD"]?.integer == 9_990)
        #expect(told["counts"]?.array?.count == 2)
        #expect(told["position"]?.array?.count == 3)
    }

    @Test func `is nothing when it is the same policy`() throws {
        let answer = desk.whatIf(["--policy", try file(RefundDesk.policy), "--format", "json"])
        let told = try JSONValue.read(Array(answer.lines.utf8))
        #expect(told["same"]?.integer == 4 && told["changed"]?.integer == 0)
        #expect(told["changes"]?.array == [])
    }

    @Test func `is asked once about a request, though its decision is repeated`() throws {
        for (day, consent) in [("2026-11-22T11:40", false), ("2026-11-22T11:50", true)] {
            try desk.use("'consented':\(consent)", of: "2000000000000004", on: day)
        }
        let answer = desk.whatIf(["--policy", try file(RefundDesk.policy), "--format", "json"])
        #expect(try JSONValue.read(Array(answer.lines.utf8))["requests"]?.integer == 4)
    }

    @Test func `counts the money of a purchase once, though it was asked about twice`() throws {
        try desk.tell(
            "CONSUMPTION_REQUEST", RefundDesk.uuid(7), of: "2000000000000004", on: "2026-11-22T11:40", reason: "OTHER",
            ("transactionId", "'2000000000000044'"), ("type", "'Auto-Renewable Subscription'"),
            ("productId", "'pro.monthly'"), ("offerType", "1"), ("offerDiscountType", "'FREE_TRIAL'"))
        let answer = desk.whatIf(["--policy", try file(Self.other), "--format", "json"])
        let told = try JSONValue.read(Array(answer.lines.utf8))
        #expect(told["changed"]?.integer == 3)
        #expect(told["atStake"]?["USD"]?.integer == 9_990)
    }

    @Test func `is asked only about requests from and until then`() throws {
        let path = try file(Self.other)
        func count(_ arguments: [String]) throws -> Int64? {
            let answer = desk.whatIf(["--policy", path, "--format", "json"] + arguments)
            return try JSONValue.read(Array(answer.lines.utf8))["requests"]?.integer
        }
        #expect(try count(["--from", "2026-11-20T11:00"]) == 2)
        #expect(try count(["--to", "2026-11-20T11:00"]) == 2)
        #expect(try count(["--from", "2026-11-20T11:00", "--to", "2026-11-21"]) == 1)
    }

    @Test func `is refused when the policy is wrong, with the place of each mistake`() throws {
        let path = try file("{\"version\":\"1\",\n \"rulez\":[],\n \"rules\":7}")
        let answer = desk.whatIf(["--policy", path])
        #expect(answer.code == .wrongUsage && answer.lines.isEmpty)
        #expect(answer.messages.count == 2, "\(answer.messages)")
        #expect(answer.messages.first?.contains("\(path), line 2, column 2: ") == true, "\(answer.messages)")
        #expect(answer.messages.last?.contains("line 3, column ") == true)
    }

    @Test func `needs a policy that is there, and the topic`() throws {
        #expect(desk.whatIf([]).messages.first?.contains("what-if needs --policy FILE") == true)
        let missing = desk.whatIf(["--policy", "\(folder.path)/none.json"])
        #expect(missing.code == .wrongUsage)
        #expect(missing.messages.first?.contains("none.json: No such file") == true, "\(missing.messages)")
        let answer = desk.whatIf(["--policy", try file(Self.other)], topic: false)
        #expect(answer.code == .wrongUsage)
        #expect(answer.messages.first?.contains("perennial topics apply") == true)
    }
}
