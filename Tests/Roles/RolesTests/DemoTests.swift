import Glibc
import KafkaTestKit
import Platform
import Testing

@testable import CommandLine

private struct DemoTestFault: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// The built program in an empty directory, with an empty directory for temporary files.
private final class DemoProcess: Sendable {
    let process: ChildProcess
    private let folder: ScratchDirectory

    /// - Parameters:
    ///   - terminal: settings of `stty` for a terminal of its own; nil: the demo writes to files.
    ///   - shell: a shell script that runs the demo as the command DEMO.
    init(
        _ arguments: [String], terminal: String? = nil, shell: String = "exec DEMO",
        environment: [String: String] = [:]
    ) throws {
        folder = try ScratchDirectory("demo")
        for name in ["here", "tmp"] {
            guard mkdir("\(folder.path)/\(name)", 0o700) == 0 else { throw DemoTestFault("no directory for the demo") }
        }
        let values = environment.merging(["TMPDIR": "\(folder.path)/tmp", "PATH": "/usr/bin:/bin"]) { own, _ in own }
        let command = ([try productPath("perennial"), "demo"] + arguments).joined(separator: " ")
        let script = shell.replacing("DEMO", with: command)
        process =
            if let terminal {
                try ChildProcess(
                    "/usr/bin/script", ["-qfec", "stty \(terminal); \(script)", "/dev/null"],
                    environment: .only(values), workingDirectory: "\(folder.path)/here")
            } else {
                try ChildProcess(
                    "/bin/sh", ["-c", script], environment: .only(values), workingDirectory: "\(folder.path)/here")
            }
    }

    /// A file that the shell has written; nil: it is not written yet.
    func written(_ name: String) -> String? {
        (try? readFile("\(folder.path)/here/\(name)")).map { String(decoding: $0, as: UTF8.self) }
    }

    var output: String { process.standardOutput }

    /// How often it has printed its status.
    var reports: Int { output.split(separator: "\n").count { $0.contains(" in the store, ") } }

    /// Files that the demo has made.
    func leftovers() async throws -> String {
        try await run("/usr/bin/find", [folder.path, "-mindepth", "2"]).standardOutput
    }

    /// The first line that is a request to its API.
    func question(about part: String) async throws -> String {
        var found: String?
        try await waitUntil("the demo prints a question about \(part)\n\(process.lastLines(20))") {
            guard process.isRunning else { throw DemoTestFault("the demo ended:\n\(process.lastLines(30))") }
            // Whole lines only.
            found = output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
                .first { $0.hasPrefix("curl ") && $0.contains(part) }
            return found != nil
        }
        return found ?? ""
    }
}

@Suite(.serialized) struct `The demo` {
    @Test func `shows entitlements, answers what it says to ask, and leaves nothing behind`() async throws {
        let demo = try DemoProcess(["--for", "10m"])
        let question = try await demo.question(about: "/v1/subscriptions/")
        #expect(demo.output.contains("first entitlements after "))
        let id = try #require(question.split(separator: "/").last)
        let environment = ProcessEnvironment.only(["PATH": "/usr/bin:/bin"])
        let answer = try await run("/bin/sh", ["-c", question], environment: environment).standardOutput
        // The access that it has now depends on how many of its days have passed since.
        #expect(answer.contains(#""originalTransactionId":"\#(id)""#) && answer.contains(#""access":"#), "\(answer)")
        let account = try await demo.question(about: "/v1/accounts/")
        let owned = try await run("/bin/sh", ["-c", account], environment: environment).standardOutput
        #expect(owned.contains(#""\#(id)""#), "\(owned)")
        let metrics = try await demo.question(about: "/v1/metrics?")
        let counted = try await run("/bin/sh", ["-c", metrics], environment: environment).standardOutput
        #expect(counted.contains(#""groups":["#), "\(counted)")

        demo.process.kill(SIGINT)
        #expect(try await demo.process.wait() == .exited(code: 0))
        #expect(demo.output.contains("ended after "))
        #expect(try await demo.leftovers() == "")
        let closed = try await run("/bin/sh", ["-c", question], environment: environment)
        #expect(closed.code == 7, "curl says that nobody listens any more")
    }

    @Test func `ends by itself when it was told for how long`() async throws {
        let demo = try DemoProcess(["--for", "3s"])
        #expect(try await demo.process.wait() == .exited(code: 0))
        #expect(demo.output.contains("first entitlements after "), "\(demo.process.lastLines(20))")
        #expect(demo.process.standardError == "", "nothing is wrong")
        #expect(try await demo.leftovers() == "")
    }

