import CommandLine
import Foundation
import Platform
import Testing

@testable import Roles

private func size(_ arguments: [String]) -> (code: ExitCode, data: String, messages: [String]) {
    let recorder = Recorder()
    let code = Program.standard.run(["size"] + arguments, environment: [], output: recorder.output)
    return (code, recorder.data, recorder.messages)
}

/// A command of the page and what it says that the command prints.
private struct Example: Sendable, CustomTestStringConvertible {
    let arguments: [String]
    let output: String

    var testDescription: String { arguments.joined(separator: " ") }

    static let page = repositoryFile("docs/operate/sizing.md")

    /// Each is a block of `sh` with one line, followed by a block of `text`.
    static let all: [Example] = {
        let text = (try? String(contentsOfFile: page, encoding: .utf8)) ?? ""
        return text.components(separatedBy: "```sh\nperennial size ").dropFirst().compactMap { part in
            let halves = part.components(separatedBy: "\n```\n\n```text\n")
            guard halves.count > 1 else { return nil }
            let words = halves[0].split(separator: " ").map(String.init)
            return Example(
                arguments: words.map { $0.hasPrefix("deploy/") ? repositoryFile($0) : $0 },
                output: halves[1].components(separatedBy: "\n```")[0])
        }
    }()
}

private func repositoryFile(_ path: String) -> String {
    URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent(path).path
}

@Suite struct `perennial size` {
    @Test(arguments: Example.all)
    private func `prints what its page shows`(_ example: Example) {
        let result = size(example.arguments)
        #expect(result.code == .done && result.messages.isEmpty, "\(result.messages)")
        #expect(result.data == example.output)
    }

    @Test func `has three sizes on its page, and every figure`() throws {
        #expect(Example.all.count >= 3)
        for subscribers in ["10000", "1000000", "10000000"] {
            #expect(Example.all.contains { $0.arguments.contains(subscribers) }, "\(subscribers)")
        }
    }

    @Test func `prints the same numbers as JSON`() throws {
        let result = size(["--subscribers", "1000000", "--format", "json"])
        #expect(result.code == .done)
        let json = try #require(try JSONSerialization.jsonObject(with: Data(result.data.utf8)) as? [String: Any])
        let topics = try #require(json["topics"] as? [[String: Any]])
        #expect(topics.count == 13 && topics.allSatisfy { ($0["recordsADay"] as? Double)?.isFinite == true })
        let processes = try #require(json["processes"] as? [[String: Any]])
        #expect(processes.map { $0["role"] as? String } == ["ingest", "entitlements", "churn", "consumption", "api"])
        #expect(processes.allSatisfy { ($0["processes"] as? Int ?? 0) >= 2 })
        #expect((json["brokers"] as? [String: Any])?["brokers"] as? Int == 3)
        #expect((json["installation"] as? [String: Any])?["subscribers"] as? Int == 1_000_000)
        let figures = try #require(json["figures"] as? [String: Any])
        #expect(figures["row"] as? String == "sizing" && figures["noteBytes"] != nil)
        // Nothing was given but the number.
        #expect((json["assumptions"] as? [String])?.count == 9)
    }

    @Test func `reads the settings that the topics are made with`() throws {
        func partitions(_ arguments: [String]) throws -> (Int?, Int?) {
            let result = size(["--subscribers", "1000", "--format", "json"] + arguments)
            let json = try #require(try JSONSerialization.jsonObject(with: Data(result.data.utf8)) as? [String: Any])
            let installation = json["installation"] as? [String: Any]
            return (installation?["partitions"] as? Int, installation?["replicationFactor"] as? Int)
        }
        #expect(try partitions([]) == (12, 3))
        #expect(try partitions(["--config", repositoryFile("deploy/topics/large.conf")]) == (48, 3))
        let one = ["--topics.replication.factor", "1", "--topics.min.insync.replicas", "1", "--partitions", "6"]
        #expect(try partitions(one) == (6, 1))
    }

