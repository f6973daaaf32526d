// Parses the arguments of a command: its own options, settings as flags, operands.

import Platform

/// An option that belongs to one command and is not a setting.
public struct CommandOption: Sendable {
    public let name: String
    /// The name of the value in help; nil: the option has no value.
    public let valueName: String?
    public let effect: String

    public init(_ name: String, value valueName: String? = nil, effect: String) {
        self.name = name
        self.valueName = valueName
        self.effect = effect
    }
}

struct GivenValue: Sendable {
    let key: String
    let text: String
    let origin: SettingOrigin

    static let filePrefix = "file:"
    /// The text names a file that contains the value.
    var namesFile: Bool { text.hasPrefix(Self.filePrefix) }
}

public struct ParsedArguments: Sendable {
    public private(set) var operands: [String] = []
    /// The text of each given option; empty for one without a value.
    public private(set) var options: [String: String] = [:]
    public private(set) var faults: [SettingFault] = []
    private(set) var settings: [GivenValue] = []
    /// Flags that are not options and have no value. If no setting has the name, "unknown" is the better message.
    private(set) var withoutValue: [String] = []

    /// For a command without settings: every other flag is a mistake.
    public func unknownOptions(known: [CommandOption]) -> [SettingFault] {
        (settings.map(\.key) + withoutValue).map { key in
            let nearest = nearestName(to: key, among: known.map(\.name)).map { "; the nearest is --\($0)" } ?? ""
            return SettingFault("no option is called \(quoted("--" + key))\(nearest)")
        }
    }

    public func has(_ option: String) -> Bool { options[option] != nil }

    /// Treats every `--name` that is not an option as a setting; the resolver checks whether that setting exists.
    public init(_ arguments: [String], options known: [CommandOption]) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            if argument == "--" {
                operands += rest
                return
            }
            if argument.hasPrefix("--") {
                take(argument.dropFirst(2), rest: &rest, known: known)
            } else if argument == "-h", known.contains(where: { $0.name == "help" }) {
                options["help"] = ""
            } else if argument.hasPrefix("-"), argument != "-" {
                faults.append(SettingFault("\(quoted(argument)) is not an option; options begin with two dashes"))
            } else {
                operands.append(argument)
            }
        }
    }

    private mutating func take(_ flag: Substring, rest: inout ArraySlice<String>, known: [CommandOption]) {
        let parts = flag.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0])
        let option = known.first { $0.name == name }
        var text = parts.count == 2 ? String(parts[1]) : nil
        if let option, option.valueName == nil {
            guard text == nil else { return faults.append(SettingFault("--\(name) takes no value")) }
            text = ""
        } else if text == nil {
            text = nextValue(rest: &rest)
        }
        guard let text else {
            if option == nil { withoutValue.append(name) } else { faults.append(Self.needsValue(name)) }
            return
        }
        if options[name] != nil || settings.contains(where: { $0.key == name }) {
            faults.append(SettingFault("--\(name) is given twice; keep one of the two"))
        } else if option != nil {
            options[name] = text
        } else {
            settings.append(GivenValue(key: name, text: text, origin: .flag(name)))
        }
    }

    /// nil: no value follows.
    private func nextValue(rest: inout ArraySlice<String>) -> String? {
        guard let next = rest.first, !next.hasPrefix("--") else { return nil }
        rest.removeFirst()
        guard next == "=" else { return next }
        // The value follows as a separate word; as an operand it would be repeated in a message.
        _ = rest.popFirst()
        return nil
    }

    static func needsValue(_ name: String) -> SettingFault {
        SettingFault("--\(name) needs a value: write --\(name)=VALUE, without blanks around \"=\"")
    }
}
