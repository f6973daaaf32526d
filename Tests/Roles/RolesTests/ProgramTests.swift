import KafkaTestKit
import Testing

@Suite struct `The built program` {
    @Test func `puts data on standard output and messages on standard error`() async throws {
        let version = try await perennial(["version"])
        #expect(version.code == 0)
        #expect(version.standardOutput.hasPrefix("Perennial 0.2.0\n"))
        let unknown = try await perennial(["verzion"])
        #expect(unknown.code == 2)
        #expect(unknown.standardOutput.isEmpty)
        #expect(unknown.standardError.contains("the nearest is version"))
    }

    @Test func `exits 2 for a command that is to come`() async throws {
        let outcome = try await perennial(["standalone"])
        #expect(outcome.code == 2)
        #expect(outcome.standardError == "perennial standalone: version 0.2.0 does not have this command yet\n")
    }

    @Test func `exits 3 and says so once when its data cannot be written`() async throws {
        let program = try productPath("perennial")
        for command in ["version", "help"] {
            let outcome = try await run(
                "/bin/sh", ["-c", #"exec "$0" "$1" >/dev/full"#, program, command], environment: .only([:]))
            #expect(outcome.code == 3)
            let told = outcome.standardError.split(separator: "\n").filter { !$0.hasPrefix("warning") }
            #expect(told == ["perennial: cannot write to standard output: No space left on device"])
        }
    }

    @Test func `tells of a settings file that is a link to nowhere`() async throws {
        let directory = try ScratchDirectory("perennial-roles")
        let outcome = try await run(
            "/bin/sh",
            ["-c", #"/bin/ln -s nowhere perennial.conf; exec "$0" topics plan"#, try productPath("perennial")],
            environment: .only([:]), workingDirectory: directory.path)
        #expect(outcome.code == 2)
        #expect(outcome.standardError.contains("it is a link to a file that does not exist"))
    }

    @Test func `does not crash when nobody reads its output`() async throws {
        for arguments in [["help", "settings", "--format", "markdown"], ["version", "--format=json"]] {
            let outcome = try await perennial(arguments, closesOutput: true)
            #expect(outcome.ending == .exited(code: 0))
        }
    }
}
