import Configuration
import Contract
import Foundation
import Log
import MemoryLog
import Platform
import Testing

@testable import Cluster
@testable import CommandLine
@testable import Roles
@testable import Tools
@testable import Workers

@Suite struct `A replay beside the live topics` {
    private func value(_ state: String, sequence: Int = 1) -> String {
        "{'v':1,'state':'\(state)','access':true,'sequence':\(sequence),'asOf':\(sequence),'cause':{'offset':\(sequence)}}"
    }

    // MARK: Verdicts

    @Test func `is the same when nothing but the way there differs`() throws {
        let desk = try DiffDesk(.entitlements)
        for number in 0..<50 {
            let partition = Int32(number % 2)
            try desk.live(.entitlements, "s\(number)", value("active", sequence: number + 7), partition)
            try desk.replayed(.entitlements, "s\(number)", value("active"), partition)
            try desk.both(.accounts, "a\(number)|s", value("grace"), partition)
        }
        let answer = try desk.diff()
        #expect(answer.code == .done)
        #expect(try answer.counts == [100, 0, 0, 0, 0, 0])
        #expect(try answer.samples().isEmpty)
        #expect(answer.messages.isEmpty)
    }

    @Test func `differs in one member of one key, and shows both`() throws {
        let desk = try DiffDesk(.entitlements)
        try desk.both(.entitlements, "s1", value("active"))
        try desk.live(.entitlements, "s2", value("grace"), 1)
        try desk.replayed(.entitlements, "s2", value("active"), 1)
        let answer = try desk.diff()
        #expect(answer.code == .no)
        #expect(try answer.counts == [1, 1, 0, 0, 0, 0])
        let sample = try #require(try answer.samples("different").first)
        #expect(sample["key"] as? String == "s2" && sample["partition"] as? Int == 1)
        #expect(sample["topic"] as? String == "appstore.production.entitlements")
        #expect(sample["shadow"] as? String == "appstore.production.entitlements.replay-next")
        let members = try #require(sample["members"] as? [[String: Any]])
        #expect(members.count == 1 && members[0]["member"] as? String == "state")
        #expect(members[0]["here"] as? String == "active" && members[0]["there"] as? String == "grace")

        let text = try desk.diff([])
        #expect(text.code == .no)
        #expect(text.lines.contains("different   entitlements[1]  s2"))
        #expect(text.lines.contains(/state +"active" +"grace"/))
        #expect(text.lines.contains(/appstore.production.entitlements +1 +1 +0 +0 +0\n/))
        #expect(text.lines.contains(/total +1 +1 +0 +0 +0/))
    }

    @Test func `has keys of its own, and lacks others`() throws {
        let desk = try DiffDesk(.entitlements)
        try desk.live(.accounts, "a|1", value("active"))
        try desk.replayed(.accounts, "b|1", value("active"))
        let answer = try desk.diff()
        #expect(answer.code == .no)
        #expect(try answer.counts == [0, 0, 1, 1, 0, 0])
        #expect(try answer.samples("onlyHere").first?["key"] as? String == "b|1")
        #expect(try answer.samples("onlyThere").first?["key"] as? String == "a|1")
        #expect(try answer.samples("onlyThere").first?["here"] is NSNull)
    }

    @Test func `is judged by the last value of each key`() throws {
        let desk = try DiffDesk(.entitlements)
        for state in ["active", "grace", "expired"] { try desk.live(.entitlements, "s1", value(state)) }
        for state in ["expired", "active"] { try desk.live(.entitlements, "s2", value(state)) }
        for state in ["active", "expired"] { try desk.replayed(.entitlements, "s1", value(state)) }
        try desk.replayed(.entitlements, "s2", value("expired"))
        let answer = try desk.diff()
        #expect(try answer.counts == [1, 1, 0, 0, 0, 0])
        #expect(try answer.samples().first?["key"] as? String == "s2")
    }

    @Test func `has no value where a tombstone is the last`() throws {
        let desk = try DiffDesk(.entitlements)
        for key in ["a|1", "a|2", "a|3"] { try desk.both(.accounts, key, value("active")) }
        try desk.live(.accounts, "a|1", nil)
        try desk.replayed(.accounts, "a|2", nil)
        try desk.both(.accounts, "a|3", nil)
        try desk.live(.accounts, "a|4", nil)
        let answer = try desk.diff()
        #expect(try answer.counts == [0, 0, 1, 1, 0, 0])
        #expect(try answer.samples("onlyHere").first?["key"] as? String == "a|1")
        #expect(try answer.samples("onlyThere").first?["key"] as? String == "a|2")
    }

