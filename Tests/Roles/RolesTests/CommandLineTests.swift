import Cluster
import Configuration
import Foundation
import Kafka
import Platform
import Settings
import Synchronization
import Testing

@testable import CommandLine
@testable import Roles

/// Collects the output of a command.
final class Recorder: Sendable {
    private let written = Mutex((data: [String](), messages: [String]()))

    var data: String { written.withLock { $0.data.joined(separator: "\n") } }
    var messages: [String] { written.withLock { $0.messages } }
    var output: Output {
        Output(
            data: { text in self.written.withLock { $0.data.append(text) } },
            message: { text in self.written.withLock { $0.messages.append(text) } })
    }
}

private func run(
    _ arguments: [String], program: Program = .standard, environment: [(name: String, value: String)] = []
) -> (code: ExitCode, data: String, messages: [String]) {
    let recorder = Recorder()
    let code = program.run(arguments, environment: environment, output: recorder.output)
    return (code, recorder.data, recorder.messages)
}

@Suite struct `The command line` {
    @Test(arguments: Program.standard.commands.map(\.name))
    func `has an example of each command that could be called`(_ name: CommandName) throws {
        let command = try #require(Program.standard.command(name.rawValue))
        let example = try #require(Program.standard.examples[name])
        let words = example.split(separator: " ").map(String.init)
        try #require(words.prefix(2) == ["perennial", name.rawValue])
        #expect(run([name.rawValue, "--help"]).data.contains("\n\nExample: \(example)\n\n"))
        let parsed = ParsedArguments(Array(words.dropFirst(2)), options: command.options)
        #expect(parsed.faults.isEmpty && command.operandCount.contains(parsed.operands.count))
        guard command.readsSettings else {
            #expect(parsed.unknownOptions(known: command.options).isEmpty)
            return
        }
        let settings = ResolvedSettings(
            SettingTable.schema,
            arguments: ParsedArguments(
                words.dropFirst(2).filter {
                    !$0.hasPrefix("file:") && $0 != "--api.token" && $0 != "--config" && $0 != "/etc/perennial.conf"
                }, options: command.options),
            options: command.options, environment: [], command: name.rawValue)
        #expect(settings.faults.isEmpty, "\(settings.faults)")
    }

    @Test func `without a command shows how to use it and exits 2`() {
        let outcome = run([])
        #expect(outcome.code == .wrongUsage)
        #expect(outcome.data.isEmpty)
        #expect(outcome.messages.first?.contains("Usage: perennial COMMAND") == true)
    }

    @Test(arguments: [["help"], ["--help"], ["-h"]])
    func `lists the commands it has, and no other`(_ arguments: [String]) {
        let outcome = run(arguments)
        #expect(outcome.code == .done)
        #expect(outcome.messages.isEmpty)
        let program = Program.standard
        for name in CommandName.allCases {
            let isListed = outcome.data.contains("\n  \(name.rawValue) ")
            #expect(isListed == (program.command(name.rawValue) != nil), "\(name)")
        }
    }