    @Test(
        arguments: [
            ([], "give --subscribers"),
            (["--subscribers", "0"], "the subscribers must be a number from 1 to 100000000"),
            (["--subscribers", "-5"], "--subscribers must be a whole number"),
            (["--subscribers", "many"], "--subscribers must be a whole number of at most 15 digits, not \"many\""),
            (["--subscribers", "1.5"], "--subscribers must be a whole number"),
            (["--subscribers", "200000000"], "the subscribers must be a number from 1 to 100000000 (--subscribers)"),
            (
                ["--subscribers", "100000000", "--churn-a-month", "100", "--years", "30"],
                "(--churned, or --churn-a-month and --years)"
            ),
            (["--subscribers", "70", "--questions-a-second", "2000000"], "(--questions-a-second)"),
            (["--subscribers", "99999999999999999999"], "at most 15 digits"),
            (["--subscribers", "70", "--renewals-a-day", "nan"], "--renewals-a-day must be a number"),
            (["--subscribers", "70", "--renewals-a-day", "1e3"], "--renewals-a-day must be a number"),
            (["--subscribers", "70", "--renewals-a-day", "0"], "the renewals a day must be"),
            (["--subscribers", "70", "--renewals-a-day", "11"], "Apple's shortest period is a week"),
            (
                ["--subscribers", "70", "--renewals-a-day", "2", "--plans", "monthly:100"],
                "--renewals-a-day and --plans say the same in two ways"
            ),
            (
                ["--subscribers", "70", "--churned", "2", "--churn-a-month", "3"],
                "--churned and --churn-a-month say the same in two ways"
            ),
            (["--subscribers", "70", "--plans", "monthly:80"], "must add up to 100"),
            (["--subscribers", "70", "--plans", "monthly:50,monthly:50"], "each of weekly, monthly"),
            (["--subscribers", "70", "--plans", "daily:100"], "--plans must be shares"),
            (["--subscribers", "70", "--churn-a-month", "101"], "a percentage from 0 to 100"),
            (["--subscribers", "70", "--refund-requests-a-day", "71"], "more than there are subscribers"),
            (["--subscribers", "70", "--peak", "0.5"], "the peak factor must be a number from 1 to 1000"),
            (["--subscribers", "70", "--years", "0"], "the years must be a number from 1 to 30"),
            (["--subscribers", "70", "--kinds", "0"], "the kinds must be"),
            (["--subscribers", "70", "--notification-bytes", "10"], "the bytes of a notification must be"),
            (
                ["--subscribers", "70", "--signed-bytes", "9000", "--archive.signed.payloads", "false"],
                "signed payloads are not archived"
            ),
            (["--subscribers", "70", "--worker.threads", "13"], "there are only 12 partitions"),
            (["--subscribers", "70", "--topics.replication.factor", "1"], "topics.min.insync.replicas (2) is greater"),
            (
                ["--subscribers", "70", "--topics.replication.factor", "11"],
                "the copies of a topic must be a number from 1 to 10"
            ),
            (["--subscribers", "70", "--format", "xml"], "--format must be text or json"),
        ])
    func `ends with 2 and says why`(_ arguments: [String], _ words: String) {
        let result = size(arguments)
        #expect(result.code == .wrongUsage && result.data.isEmpty)
        #expect(result.messages.joined(separator: "\n").contains(words), "\(result.messages)")
    }

    @Test func `says everything that is wrong at once`() {
        let result = size(["--subscribers", "x", "--years", "y", "--plans", "z"])
        #expect(result.messages.count == 4)
    }

    @Test func `warns when there are too few partitions`() {
        let few = size(["--subscribers", "100000000", "--plans", "weekly:100", "--peak", "100", "--partitions", "1"])
        #expect(few.code == .done && few.data.contains("\nwarning: entitlements needs "))
        #expect(!size(["--subscribers", "1000"]).data.contains("warning"))
    }

    @Test func `accepts shares that add up to a hundred nearly, and has a word for one year`() {
        let result = size(["--subscribers", "70", "--plans", "weekly:100.005", "--years", "1"])
        #expect(result.code == .done && result.data.contains(", 1 year;"), "\(result.messages)")
    }

    @Test func `shows numbers as people read them`() {
        let output = size(["--subscribers", "1234567", "--renewals-a-day", "1000", "--churned", "0"]).data
        #expect(output.hasPrefix("1,234,567 subscribers, 0 that will have left after 3 years, 1,000 renewals a day\n"))
        #expect(output.contains("for ever") && output.contains("400 days") && output.contains("last of key"))
    }
}
