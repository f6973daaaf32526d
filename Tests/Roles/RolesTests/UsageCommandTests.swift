import Contract
import Foundation
import Kafka
import KafkaTestKit
import Platform
import RDKafkaTestKit
import Testing

/// The program against librdkafka's mock cluster in this process.
@Suite struct `perennial usage put` {
    private static func cluster(partitions: Int32 = 12) throws -> MockCluster {
        let cluster = try MockCluster()
        for environment in Contract.Environment.allCases {
            let names = Names(prefix: TopicPrefix("appstore")!, environment: environment)
            for topic: TopicID in [.notifications, .rejected, .signed, .usage] {
                try cluster.createTopic(names.topic(topic), partitions: partitions)
            }
        }
        return cluster
    }

    private func put(_ arguments: [String], servers: String = "127.0.0.1:1") async throws -> ProgramResult {
        try await perennial(["usage", "put", "--kafka.bootstrap.servers", servers] + arguments)
    }

    private static let right = #"{"v":1,"originalTransactionId":"2000","consented":true}"#

    @Test(
        arguments: [
            (["put"], "put needs a record"), (["get", "x"], "put, not \"get\""),
            (["put", "a", "b"], "one argument too many"),
            (["put", "a", "--consented", "true"], "--consented and \"a\" are two sources of records"),
            (["put", "--consented", "yes"], "--consented must be true or false, not \"yes\""),
            (["put", "--consumptionPercentage", "0.5"], "--consumptionPercentage must be a whole number, not \"0.5\""),
            (["put", "--consented", "true"], "originalTransactionId must be a string that is not empty"),
            (
                ["put", "--originalTransactionId", "2", "--platform", "3"],
                "platform must be a whole number from 0 to 2"
            ),
            (["put", "/nonexistent/usage.jsonl"], "cannot read /nonexistent/usage.jsonl"),
            (["put", #"{"v":1,"#], "each line must be one JSON record"),
        ])
    func `ends with 2 and says why`(_ arguments: [String], _ words: String) async throws {
        let result = try await perennial(["usage"] + arguments + ["--kafka.bootstrap.servers", "127.0.0.1:1"])
        #expect(result.code == 2 && result.standardError.contains(words), "\(result.words)")
        #expect(result.standardOutput.isEmpty)
    }

    @Test func `names every line that is wrong, and then writes nothing`() async throws {
        let folder = try ScratchDirectory("usage")
        let deep = String(repeating: "[", count: 20) + String(repeating: "]", count: 20)
        let path = try folder.write(
            """
            \(Self.right)

            {"v":2,"originalTransactionId":"1"}
            {"v":1,"originalTransactionId":"1","userStatus":9}
            not JSON
            {"v":1,"originalTransactionId":"1","a":\(deep)}
            {"v":1,"originalTransactionId":"1","v":1}
            \(String(repeating: "x", count: 300_000))
            \(Self.right)
            """, to: "usage.jsonl")
        for arguments in [[path], [path, "--dry-run"]] {
            // Nothing listens there: Kafka is not asked.
            let result = try await put(arguments)
            #expect(result.code == 2, "\(result.words)")
            let lines = result.standardError.split(separator: "\n").map(String.init)
            #expect(lines.count == 7)
            for (line, words) in zip(
                lines,
                [
                    "line 3: v must be 1", "line 4: userStatus must be a whole number from 0 to 4, or null",
                    "line 5: column 1: expected a value", "line 6: column",
                    "line 7: column 36: an object has two members",
                    "line 8: it has more than 262144 bytes",
                    "perennial usage: 6 of 8 records are wrong; nothing is written (--skip-wrong writes the others)",
                ])
            { #expect(line.contains(words), "\(line)") }
        }
    }

    @Test func `tells the first of very many lines that are wrong, and counts them all`() async throws {
        let folder = try ScratchDirectory("usage")
        let path = try folder.write(String(repeating: "{}\n", count: 500), to: "usage.jsonl")
        let result = try await put([path])
        #expect(result.code == 2 && result.standardError.split(separator: "\n").count == 22, "\(result.words)")
        #expect(result.standardError.contains("480 more lines are wrong"))
        let skipped = try await put([path, "--skip-wrong"])
        #expect(skipped.code == 1, "no line was right: \(skipped.words)")
    }

    @Test func `writes what is right, waits for it, and says where it went`() async throws {
        let cluster = try Self.cluster()
        defer { cluster.close() }
        let folder = try ScratchDirectory("usage")
        let sandbox = #"{"v":1,"originalTransactionId":"2001","environment":"Sandbox"}"#
        let path = try folder.write("\(Self.right)\r\n{}\n\(sandbox)\n\(Self.right)", to: "usage.jsonl")
        let servers = cluster.bootstrapServers
        let some = try await put([path, "--skip-wrong"], servers: servers)
        #expect(some.code == 0, "\(some.words)")
        #expect(
            some.standardError.hasSuffix(
                """
                perennial usage: 1 of 4 records is wrong and left out
                perennial usage: 2 records are written to appstore.production.usage
                perennial usage: 1 record is written to appstore.sandbox.usage

                """), "\(some.words)")
        let one = try await put(
            ["--originalTransactionId", "2000", "--consented", "false", "--environment", "sandbox"], servers: servers)
        #expect(one.code == 0 && one.standardError.contains("1 record is written to appstore.sandbox.usage"))
        let dry = try await put([Self.right, "--dry-run"])
        #expect(dry.code == 0 && dry.standardError == "perennial usage: 1 record is correct; nothing is written\n")
        let empty = try await put([folder.write("\n \n", to: "empty.jsonl")])
        #expect(empty.code == 0, "\(empty.words)")
    }

    @Test func `ends with 2 when topics are missing or have other partitions, and with 3 when nobody answers`()
        async throws
    {
        let cluster = try Self.cluster(partitions: 5)
        defer { cluster.close() }
        let servers = cluster.bootstrapServers
        let other = try await put([Self.right], servers: servers)
        #expect(other.code == 2 && other.standardError.contains("appstore.production.usage"), "\(other.words)")
        let missing = try await put([Self.right, "--topic.prefix", "another"], servers: servers)
        #expect(
            missing.code == 2
                && missing.standardError.contains("another.production.usage does not exist: check topic.prefix")
        )
        let nobody = try await put([Self.right])
        #expect(nobody.code == 3 && nobody.standardError.contains("no connection"), "\(nobody.words)")
    }

    /// Before that it answers 503.
    private func waitUntilReady(_ ingest: ChildProcess) async throws {
        try await ingest.waitUntilPrinted("admin server listens")
        let port = try #require(ingest.standardOutput.firstMatch(of: #/admin server listens.*127\.0\.0\.1:(\d+)/#)).1
        try await waitUntil("ingest is ready", within: patience) {
            let asked = try await run(
                "curl",
                ["--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "http://127.0.0.1:\(port)/readyz"])
            return asked.standardOutput == "200"
        }
    }

    /// Every ```sh block of docs/how-to/report-usage.md, unchanged except for address and token.
    @Test func `and POST /usage work as docs/how-to/report-usage.md says`() async throws {
        let cluster = try Self.cluster()
        defer { cluster.close() }
        let folder = try ScratchDirectory("usage-document")
        let apps = try folder.write(#"[{"bundleId":"com.example.app","appAppleId":1234}]"#, to: "apps.json")
        let ingest = try ChildProcess(
            try productPath("perennial"),
            [
                "ingest", "--apps", apps, "--ingest.plaintext", "true", "--usage.token", "a-token-of-this-test",
                "--kafka.bootstrap.servers", cluster.bootstrapServers, "--admin.listen", "127.0.0.1:0",
                "--ingest.listen", "127.0.0.1:0",
            ], environment: .only([:]), workingDirectory: "/", mergesErrors: true)
        try await ingest.waitUntilPrinted("ingest listens")
        try await waitUntilReady(ingest)
        let port = try #require(ingest.standardOutput.firstMatch(of: #/ingest listens.*127\.0\.0\.1:(\d+)/#)).1
        var script = try Self.document()
        for (example, value) in [
            ("https://ingest.example.com:8443", "http://127.0.0.1:\(port)"),
            ("the-token-of-usage.token", "a-token-of-this-test"),
        ] {
            try #require(script.contains(example))
            script = script.replacing(example, with: value)
        }
        let program = URL(fileURLWithPath: try productPath("perennial")).deletingLastPathComponent().path
        let result = try await run(
            "/bin/bash", ["-c", "set -euo pipefail\n" + script],
            environment: .only([
                "PATH": "\(program):/usr/bin:/bin",
                "PERENNIAL_KAFKA_BOOTSTRAP_SERVERS": cluster.bootstrapServers,
            ]), workingDirectory: folder.path)
        #expect(result.code == 0, "\(result.words)")
        let refusal = try #require(try Self.blocks("json").first)
        #expect(result.standardOutput == "202\n202\n202\n202\n\(refusal.dropLast())422\n", "\(result.words)")
        #expect(
            result.standardError.split(separator: "\n").map { $0.dropFirst("perennial usage: ".count) } == [
                "1 record is written to appstore.production.usage", "1 record is written to appstore.production.usage",
                "2 records are correct; nothing is written", "2 records are written to appstore.production.usage",
                "2 records are written to appstore.production.usage",
            ])
        let ending = try await ingest.terminate()
        #expect(ending == .exited(code: 0), "\(ingest.lastLines(20))")
    }

    private static func document() throws -> String { try blocks("sh").joined() }

    private static func blocks(_ language: String) throws -> [String] {
        let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../docs/how-to/report-usage.md").standardized
        let parts = try String(contentsOf: path, encoding: .utf8).components(separatedBy: "```\(language)\n")
        return parts.dropFirst().map { part in part.components(separatedBy: "```")[0] }
    }
}
