// Every command with its options, for docs/reference/commands.md.

import Configuration
import Settings

struct CommandsHelp {
    let program: Program

    static let firstMarker = "<!-- commands -->"
    static let lastMarker = "<!-- /commands -->"

    /// The text of the page between the markers, including them.
    var markdown: String {
        let list =
            ["| Command | What it does |", "|---|---|"]
            + program.commands.map { "| [`perennial \($0.name.rawValue)`](#\(anchor(of: $0))) | \(cell($0.summary)) |" }
        let parts =
            [Self.firstMarker, list.joined(separator: "\n")] + program.commands.map(section) + [Self.lastMarker]
        return parts.joined(separator: "\n\n")
    }

    private func section(_ command: Command) -> String {
        var parts = [
            "## `perennial \(command.name.rawValue)`", command.summary, block("text", program.usage(of: command)),
        ]
        if !command.details.isEmpty { parts.append(paragraphs(command.details)) }
        if let example = program.examples[command.name] { parts += ["Example:", block("sh", example)] }
        parts.append(options(of: command))
        if command.readsSettings { parts.append(settings(of: command)) }
        return parts.joined(separator: "\n\n")
    }

    /// Details have few blank lines: a line that ends a sentence ends a paragraph.
    private func paragraphs(_ details: String) -> String {
        var text = ""
        for line in details.split(separator: "\n") {
            if !text.isEmpty { text += text.hasSuffix(".") ? "\n\n" : "\n" }
            text += String(line)
        }
        return text
    }

    private func options(of command: Command) -> String {
        let lines = program.listedOptions(of: command).map { option in
            "| `\(cell(program.optionText(option)))` | \(cell(option.effect)) |"
        }
        return (["| Option | Effect |", "|---|---|"] + lines).joined(separator: "\n")
    }

    private func settings(of command: Command) -> String {
        guard let keys = program.settings(readBy: command) else { return "It reads all [settings](settings.md)." }
        return "[Settings](settings.md) that it reads: " + keys.map { "`\($0)`" }.joined(separator: ", ") + "."
    }

    /// As GitHub makes an anchor from the heading: lower case, dashes for spaces, no other signs.
    private func anchor(of command: Command) -> String { "perennial-\(command.name.rawValue)" }

    private func block(_ language: String, _ text: String) -> String { "```\(language)\n\(text)\n```" }

    private func cell(_ text: String) -> String { text.replacing("|", with: "\\|") }
}