    @Test(arguments: CommandName.allCases)
    func `knows every command of the contract: it has it, or says that it is to come`(_ name: CommandName) {
        if Program.standard.command(name.rawValue) != nil {
            for arguments in [["help", name.rawValue], [name.rawValue, "--help"], [name.rawValue, "-h"]] {
                let outcome = run(arguments)
                #expect(outcome.code == .done)
                #expect(outcome.data.hasPrefix("Usage: perennial \(name.rawValue)"))
            }
        } else {
            for arguments in [[name.rawValue], [name.rawValue, "--help"], ["help", name.rawValue]] {
                let outcome = run(arguments)
                #expect(outcome.code == .wrongUsage)
                #expect(outcome.data.isEmpty)
                #expect(
                    outcome.messages == ["perennial \(name.rawValue): version 0.2.0 does not have this command yet"])
            }
        }
    }

    @Test func `leads a mistyped command to the nearest one`() {
        let outcome = run(["verzion"])
        #expect(outcome.code == .wrongUsage)
        #expect(
            outcome.messages == [
                "perennial: there is no command \"verzion\"; the nearest is version. perennial help lists the commands"
            ])
        #expect(
            run(["--topic.prefix", "x", "version"]).messages.first?.contains("the command must come first") == true)
    }

    @Test(arguments: [
        ["version", "--topic.prefix=x"], ["version", "extra"], ["version", "--format"], ["version", "--format=xml"],
        ["help", "settings", "--format=html"], ["help", "commands", "--format=html"], ["version", "-x"],
        ["version", "--verbose"],
        ["version", "--help=1"],
    ])
    func `refuses arguments it does not understand`(_ arguments: [String]) {
        let outcome = run(arguments)
        #expect(outcome.code == .wrongUsage)
        #expect(outcome.data.isEmpty)
        #expect(!outcome.messages.isEmpty)
    }

    @Test(arguments: [
        (
            ["version", "foo"],
            "perennial version: \"foo\" is one argument too many; usage: perennial version [--option value]..."
        ),
        (["topics", "plan", "extra"], "perennial topics: \"extra\" is one argument too many; "),
        (["topics", "plan", "-topic.prefix", "a"], "perennial topics: \"-topic.prefix\" is not an option; "),
        (["version", "--format", "xml"], "perennial version: --format must be text or json, not \"xml\""),
    ])
    func `names what is wrong, and only that`(_ arguments: [String], _ words: String) {
        let told = run(arguments).messages.filter { !$0.hasSuffix("shows its options") }
        #expect(told.count == 1)
        #expect(told.first?.hasPrefix(words) == true, "\(told)")
    }

    @Test(arguments: [
        ("nope", "perennial: there is no command \"nope\"; perennial help lists the commands"),
        (
            "backfil",
            "perennial: there is no command \"backfil\"; the nearest is backfill, which version 0.2.0 does not "
                + "have yet. perennial help lists the commands"
        ),
        (
            "promot",
            "perennial: there is no command \"promot\"; the nearest is promote. perennial help lists the commands"
        ),
    ])
    func `guesses only what is near, and says when that is to come`(_ name: String, _ message: String) {
        #expect(run([name]).messages == [message])
        #expect(run(["help", name]).messages == [message])
    }

    @Test func `helps with a command whatever follows its name`() {
        #expect(run(["help", "topics", "plan"]).data == run(["topics", "--help"]).data)
        #expect(run(["topics", "--help"]).data.contains("\n  --config FILE "))
        #expect(!run(["version", "--help"]).data.contains("--config"))
    }

    @Test func `helps while the settings are wrong`() {
        let wrong = [(name: "PERENNIAL_PARTITIONS", value: "none"), (name: "PERENNIAL_TYPO", value: "x")]
        #expect(run(["help"], environment: wrong).code == .done)
        #expect(run(["version"], environment: wrong).code == .done)
    }
}

@Suite struct `A command with settings` {
    private static let seen = Program(
        commands: [
            Command(
                .topics, "Test.", operands: "plan|apply", operandCount: 1...1,
                action: .configured { invocation, configuration in
                    invocation.output.data("\(invocation.operands[0]) \(configuration.environment)")
                    return .no
                })
        ], judge: { ClientProperties.complaints($0) })

    @Test func `runs with the configuration and hands on its exit code`() {
        let outcome = run(["topics", "plan", "--environment", "sandbox"], program: Self.seen)
        #expect(outcome.code == .no)
        #expect(outcome.data == "plan sandbox")
    }

    @Test func `does not run while anything is wrong, and tells all of it`() {
        let outcome = run(
            ["topics", "--partitions=0", "--kafka.isolation.level=x"], program: Self.seen,
            environment: [(name: "PERENNIAL_TYPO", value: "1")])
        #expect(outcome.code == .wrongUsage)
        #expect(outcome.data.isEmpty)
        #expect(outcome.messages.count == 5)
        #expect(outcome.messages.dropLast().allSatisfy { $0.hasPrefix("perennial topics: ") && !$0.contains("\n") })
        #expect(outcome.messages.last == "perennial help topics shows its options")
    }

