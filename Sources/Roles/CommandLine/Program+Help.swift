// Help, made from the table of commands.

import Configuration
import Platform
import Settings

extension Program {
    var overview: String {
        let width = (commands.map(\.name.rawValue.count).max() ?? 0) + 2
        let list = commands.map { "  " + padded($0.name.rawValue, to: width) + $0.summary }
        return """
            Perennial: App Store subscriptions as streams of Kafka.

            Usage: perennial COMMAND [--option value]...

            \(list.joined(separator: "\n"))

            Every command takes --help. Settings are given as options, too: perennial help settings lists them.
            Exit codes: 0 done; 1 the answer is no; 2 wrong usage or configuration; 3 gave up at run time.
            """
    }

    func usage(of command: Command) -> String {
        let parts = ["perennial", command.name.rawValue, command.operands, "[--option value]..."]
        return parts.filter { !$0.isEmpty }.joined(separator: " ")
    }

    func help(for command: Command) -> String {
        let listed = listedOptions(of: command)
        let width = (listed.map { optionText($0).count }.max() ?? 0) + 2
        let options = listed.map { "  " + padded(optionText($0), to: width) + $0.effect }
        var parts = ["Usage: \(usage(of: command))", command.summary]
        if !command.details.isEmpty { parts.append(command.details) }
        if let example = examples[command.name] { parts.append("Example: \(example)") }
        parts.append("Options:\n" + options.joined(separator: "\n"))
        if command.readsSettings { parts.append(settingsText(of: command)) }
        return parts.joined(separator: "\n\n")
    }

    func listedOptions(of command: Command) -> [CommandOption] {
        (command.readsSettings ? [settingsFileOption] : []) + command.options
    }

    /// nil: the command reads all settings, as `check` does.
    func settings(readBy command: Command) -> [String]? {
        guard command.name != .check else { return nil }
        let keys = SettingTable.definitions.filter { $0.readers.contains(command.name.rawValue) }.map(\.key)
        return (SettingTable.kafkaReaders.contains(command.name.rawValue) ? ["kafka.*"] : []) + keys
    }

    func optionText(_ option: CommandOption) -> String {
        "--\(option.name)" + (option.valueName.map { " \($0)" } ?? "")
    }

    /// Not one of the options of a command: the settings read it, like its variable.
    private var settingsFileOption: CommandOption {
        let schema = SettingTable.schema
        return CommandOption(
            SettingsSchema.fileFlag, value: "FILE",
            effect: "Settings file; otherwise \(schema.fileVariable), otherwise \(schema.defaultFile) if it exists.")
    }

    private func settingsText(of command: Command) -> String {
        guard let keys = settings(readBy: command) else {
            return "Settings: it reads all of them; perennial help settings lists them."
        }
        return "Settings it reads (perennial help settings explains them):\n"
            + keys.map { "  --\($0)" }.joined(separator: "\n")
    }
}

package func padded(_ text: String, to width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
}

extension Command {
    package static let help = Command(
        .help, "Shows how to use a command, or the settings.", operands: "[COMMAND|commands|settings [NAME]]",
        // "help topics plan" shows help about topics: words after the command's name are ignored.
        operandCount: 0...Int.max,
        options: [
            CommandOption(
                "format", value: "text|markdown",
                effect: "commands, settings: text for a terminal, or markdown for the pages in docs/reference.")
        ],
        action: .plain { invocation in
            guard let format = invocation.choice("format", of: ["text", "markdown"]) else { return .wrongUsage }
            switch invocation.operands.first {
            case nil: invocation.output.data(invocation.program.overview)
            case "commands":
                let program = invocation.program
                invocation.output.data(
                    format == "markdown" ? CommandsHelp(program: program).markdown : program.overview)
            case "settings":
                let table = SettingsHelp(commands: invocation.program.commands.map(\.name.rawValue))
                guard let name = invocation.operands.dropFirst().first, format == "text" else {
                    invocation.output.data(format == "markdown" ? table.markdown : table.text)
                    return .done
                }
                guard let text = table.text(of: name) else {
                    let nearest = SettingTable.schema.nearestKey(to: name).map { "the nearest is \($0). " } ?? ""
                    invocation.output.message(
                        "perennial help: there is no setting \(quoted(name)); \(nearest)perennial help settings lists all"
                    )
                    return .wrongUsage
                }
                invocation.output.data(text)
            case .some(let name):
                guard let command = invocation.program.command(name) else {
                    // No command has a dot in its name. Most settings have.
                    if name.contains("."), let setting = SettingTable.schema.nearestKey(to: name) {
                        invocation.output.message(
                            "perennial help: there is no command \(quoted(name)); for a setting: perennial help settings "
                                + setting)
                        return .wrongUsage
                    }
                    // Prints the nearest command, or that this command does not exist yet.
                    return invocation.program.run([name], environment: [], output: invocation.output)
                }
                invocation.output.data(invocation.program.help(for: command))
            }
            return .done
        })
}
