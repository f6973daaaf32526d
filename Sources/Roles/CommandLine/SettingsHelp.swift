// The table of settings, for people and for docs/reference/settings.md.

import Configuration
import Settings

struct SettingsHelp {
    /// The commands of this version. Other commands that read a setting are marked as to come.
    let commands: [String]

    static let firstMarker = "<!-- settings -->"
    static let lastMarker = "<!-- /settings -->"

    private struct Row {
        let key: String
        let defaultText: String
        let values: String
        let effect: String
        let readers: String
    }

    private var rows: [Row] {
        [kafkaRow]
            + SettingTable.definitions.map { definition in
                Row(
                    key: definition.key,
                    defaultText: (definition.defaultText ?? "none") + (definition.defaultNote.map { "; \($0)" } ?? ""),
                    values: definition.values + (definition.isSecret ? " (secret)" : ""), effect: definition.effect,
                    readers: readers(definition.readers))
            }
    }

    private var kafkaRow: Row {
        let family = SettingTable.kafka.name
        let scopes = SettingTable.kafka.scopes.map { "`\(family).\($0).*`" }.joined(separator: ", ")
        return Row(
            key: "\(family).*", defaultText: "none", values: "as in librdkafka's CONFIGURATION.md",
            effect: "Any property of librdkafka, for every client; \(scopes) for one kind of client. "
                + "The few that Perennial must set itself for correctness are refused, with the reason.",
            readers: readers(SettingTable.kafkaReaders))
    }

    private func readers(_ names: [String]) -> String {
        let present = names.filter(commands.contains)
        let absent = names.filter { !commands.contains($0) }
        let toCome = absent.isEmpty ? [] : ["to come: " + absent.joined(separator: ", ")]
        return ([present.joined(separator: ", ")].filter { !$0.isEmpty } + toCome).joined(separator: "; ")
    }

    var text: String {
        let intro = """
            The value of a setting comes from a flag (--topic.prefix x), otherwise from a variable (\(SettingTable.schema.variable(for: "topic.prefix"))=x),
            otherwise from the settings file, otherwise it is the default. --\(SettingsSchema.fileFlag) or \(SettingTable.schema.fileVariable) names the settings file;
            without them it is \(SettingTable.schema.defaultFile), if that exists. It has lines key = value; a line that begins with # is a
            comment. A value that begins with file: is read from that path.
            """
        return ([intro] + rows.map(block)).joined(separator: "\n\n")
    }

    /// Explains one setting, or all settings whose keys begin with these words: "ingest.tls" explains two. nil: no key fits.
    func text(of name: String) -> String? {
        let blocks = rows.filter { row in
            row.key == name || row.key.hasPrefix(name + ".")
                || row.key == kafkaRow.key && name.hasPrefix(SettingTable.kafka.name + ".")
        }.map(block)
        return blocks.isEmpty ? nil : blocks.joined(separator: "\n\n")
    }

    private func block(_ row: Row) -> String {
        let lines = [row.effect, "Values: " + row.values, "Read by: " + row.readers]
        return
            ([plain("\(row.key) (\(row.defaultText))")]
            + lines.flatMap { wrapped(plain($0), width: 96).map { "    " + $0 } })
            .joined(separator: "\n")
    }

    /// A terminal does not show code in another font.
    private func plain(_ text: String) -> String { text.filter { $0 != "`" } }

    /// The text of the page between the markers, including them.
    var markdown: String {
        let head = ["| Key | Default | Values | Effect | Read by |", "|---|---|---|---|---|"]
        let lines = rows.map { row in
            "| `\(row.key)` | \(cell(row.defaultText)) | \(cell(row.values)) | \(cell(row.effect)) | \(row.readers) |"
        }
        return ([Self.firstMarker] + head + lines + [Self.lastMarker]).joined(separator: "\n")
    }

    private func cell(_ text: String) -> String { text.replacing("|", with: "\\|") }
}
