// What stands after the command: its own options, settings as flags, operands.

import Platform

/// An option that belongs to one command and is no setting.
public struct CommandOption: Sendable {
    public let name: String
    /// How help calls the value; nil: the option takes none.
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
    /// The value itself is in the file that the text names.
    var namesFile: Bool { text.hasPrefix(Self.filePrefix) }
}

public struct ParsedArguments: Sendable {
    public private(set) var operands: [String] = []
    /// The text of each option given; empty for one without a value.
    public private(set) var options: [String: String] = [:]
    public private(set) var faults: [SettingFault] = []
    private(set) var settings: [GivenValue] = []
    /// Flags that are no options and came without a value. Those that no setting has are better told to be unknown.
    private(set) var withoutValue: [String] = []

    /// For a command without settings: there every other flag is a mistake.
    public func unknownOptions(known: [CommandOption]) -> [SettingFault] {
        (settings.map(\.key) + withoutValue).map { key in
            let nearest = nearestName(to: key, among: known.map(\.name)).map { "; the nearest is --\($0)" } ?? ""
            return SettingFault("no option is called \(quoted("--" + key))\(nearest)")
        }
    }

    public func has(_ option: String) -> Bool { options[option] != nil }

    /// Every `--name` that is no option is taken for a setting; whether there is such a setting, the resolver says.
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
                faults.append(SettingFault("\(quoted(argument)) is no option; options begin with two dashes"))
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

    /// nil: none follows.
    private func nextValue(rest: inout ArraySlice<String>) -> String? {
        guard let next = rest.first, !next.hasPrefix("--") else { return nil }
        rest.removeFirst()
        guard next == "=" else { return next }
        // The value follows as a word of its own; taken for an operand it would be repeated in a message.
        _ = rest.popFirst()
        return nil
    }

    static func needsValue(_ name: String) -> SettingFault {
        SettingFault("--\(name) needs a value: write --\(name)=VALUE, without blanks around \"=\"")
    }
}
