import Glibc
import HTTPClient
import HTTPTestKit
import KafkaTestKit
import Platform
import Testing

/// The program as its users run it, without a Kafka.
@Suite(.serialized) struct `perennial api` {
    @Test(arguments: [
        ([], "kafka.bootstrap.servers is not set"),
        (
            ["--api.listen", "0.0.0.0:0", "--kafka.bootstrap.servers", "127.0.0.1:1"],
            "can be reached from other machines, but api.token is not set"
        ),
        (["--api.listen", "localhost:8080"], "api.listen"), (["--api.tokens", "x"], "api.token"), (["now"], "now"),
    ])
    func `ends with 2 and says what to set`(_ arguments: [String], _ words: String) async throws {
        let result = try await perennial(["api"] + arguments)
        #expect(result.code == 2)
        #expect(result.standardError.contains(words), "\(result.standardError)")
        #expect(result.standardOutput.isEmpty)
    }

    @Test func `ends with 3 when there is no place for its copy`() async throws {
        let folder = try ScratchDirectory("api-command")
        let file = try folder.write("", to: "file")
        let result = try await perennial(
            ["api", "--kafka.bootstrap.servers", "127.0.0.1:1", "--state.directory", file])
        #expect(result.code == 3)
        #expect(result.standardError.contains("state.directory cannot be used"), "\(result.standardError)")
        #expect(result.standardError.contains("move it away"), "\(result.standardError)")
    }

    @Test func `answers 503 while it has no copy, lets nobody else into its directory, and ends with 0 at SIGTERM`()
        async throws
    {
        let folder = try ScratchDirectory("api-command")
        let arguments = [
            "api", "--kafka.bootstrap.servers", "127.0.0.1:1", "--state.directory", "\(folder.path)/state",
            "--api.listen", "127.0.0.1:0", "--admin.listen", "127.0.0.1:0", "--api.token", "secret-word-of-20",
        ]
        let child = try ChildProcess(
            try productPath("perennial"), arguments, environment: .only([:]), workingDirectory: folder.path,
            mergesErrors: true)
        try await child.waitUntilPrinted("the read API listens")
        let line = child.standardOutput.split(separator: "\n").first { $0.contains("the read API listens") }
        let port = try #require(line?.firstMatch(of: #/127\.0\.0\.1:(\d+)/#)).1
        let client = try HTTPClient()
        defer { client.close() }
        func ask(_ headers: [HTTPClient.Header]) async throws -> HTTPClient.Response {
            let url = "http://127.0.0.1:\(port)/v1/subscriptions/1"
            return try await blocking { try client.answer(to: .init("GET", url, headers: headers)) }
        }
        #expect(try await ask([]).status == 401)
        let answer = try await ask([.init("Authorization", "Bearer secret-word-of-20")])
        #expect(answer.status == 503 && answer.header("Retry-After") == "5")

        let second = try await perennial(arguments)
        #expect(second.code == 3)
        #expect(
            second.standardError.contains("is locked by process \(child.processID)"), "\(second.standardError)")

        // An unreachable Kafka does not delay the end.
        #expect(try await child.terminate() == .exited(code: 0), "\(child.lastLines(20))")
        #expect(!child.standardOutput.contains("secret-word-of-20"))
    }

    @Test func `takes its tokens from a file again at SIGHUP, and keeps those it has when the new ones are none`()
        async throws
    {
        let folder = try ScratchDirectory("api-command")
        let file = try folder.write("the-first-token-1,the-other-token-1\n", to: "tokens")
        let child = try ChildProcess(
            try productPath("perennial"),
            [
                "api", "--kafka.bootstrap.servers", "127.0.0.1:1", "--state.directory", "\(folder.path)/state",
                "--api.listen", "127.0.0.1:0", "--admin.listen", "127.0.0.1:0", "--api.token", "file:\(file)",
            ], environment: .only([:]), workingDirectory: folder.path, mergesErrors: true)
        try await child.waitUntilPrinted("the read API listens")
        let line = child.standardOutput.split(separator: "\n").first { $0.contains("the read API listens") }
        let port = try #require(line?.firstMatch(of: #/127\.0\.0\.1:(\d+)/#)).1
        let client = try HTTPClient()
        defer { client.close() }
        func status(_ token: String) async throws -> Int {
            let url = "http://127.0.0.1:\(port)/v1/subscriptions/1"
            let bearer = HTTPClient.Header("Authorization", "Bearer \(token)")
            return try await blocking { try client.answer(to: .init("GET", url, headers: [bearer])) }.status
        }
        #expect(try await status("the-first-token-1") == 503)
        #expect(try await status("the-other-token-1") == 503)

        _ = try folder.write("the-other-token-1,the-third-token-1", to: "tokens")
        child.kill(SIGHUP)
        try await child.waitUntilPrinted("\"tokens\":2")
        #expect(try await status("the-first-token-1") == 401)
        #expect(try await status("the-other-token-1") == 503)
        #expect(try await status("the-third-token-1") == 503)

        _ = try folder.write("short", to: "tokens")
        child.kill(SIGHUP)
        try await child.waitUntilPrinted("reload failed")
        #expect(try await status("the-third-token-1") == 503)
        #expect(try await child.terminate() == .exited(code: 0), "\(child.lastLines(20))")
        #expect(!child.standardOutput.contains("token-1") && !child.standardOutput.contains("\"short\""))
    }
}