    @Test func `is told up to a number of samples, and counted all the same`() throws {
        let desk = try DiffDesk(.entitlements)
        for number in 0..<30 { try desk.live(.entitlements, "s\(number)", value("active")) }
        for number in 0..<30 { try desk.live(.accounts, "a\(number)|1", value("active")) }
        #expect(try desk.diff().samples().count == 10)
        #expect(try desk.diff(["--format", "json", "--samples", "40"]).samples().count == 40)
        let none = try desk.diff(["--format", "json", "--samples", "0"])
        #expect(try none.samples().isEmpty)
        #expect(try none.counts == [0, 0, 0, 60, 0, 0])
        #expect(none.code == .no)
    }

    // MARK: Newer records

    @Test func `says nothing of keys that the live worker has moved past its position`() throws {
        let desk = try DiffDesk(.entitlements)
        desk.position = (90, 100)
        desk.begunAt = 50
        try desk.replayed(.entitlements, "s1", value("active"))
        try desk.live(.entitlements, "s1", value("expired"), from: 90)
        try desk.live(.entitlements, "s2", value("active"), from: 95, 1)
        try desk.replayed(.accounts, "a|1", value("active"))
        try desk.live(.accounts, "a|1", nil, from: 99)
        try desk.both(.entitlements, "s3", value("active"), from: 89)
        let answer = try desk.diff()
        #expect(answer.code == .done, "newer keys alone do not make it different")
        #expect(try answer.counts == [1, 0, 0, 0, 3, 0])
        let unread = "has not read 20 records of appstore.production.notifications"
        #expect(answer.messages.contains { $0.contains(unread) })

        try desk.live(.entitlements, "s4", value("active"), from: 89)
        #expect(try desk.diff().counts == [1, 0, 0, 1, 3, 0], "what lies before its position it has dealt with")
    }

