import Testing

@Suite struct `The built program` {
    @Test func `puts data on standard output and messages on standard error`() throws {
        let version = try ProgramBinary.run(["version"])
        #expect(version.code == 0)
        #expect(version.data.hasPrefix("Perennial 0.1.0\n"))
        let unknown = try ProgramBinary.run(["verzion"])
        #expect(unknown.code == 2)
        #expect(unknown.data.isEmpty)
        #expect(unknown.messages.contains("the nearest is version"))
    }

    @Test func `exits 2 for a command that is to come`() throws {
        let outcome = try ProgramBinary.run(["standalone"])
        #expect(outcome.code == 2)
        #expect(outcome.messages == "perennial standalone: version 0.1.0 does not have this command yet\n")
    }

    @Test func `does not crash when nobody reads its output`() throws {
        for arguments in [["help", "settings", "--format", "markdown"], ["version", "--format=json"]] {
            let outcome = try ProgramBinary.run(arguments, closesOutput: true)
            #expect(!outcome.wasKilled)
            #expect(outcome.code == 0)
        }
    }
}