    @Test func `names in its help the settings it reads`() {
        let help = run(["topics", "--help"], program: Self.seen).data
        #expect(help.contains("Usage: perennial topics plan|apply [--option value]..."))
        #expect(help.contains("  --kafka.*\n"))
        #expect(help.contains("  --topics.replication.factor\n"))
        #expect(!help.contains("--api.token"))
    }
}

/// Checks that a page of docs/reference contains, between its markers, the text that the program prints.
private func expectPage(_ name: String, from first: String, to last: String, hasWhat arguments: [String]) throws {
    let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../../docs/reference/\(name)").standardized
    let text = try String(contentsOf: page, encoding: .utf8)
    let start = try #require(text.range(of: first)).lowerBound
    let end = try #require(text.range(of: last)).upperBound
    let call = "swift run perennial \(arguments.joined(separator: " "))"
    #expect(
        String(text[start..<end]) == run(arguments).data,
        """
        docs/reference/\(name) and the code differ. Run `\(call)`, and put what it prints in the place of everything from \
        \(first) to \(last).
        """)
}

@Suite struct `The page of commands` {
    @Test func `is the one of the code`() throws {
        try expectPage(
            "commands.md", from: CommandsHelp.firstMarker, to: CommandsHelp.lastMarker,
            hasWhat: ["help", "commands", "--format", "markdown"])
    }

    @Test func `has every command with every option`() {
        let markdown = run(["help", "commands", "--format=markdown"]).data
        for command in Program.standard.commands {
            let parts = markdown.components(separatedBy: "\n## `perennial \(command.name.rawValue)`\n")
            #expect(parts.count == 2, "\(command.name)")
            let section = parts[1].components(separatedBy: "\n## ")[0]
            for option in command.options { #expect(section.contains("\n| `--\(option.name)"), "\(option.name)") }
        }
        #expect(run(["help", "commands"]).data == run(["help"]).data)
    }
}

@Suite struct `The table of settings` {
    @Test func `in the reference is the one of the code`() throws {
        try expectPage(
            "settings.md", from: SettingsHelp.firstMarker, to: SettingsHelp.lastMarker,
            hasWhat: ["help", "settings", "--format", "markdown"])
    }

    @Test func `has every setting, for people and for the reference`() {
        let text = run(["help", "settings"]).data
        let markdown = run(["help", "settings", "--format=markdown"]).data
        for key in SettingTable.definitions.map(\.key) + ["kafka.*"] {
            #expect(text.contains("\n\(key) ("))
            #expect(markdown.contains("\n| `\(key)` |"))
        }
    }

    @Test func `is shown for one setting, or for those that share the first words of their names`() {
        let one = run(["help", "settings", "worker.slot"]).data
        #expect(one.hasPrefix("worker.slot ("))
        #expect(!one.contains("\n\n"))
        let several = run(["help", "settings", "ingest.tls"]).data
        #expect(several.contains("ingest.tls.certificate (") && several.contains("ingest.tls.key ("))
        #expect(run(["help", "settings", "kafka.ssl.ca.location"]).data.hasPrefix("kafka.* ("))
        let missing = run(["help", "settings", "worker.slots"])
        #expect(missing.code == .wrongUsage)
        #expect(
            missing.messages == [
                "perennial help: there is no setting \"worker.slots\"; the nearest is worker.slot. "
                    + "perennial help settings lists all"
            ])
        let alone = run(["help", "worker.slots"])
        #expect(alone.code == .wrongUsage)
        #expect(
            alone.messages == [
                "perennial help: there is no command \"worker.slots\"; for a setting: perennial help settings worker.slot"
            ])
    }

    @Test func `fits a terminal`() {
        let lines = run(["help", "settings"]).data.components(separatedBy: "\n").filter { $0.hasPrefix("    ") }
        #expect(lines.count > 100)
        #expect(lines.allSatisfy { $0.count <= 100 }, "\(lines.filter { $0.count > 100 })")
    }

    @Test func `marks commands that are to come`() {
        let table = SettingsHelp(commands: ["check"])
        #expect(table.markdown.contains("| check; to come: topics, size |"))
        #expect(!SettingsHelp(commands: CommandName.allCases.map(\.rawValue)).markdown.contains("to come"))
    }
}