    @Test func `says nothing of keys in which it is ahead of the live worker`() throws {
        let desk = try DiffDesk(.entitlements)
        desk.position = (100, 60)
        try desk.live(.entitlements, "s1", value("active"))
        try desk.replayed(.entitlements, "s1", value("expired"), from: 60)
        try desk.replayed(.entitlements, "s2", value("active"), from: 70, 1)
        #expect(try desk.diff().counts == [0, 0, 0, 0, 2, 0])
        try desk.replayed(.entitlements, "s3", value("active"), from: 59)
        #expect(try desk.diff().counts == [0, 0, 1, 0, 2, 0])
        desk.position.live = nil
        #expect(
            try desk.diff().counts == [0, 1, 2, 0, 0, 0], "without a position the live worker is taken to be up to date"
        )
    }

    // MARK: Topics that cannot be compared

    @Test func `cannot be compared before its end`() throws {
        let desk = try DiffDesk(.entitlements)
        try desk.both(.entitlements, "s1", value("active"))
        desk.position = (99, 100)
        let refused = try desk.diff()
        #expect(refused.code == .wrongUsage && refused.lines.isEmpty)
        #expect(
            refused.messages == [
                "perennial diff: the replay next is not at its end: it has not read 2 of 200 records of "
                    + "appstore.production.notifications",
                "perennial diff: perennial replay entitlements --name next continues where it stopped; --unfinished "
                    + "compares what it has written so far",
            ])
        #expect(try desk.diff(["--unfinished", "--format", "json"]).code == .done)

        // The replay need not have read notifications that came after its start. Notifications are a millisecond apart.
        desk.begunAt = 99
        #expect(try desk.diff().code == .done)
        desk.begunAt = 100
        #expect(try desk.diff().code == .wrongUsage)

        desk.position.shadow = nil
        let forgotten = try desk.diff()
        #expect(forgotten.code == .wrongUsage)
        #expect(forgotten.messages.contains { $0.contains("its group has no positions") })
    }

    @Test func `cannot be compared where it is not there, or not as the live topics are`() throws {
        let desk = try DiffDesk(.entitlements)
        let other = ReplayIdentity(worker: .entitlements, names: desk.names, shadow: ShadowName("other")!)
        #expect(
            DiffRun.missing(
                other, ["appstore.production.accounts.replay-next", "appstore.production.churn.plan.replay-not"]
            ).lines
                == [
                    "there is no replay other of entitlements in production; there are: next. Run one with perennial replay "
                        + "entitlements --name other"
                ])
        desk.from = "2h"
        let late = try desk.diff()
        #expect(late.code == .wrongUsage && late.messages.first?.contains("was made with --from 2h") == true)
        desk.from = nil

        let grown = try desk.diff { $0["appstore.production.accounts.replay-next"] = 3 }
        #expect(grown.code == .wrongUsage)
        #expect(grown.messages.first?.contains("replay-next has 3 partitions and the live topic has 2") == true)
        #expect(grown.messages.first?.contains("perennial replay entitlements --drop next") == true)

        let half = try desk.diff { $0["appstore.production.accounts.replay-next"] = nil }
        #expect(half.code == .wrongUsage && half.messages.first?.contains("replay-next does not exist") == true)
        let lost = try desk.diff { $0["appstore.production.accounts"] = nil }
        #expect(lost.code == .wrongUsage && lost.messages.first?.contains("accounts does not exist") == true)
        let resized = try desk.diff(partitions: 3)
        #expect(
            resized.code == .wrongUsage && resized.messages.first?.contains("the setting partitions says 3") == true)
    }

    @Test(arguments: [true, false])
    func `cannot be compared where a later version has written`(isLive: Bool) throws {
        let desk = try DiffDesk(.entitlements)
        if isLive {
            try desk.live(.entitlements, "s1", value("active"), schema: "entitlement/2")
        } else {
            try desk.replayed(.entitlements, "s1", value("active"), schema: "entitlement/2")
        }
        let answer = try desk.diff()
        #expect(answer.code == .wrongUsage)
        #expect(answer.messages.first?.contains("a record has the schema entitlement/2") == true)
    }

    @Test(arguments: [
        (["--samples", "-1"], "--samples takes"), (["--samples", "x"], "--samples takes"),
        (["--format", "csv"], "--format must be text or json"),
    ])
    func `is asked for in words that are understood`(arguments: [String], words: String) throws {
        let answer = try DiffDesk(.entitlements).diff(arguments)
        #expect(answer.code == .wrongUsage)
        #expect(answer.messages.contains { $0.contains(words) })
    }

    @Test func `needs a worker and a name`() throws {
        func refusal(_ arguments: [String]) -> (ExitCode, String) {
            let recorder = Recorder()
            let code = Program.standard.run(["diff"] + arguments, environment: [], output: recorder.output)
            return (code, recorder.messages.joined(separator: "\n"))
        }
        #expect(refusal([]).0 == .wrongUsage)
        #expect(refusal(["churm", "--name", "x"]).1.contains("the nearest is churn"))
        #expect(refusal(["churn"]).1.contains("as in perennial replay churn --name NAME"))
        #expect(refusal(["churn", "--name", "a.b"]).1.contains("--name takes 1 to 32 letters"))
        #expect(refusal(["churn", "--name", "x"]).1.contains("kafka.bootstrap.servers is not set"))
    }

    // MARK: Odd input

    @Test func `with values that are no JSON is compared by their bytes`() throws {
        let desk = try DiffDesk(.entitlements)
        try desk.both(.entitlements, "s1", "no JSON")
        try desk.live(.entitlements, "s2", "{")
        try desk.replayed(.entitlements, "s2", value("active"))
        let answer = try desk.diff()
        #expect(try answer.counts == [1, 1, 0, 0, 0, 0])
        let members = try #require(try answer.samples().first?["members"] as? [[String: Any]])
        #expect(members.first?["member"] as? String == "" && members.first?["there"] as? String == "{")
        #expect(try desk.diff([]).lines.contains("(the value)"))
    }

    @Test func `with huge values and keys is compared, and what is shown of them is cut`() throws {
        let desk = try DiffDesk(.entitlements)
        let huge = String(repeating: "x", count: 500_000)
        let key = String(repeating: "k", count: 400_000)
        try desk.both(.entitlements, "s1", "{'a':'\(huge)'}")
        try desk.live(.entitlements, key, "{'a':'\(huge)'}")
        try desk.replayed(.entitlements, key, "{'a':'\(huge)y'}")
        let answer = try desk.diff([])
        #expect(answer.code == .no)
        #expect(answer.lines.contains(/total +1 +1 +0 +0 +0/))
        #expect(answer.lines.utf8.count < 2000)
        #expect(try desk.diff().counts == [1, 1, 0, 0, 0, 0])
    }

    @Test func `is the same where there is nothing`() throws {
        let desk = try DiffDesk(.entitlements, notifications: 0)
        desk.position = (nil, nil)
        let answer = try desk.diff()
        #expect(answer.code == .done)
        #expect(try answer.counts == [0, 0, 0, 0, 0, 0])
    }

    @Test func `lacks what was deleted from the live topic by hand`() throws {
        let desk = try DiffDesk(.entitlements)
        for key in ["s1", "s2"] { try desk.both(.entitlements, key, value("active")) }
        try desk.log.deleteRecords(
            of: TopicPartition(desk.names.topic(.entitlements), 0), before: NextOffset(1))
        #expect(try desk.diff().counts == [1, 0, 1, 0, 0, 0])
    }

    @Test func `needs a directory for its scratch files, and leaves nothing in it`() throws {
        let desk = try DiffDesk(.entitlements)
        for number in 0..<10 { try desk.both(.entitlements, "s\(number)", value("active")) }
        let missing = try desk.diff(["--scratch", "/nowhere/at/all"])
        #expect(missing.code == .gaveUp)
        #expect(missing.messages.first?.contains("/nowhere/at/all") == true)
        #expect(missing.messages.first?.contains("set --scratch to a writable directory") == true)
        let directory = NSTemporaryDirectory() + "perennial-diff-test-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        #expect(try desk.diff(["--scratch", directory]).code == .done)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
    }
}