    @Test func `answers all the time, and finds nothing wrong, however many of its days pass`() async throws {
        let demo = try DemoProcess(["--for", "10m"])
        let question = try await demo.question(about: "/v1/subscriptions/")
        let url = try #require(question.split(separator: " ").last)
        // curl does not send what follows the #, so this is the same request many times, for about twelve seconds.
        let codes = try await run(
            "/usr/bin/curl",
            ["-s", "--rate", "25/s", "-o", "/dev/null", "-w", "%{http_code}\n", "\(url)#[1-300]"],
            environment: .only([:])
        ).standardOutput.split(separator: "\n")
        #expect(codes.count == 300 && codes.allSatisfy { $0 == "200" }, "\(Set(codes)) in \(codes.count) answers")
        demo.process.kill(SIGINT)
        #expect(try await demo.process.wait() == .exited(code: 0))
        #expect(demo.process.standardError == "")
    }

    @Test func `counts what it decides, and every line of its monthly revenue adds up`() async throws {
        let demo = try DemoProcess(["--for", "10m"])
        func lines(_ begin: String) -> [String] {
            // Whole lines only.
            demo.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
                .filter { $0.drop { $0 == " " }.hasPrefix(begin) }
        }
        // Not every day has customers who come.
        try await waitUntil("failures are decided and revenue is told\n\(demo.process.lastLines(20))") {
            lines("churn: ").contains { $0.contains("; recovery ") } && lines("MRR of ").count >= 6
                && lines("MRR of ").contains { $0.contains(" new") }
        }
        demo.process.kill(SIGINT)
        #expect(try await demo.process.wait() == .exited(code: 0))
        #expect(demo.process.standardError == "", "nothing is wrong")

        for line in lines("MRR of ") {
            let sides = line.split(separator: ": ")[1].split(separator: " ").compactMap { word in
                Int(word.filter { !",.+".contains($0) })
            }
            #expect(sides.count >= 2 && sides[0] == sides[1...].reduce(0, +), "\(line)")
            #expect(sides[0] > 0, "\(line)")
        }
        let counted = try #require(lines("churn: ").last)
        let counts = counted.split(separator: " ").compactMap { Int($0.filter { $0 != "," }) }
        #expect(counts[0] > 0 && counts[0] + counts[1] + counts[2] > counts[3], "\(counted)")
        #expect(!demo.output.contains("cannot be read"))
    }

