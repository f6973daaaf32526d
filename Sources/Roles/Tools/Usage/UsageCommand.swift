// `perennial usage put`: writes usage records by hand or from a file.

import Cluster
package import CommandLine
import Configuration
import JSON
import Platform
import Records
import Settings

extension Command {
    package static let usage = Command(
        .usage, "Writes usage records: what the app's own backend knows about a purchase.",
        operands: "put [FILE|JSON|-]", operandCount: 1...2,
        options: UsageOptions.members + [
            CommandOption(
                "skip-wrong", effect: "Writes the correct lines although others are wrong, and counts those."),
            CommandOption("dry-run", effect: "Checks everything and writes nothing; does not connect to Kafka."),
        ],
        details: """
            The record is given by options or as JSON. A FILE, or - for standard input, has one JSON record per line. Records are the
            same as those of POST /usage of ingest. Empty lines are ignored.
            Everything is checked first. If something is wrong, its line is named and nothing is written. Each record goes to the topic
            usage of the environment that it names, otherwise of --environment. The command ends when Kafka has acknowledged all of them.
            Writing a record again does no harm.
            Exit code 0: all is written (with --skip-wrong: all that is correct); 1: with --skip-wrong, no line was correct; 2: a record,
            the arguments, the settings or the topics are wrong; 3: Kafka did not answer or did not accept all records.
            """,
        action: .configured { invocation, configuration in
            do throws(ToolFault) {
                let options: UsageOptions
                do throws(SettingFault) {
                    options = try UsageOptions(invocation)
                } catch {
                    throw ToolFault(error)
                }
                return try UsagePut(options: options, configuration: configuration, output: invocation.output).run()
            } catch {
                for line in error.lines { invocation.output.message("perennial usage: \(line)") }
                return error.code
            }
        })
}

/// The options of `usage put`.
struct UsageOptions {
    enum Input: Equatable {
        /// From options or an operand.
        case record([UInt8])
        case file(path: String)
        case standardInput
    }

    let input: Input
    let skipsWrong: Bool
    let isDryRun: Bool

    private enum Kind { case text, bool, number }

    private static let kinds: [(member: String, kind: Kind, value: String, effect: String)] = [
        ("originalTransactionId", .text, "ID", "The purchase, or the subscription, that the record is about."),
        ("transactionId", .text, "ID", "Only this transaction of it; otherwise all of them."),
        ("consented", .bool, "true|false", "Whether the customer agreed that this is shared with Apple."),
        ("consentedAt", .number, "MS", "When the customer said so, in milliseconds since 1970; otherwise now."),
        ("deliveryStatus", .text, "WORD", "DELIVERED, or UNDELIVERED_ and the reason, as Apple calls it."),
        ("sampleContentProvided", .bool, "true|false", "Whether the customer could try it before buying."),
        ("consumptionPercentage", .number, "COUNT", "How much is used up, 0 to 100000 (thousandths of a percent)."),
        ("refundPreference", .text, "WORD", "DECLINE, GRANT_FULL or GRANT_PRORATED; used if the policy gives none."),
        ("accountCreatedAt", .number, "MS", "When the account was created, in milliseconds since 1970."),
        ("playTimeSeconds", .number, "COUNT", "How long the customer has used the app."),
        ("userStatus", .number, "0..4", "State of the account: 1 active, 2 suspended, 3 terminated, 4 limited."),
        ("platform", .number, "0..2", "Where the content was used: 1 Apple, 2 another."),
    ]

    /// Options with the names of the record's members.
    static let members = kinds.map { CommandOption($0.member, value: $0.value, effect: $0.effect) }

    init(_ invocation: Invocation) throws(SettingFault) {
        guard invocation.operands.first == "put" else {
            throw SettingFault("the first operand must be put, not \(quoted(invocation.operands.first ?? ""))")
        }
        skipsWrong = invocation.has("skip-wrong")
        isDryRun = invocation.has("dry-run")
        let given = Self.kinds.filter { invocation.has($0.member) }
        switch (invocation.operands.dropFirst().first, given.first) {
        case (.some(let operand), .some(let option)):
            throw SettingFault("--\(option.member) and \(quoted(operand)) are two sources of records; keep one of them")
        case (nil, nil):
            throw SettingFault(
                "put needs a record: a FILE, - for standard input, JSON, or options such as --originalTransactionId"
            )
        case (.some(let operand), nil):
            // An operand that begins like JSON is a record; no file has such a name.
            input =
                operand == "-"
                ? .standardInput : operand.hasPrefix("{") ? .record(Array(operand.utf8)) : .file(path: operand)
        case (nil, .some):
            input = .record(try Self.record(invocation))
        }
    }

    private static func record(_ invocation: Invocation) throws(SettingFault) -> [UInt8] {
        var members: [(name: String, value: JSONValue)] = [("v", .integer(Int64(RecordType.usage.version)))]
        for (member, kind, _, _) in kinds {
            guard let text = invocation.option(member) else { continue }
            members.append((member, try value(text, kind, of: member)))
        }
        var writer = JSONWriter()
        writer.value(.object(JSONObject(members.map { JSONObject.Member(name: $0.name, value: $0.value) })))
        return writer.bytes
    }

    private static func value(_ text: String, _ kind: Kind, of member: String) throws(SettingFault) -> JSONValue {
        switch kind {
        case .text: return .string(text)
        case .bool:
            guard text == "true" || text == "false" else {
                throw SettingFault("--\(member) must be true or false, not \(quoted(text))")
            }
            return .bool(text == "true")
        case .number:
            guard let number = Int64(text) else {
                throw SettingFault("--\(member) must be a whole number, not \(quoted(text))")
            }
            return .integer(number)
        }
    }
}
