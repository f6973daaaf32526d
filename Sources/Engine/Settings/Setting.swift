// One setting: its name, its values, and its effect. Help, checks and typed access all use this.

import Platform

/// Why a text is not a value of a setting, as the end of the sentence "… must be …". Never repeats the text: it may be
/// secret.
public struct SettingProblem: Error, Equatable {
    public let words: String
    /// For texts that are partly secret.
    public let hidesValue: Bool

    public init(_ words: String, hidesValue: Bool = false) {
        self.words = words
        self.hidesValue = hidesValue
    }
}

/// The values that a setting accepts, and how a text becomes one.
public struct SettingKind<Value: Sendable>: Sendable {
    /// For tables: "whole number from 1 to 10".
    public let values: String
    /// The value itself is a path. With `file:` the contents of a file would be used as the name of another file.
    public let isPath: Bool
    public let parse: @Sendable (String) throws(SettingProblem) -> Value

    public init(
        _ values: String, isPath: Bool = false, parse: @escaping @Sendable (String) throws(SettingProblem) -> Value
    ) {
        self.values = values
        self.isPath = isPath
        self.parse = parse
    }
}

/// A setting with the type of its value.
public struct Setting<Value: Sendable>: Sendable {
    public let definition: SettingDefinition
    public let kind: SettingKind<Value>

    /// `readBy` lists the commands that read the value. For other commands a value is checked, but a file given by
    /// `file:` is not opened: a secret is often mounted only where it is needed.
    public init(
        _ key: String, default defaultText: String? = nil, note: String? = nil, _ kind: SettingKind<Value>,
        secret: Bool = false, readBy readers: [String], effect: String
    ) {
        self.kind = kind
        definition = SettingDefinition(
            key: key, defaultText: defaultText, defaultNote: note, values: kind.values, effect: effect,
            isSecret: secret, isPath: kind.isPath, readers: readers,
            problem: { text in
                do throws(SettingProblem) {
                    _ = try kind.parse(text)
                    return nil
                } catch {
                    return error
                }
            })
        // A default that fails its own check would otherwise be noticed only where the key is not set.
        precondition(
            defaultText.map { definition.problem($0) == nil } ?? true,
            "the default of \(key) is not a valid value")
    }
}

/// A setting without its type, for tables and the resolver.
public struct SettingDefinition: Sendable {
    public let key: String
    /// nil: the setting has no default.
    public let defaultText: String?
    /// The condition under which the default differs, if there is one: "60000 in sandbox".
    public let defaultNote: String?
    public let values: String
    public let effect: String
    public let isSecret: Bool
    let isPath: Bool
    public let readers: [String]
    let problem: @Sendable (String) -> SettingProblem?

    /// For a setting without a default an empty text means "not set": so a variable can cancel a value of the file.
    func meansNone(_ text: String) -> Bool { text.isEmpty && defaultText == nil }
}

extension SettingKind where Value == Int {
    public static func integer(_ range: ClosedRange<Int>) -> SettingKind {
        let values = "whole number from \(range.lowerBound) to \(range.upperBound)"
        return SettingKind(values) { text throws(SettingProblem) in
            guard let number = decimal(text), range.contains(number) else { throw SettingProblem("a \(values)") }
            return number
        }
    }
}

extension SettingKind where Value == Bool {
    public static var flag: SettingKind {
        SettingKind("true or false") { text throws(SettingProblem) in
            switch text {
            case "true": return true
            case "false": return false
            default: throw SettingProblem("true or false")
            }
        }
    }
}

extension SettingKind where Value == String {
    /// A name of a file. The reader of the file finds out whether it can be read.
    public static var path: SettingKind {
        SettingKind("path", isPath: true) { text throws(SettingProblem) in
            // It is the content of a file instead of its path, perhaps a private key, which no message may repeat.
            guard !text.utf8.contains(where: { $0 < 0x20 }) else {
                throw SettingProblem(
                    "a path on one line, not the contents of the file", hidesValue: true)
            }
            guard !text.isEmpty else { throw SettingProblem("the path of a file or directory") }
            return text
        }
    }

    /// A path, or the contents of the file.
    public static var pathOrText: SettingKind {
        SettingKind("path") { text throws(SettingProblem) in
            guard !text.isEmpty else { throw SettingProblem("a path, or by file: the text") }
            return text
        }
    }
}

extension SettingKind where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
    public static var choice: SettingKind {
        let names = Value.allCases.map(\.rawValue)
        let values = names.dropLast().joined(separator: ", ") + " or " + (names.last ?? "")
        return SettingKind(values) { text throws(SettingProblem) in
            guard let value = Value(rawValue: text) else { throw SettingProblem(values) }
            return value
        }
    }
}

extension SettingKind {
    /// Several values, separated by commas; blanks around them are ignored.
    public static func list<Element>(of element: SettingKind<Element>) -> SettingKind where Value == [Element] {
        SettingKind("\(element.values), several separated by commas", isPath: element.isPath) {
            text throws(SettingProblem) in
            var list: [Element] = []
            for part in text.split(separator: ",", omittingEmptySubsequences: false) {
                list.append(try element.parse(trimmed(part)))
            }
            return list
        }
    }
}

/// Without blanks and tabs at both ends.
func trimmed(_ text: some StringProtocol) -> String {
    let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
    return String(String(text.drop(while: isBlank)).reversed().drop(while: isBlank).reversed())
}