    @Test func `answers refund requests in time, and tells what Apple declined then`() async throws {
        let demo = try DemoProcess(["--for", "10m"])
        try await waitUntil("answers and their consequences are told\n\(demo.process.lastLines(20))") {
            demo.output.contains("  declined after an answer: ")
        }
        demo.process.kill(SIGINT)
        #expect(try await demo.process.wait() == .exited(code: 0))
        #expect(demo.process.standardError == "", "nothing is wrong")
        let last = demo.output.split(separator: "\n").drop { !$0.hasPrefix("ended after ") }
        func numbers(_ begin: String) throws -> [Int] {
            let line = try #require(last.first { $0.hasPrefix(begin) }, "\(last)")
            return line.dropFirst(begin.count).split(separator: " ").compactMap { Int($0.filter { $0 != "," }) }
        }
        let standing = try numbers("refunds: ")
        #expect(standing.count == 4, "none failed, none expired: \(standing)")
        #expect(standing[0] == standing[1...].reduce(0, +), "\(standing)")
        #expect(try numbers("answered by rule: ").reduce(0, +) == standing[2])
        let margin = try numbers("shortest margin to a deadline: ")
        #expect(margin[0] < 12, "Apple gives twelve hours")
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP]) func `ends within seconds of a signal`(_ signal: Int32) async throws {
        let demo = try DemoProcess([])
        try await demo.process.waitUntilPrinted("first entitlements after ")
        demo.process.kill(signal)
        #expect(try await demo.process.wait(within: .seconds(15)) == .exited(code: 0))
    }

    @Test func `draws itself again in its place on a terminal, within its width`() async throws {
        let demo = try DemoProcess(["--for", "4s"], terminal: "cols 60 rows 20")
        #expect(try await demo.process.wait() == .exited(code: 0))
        let drawings = demo.output.split(separator: "\u{1B}[J")
        #expect(drawings.count > 5, "\(demo.process.lastLines(20))")
        #expect(demo.output.contains("\u{1B}[1mPerennial demo"))
        for drawing in drawings.dropLast() {
            let lines = drawing.replacing("\r\n", with: "\n").split(separator: "\n", omittingEmptySubsequences: false)
            #expect(lines.count <= 20)
            for line in lines {
                let visible = line.replacing(#/\u{1B}\[[0-9]*[A-Za-z]/#, with: "")
                #expect(visible.count <= 60, "\(visible)")
            }
        }
    }

    @Test func `has no colours where nobody wants any, and no drawing on a terminal that cannot`() async throws {
        let plain = try DemoProcess(["--for", "2s"], terminal: "cols 80 rows 24", environment: ["NO_COLOR": "1"])
        #expect(try await plain.process.wait() == .exited(code: 0))
        #expect(plain.output.contains("\u{1B}[J") && !plain.output.contains("\u{1B}[1m"))
        let dumb = try DemoProcess(["--for", "2s"], terminal: "cols 80 rows 24", environment: ["TERM": "dumb"])
        #expect(try await dumb.process.wait() == .exited(code: 0))
        #expect(!dumb.output.contains("\u{1B}") && dumb.output.contains("ended after "))
    }

    @Test func `goes on under nohup when its terminal is closed`() async throws {
        let demo = try DemoProcess([], shell: #"trap "" HUP; exec DEMO"#)
        try await demo.process.waitUntilPrinted("first entitlements after ")
        demo.process.kill(SIGHUP)
        // A line comes every five seconds: this is long after the demo would have stopped.
        let told = demo.reports
        try await waitUntil("the demo goes on\n\(demo.process.lastLines(20))") { demo.reports >= told + 2 }
        #expect(demo.process.isRunning)
        demo.process.kill(SIGTERM)
        #expect(try await demo.process.wait() == .exited(code: 0))
    }

    @Test func `ends cleanly when nobody reads its output any more`() async throws {
        let demo = try DemoProcess([], shell: #"{ DEMO; echo "ended with $?" >&2; } | head -n 2"#)
        #expect(try await demo.process.wait() == .exited(code: 0))
        #expect(demo.output.split(separator: "\n").count == 2)
        #expect(demo.process.standardError == "ended with 0\n")
    }

    @Test func `ends cleanly when nobody reads its output from the start`() async throws {
        let result = try await perennial(["demo"], closesOutput: true)
        #expect(result.code == 0, "\(result.words)")
    }

    /// The kernel sends the signal only to the shell, which leads the session, not to the demo.
    @Test func `ends cleanly when its terminal is closed`() async throws {
        let demo = try DemoProcess(
            ["--for", "3m"], terminal: "cols 80 rows 24", shell: #"trap : HUP; DEMO; echo "ended with $?" > ended"#)
        try await demo.process.waitUntilPrinted("Ask the API, in another terminal:")
        demo.process.killNow()
        try await waitUntil("the demo ends") { demo.written("ended")?.hasSuffix("\n") == true }
        #expect(demo.written("ended") == "ended with 0\n")
    }

    @Test(arguments: [
        (["--for", "soon"], "--for must be a time from 1s to 24h"), (["--for", "0s"], "--for must be"),
        (["--for", "25h"], "--for must be"), (["--for", "-3s"], "--for must be"), (["--for", ""], "--for must be"),
        (["--kafka", ""], "--kafka needs the address of a broker"), (["--fast"], "no option is called"),
        (["now"], "one argument too many"),
    ])
    func `says what is wrong with its options`(_ arguments: [String], _ words: String) async throws {
        let result = try await perennial(["demo"] + arguments)
        #expect(result.code == 2)
        #expect(result.standardError.contains(words), "\(result.words)")
    }

    @Test func `reads times as people write them`() {
        #expect(shortDuration("30s") == .seconds(30))
        #expect(shortDuration("10m") == .seconds(600))
        #expect(shortDuration("24h") == .seconds(86_400))
        for text in ["", "s", "30", "1.5m", "+3s", "3 s", "3d", "99999999999999999999s", "٣s"] {
            #expect(shortDuration(text) == nil, "\(text)")
        }
    }

    @Test func `gives up on a Kafka that is not there, and says so`() async throws {
        let result = try await perennial(["demo", "--for", "60s", "--kafka", "127.0.0.1:1"])
        #expect(result.code == 3)
        #expect(result.standardError.contains("no Kafka answers at 127.0.0.1:1"), "\(result.words)")
    }
}
