// Decides which value of a setting applies (flag, then variable, then file, then default), and reports what is wrong
// with the values.

import Glibc
import Platform

/// Every setting after precedence. A refused value is replaced by the default; `faults` reports it.
public struct ResolvedSettings: Sendable {
    public private(set) var faults: [SettingFault] = []
    /// The settings file, and the files of values given by `file:`.
    public private(set) var files: [String] = []
    /// Things that work, but let other users of this machine read a secret.
    public private(set) var warnings: [String] = []
    /// Lower precedence first: if a library uses the last of two spellings of one property, it uses the right one.
    public private(set) var passThrough: [PassThroughEntry] = []

    private struct Value {
        let text: String
        let origin: SettingOrigin
        let wasReadFromFile: Bool
    }

    /// Limit for a file given by `file:`: it may contain the certificates of a whole trust store.
    static let limitValueFileBytes = 1 << 20

    private let schema: SettingsSchema
    private var values: [String: Value] = [:]
    private var refusedKeys: Set<String> = []
    /// Path of the default settings file, if it was found.
    private var foundFile: String?

    /// `command` is the command that reads the settings; nil opens the files of every value.
    public init(
        _ schema: SettingsSchema, arguments: ParsedArguments, options: [CommandOption] = [],
        environment: [(name: String, value: String)], command: String?
    ) {
        self.schema = schema
        faults = arguments.faults
        var flags = arguments.settings
        let fileFlag = flags.firstIndex { $0.key == SettingsSchema.fileFlag }.map { flags.remove(at: $0).text }
        let variables = variables(in: environment)
        let fileVariable = environment.last { $0.name == schema.fileVariable && !$0.value.isEmpty }?.value
        let ofFile = valuesOfFile(named: fileFlag ?? fileVariable)
        let known = options.map(\.name) + [SettingsSchema.fileFlag]
        let given = ofFile + variables + flags
        for (index, value) in given.enumerated() {
            // Only the value that applies is checked and its file opened: a flag can also override a wrong line. An
            // unknown name is reported in every place.
            let isOverridden = given[(index + 1)...].contains { $0.key == value.key }
            if isOverridden && isKnown(value.key) { continue }
            take(value, otherFlags: known, command: command)
        }
        for name in arguments.withoutValue {
            let flag = GivenValue(key: name, text: "", origin: .flag(name))
            let isMeant = isKnown(name) || name == SettingsSchema.fileFlag
            faults.append(isMeant ? ParsedArguments.needsValue(name) : unknown(flag, otherFlags: known))
        }
    }

    private func isKnown(_ key: String) -> Bool {
        key.hasPrefix(schema.family.name + ".") || schema.definition(key) != nil
    }

    /// nil: the setting is not set and has no default.
    public subscript<Value>(_ setting: Setting<Value>) -> Value? {
        guard let text = values[setting.definition.key]?.text ?? setting.definition.defaultText else { return nil }
        // The texts in `values` have passed this function before, and defaults were checked when the setting was
        // defined.
        return try? setting.kind.parse(text)
    }

    /// The value of a setting with a default.
    public func required<Value>(_ setting: Setting<Value>) -> Value {
        guard let value = self[setting] else { preconditionFailure("\(setting.definition.key) has no default") }
        return value
    }

    /// The setting is set, even if its value was refused: then it is wrong, and not reported as missing too.
    public func isGiven(_ key: String) -> Bool { values[key] != nil || refusedKeys.contains(key) }

    public func origin(of key: String) -> SettingOrigin { values[key]?.origin ?? .builtIn }

    /// Every setting and property in a form that people may see: secrets, and values given by `file:`, as "(not
    /// shown)".
    public var rows: [(key: String, value: String, origin: SettingOrigin)] {
        let hidden = "(not shown)"
        let settings = schema.definitions.map { definition in
            let value = values[definition.key]
            let shown =
                if let value, definition.isSecret || value.wasReadFromFile { hidden } else {
                    value?.text ?? definition.defaultText ?? "(none)"
                }
            return (definition.key, shown, value?.origin ?? .builtIn)
        }
        return settings
            + passThrough.map { entry in
                let key = [schema.family.name, entry.scope, entry.name].compactMap(\.self).joined(separator: ".")
                return (key, entry.isSecret ? hidden : entry.value, entry.origin)
            }
    }

    // MARK: The three sources

    /// Sorted by name: the order of an environment has no meaning, and messages should be the same everywhere.
    private mutating func variables(in environment: [(name: String, value: String)]) -> [GivenValue] {
        var given: [GivenValue] = []
        for (name, value) in environment.sorted(by: { $0.name < $1.name }) {
            guard name.hasPrefix(schema.variablePrefix), name != schema.fileVariable else { continue }
            guard !schema.isServiceVariable(name, value: value) else { continue }
            let origin = SettingOrigin.variable(name)
            if let key = schema.key(ofVariable: name) {
                given.append(GivenValue(key: key, text: value, origin: origin))
            } else {
                let names = schema.keys.map(schema.variable(for:)) + [schema.fileVariable]
                let nearest = nearestName(to: name, among: names).map { "the nearest is \($0)" }
                faults.append(SettingFault(origin, "no setting has this name; \(nearest ?? listed)"))
            }
        }
        return given
    }

    private mutating func valuesOfFile(named path: String?) -> [GivenValue] {
        // A broken link was meant to be read: only if there is not even a link, there is no file.
        var status = stat()
        let hasDefault = lstat(schema.defaultFile, &status) == 0
        if path == nil, hasDefault { foundFile = schema.defaultFile }
        guard let path = path ?? foundFile else { return [] }
        files.append(path)
        let file = SettingsFile(path: path)
        faults += file.faults
        return file.lines.map { line in
            GivenValue(key: line.key, text: line.value, origin: .file(path: path, line: line.line))
        }
    }

    // MARK: One value

    private mutating func take(_ given: GivenValue, otherFlags: [String], command: String?) {
        if given.key.hasPrefix(schema.family.name + ".") { return takeProperty(given) }
        guard let definition = schema.definition(given.key) else {
            return faults.append(unknown(given, otherFlags: otherFlags))
        }
        if definition.isPath, given.namesFile {
            refusedKeys.insert(given.key)
            return faults.append(
                SettingFault(given.origin, "\(given.key): the value is a path itself; write it without \"file:\""))
        }
        let isRead = command.map { definition.readers.contains($0) } ?? true
        guard isRead || !given.namesFile else { return }
        guard let text = resolved(given) else {
            refusedKeys.insert(given.key)
            return
        }
        if definition.meansNone(text) { return }
        if let problem = definition.problem(text) {
            let isHidden = definition.isSecret || problem.hidesValue || given.namesFile
            let shown = isHidden ? "its value" : quoted(text)
            refusedKeys.insert(given.key)
            let words = "\(given.key): \(shown) must be \(problem.words)\(fileHabit(given))"
            faults.append(SettingFault(given.origin, words))
        } else {
            values[given.key] = Value(text: text, origin: given.origin, wasReadFromFile: given.namesFile)
            if definition.isSecret, isRead { warn(of: given) }
        }
    }

    /// Warns about the applied value of a secret.
    private mutating func warn(of given: GivenValue) {
        if given.namesFile {
            let path = String(given.text.dropFirst(GivenValue.filePrefix.count))
            if let words = Self.opennessWords(given.key, path) { warnings.append(words) }
        } else if case .flag = given.origin, access(given.text, F_OK) != 0 {
            warnings.append(
                "\(given.key) is set by a flag: every user of this machine can read it in the list of processes. Write "
                    + "it to a file and set file:PATH")
        }
    }

    /// Why a secret in a file is readable by others; nil: as far as can be seen, it is not.
    public static func opennessWords(_ key: String, _ path: String) -> String? {
        guard isReadableByAll(path) else { return nil }
        return "\(key): every user of this machine can read \(path): chmod o-r \(path)"
    }

    /// Hints about syntax that other formats of settings accept, but not this one.
    private func fileHabit(_ given: GivenValue) -> String {
        guard case .file = given.origin else { return "" }
        var words = ""
        if given.text.contains(" #") || given.text.contains("\t#") {
            words += "; \"#\" begins a comment only at the start of a line"
        }
        if let first = given.text.first, first == "\"" || first == "'" { words += "; quotes are part of the value" }
        return words
    }

    private mutating func takeProperty(_ given: GivenValue) {
        let path = given.key.dropFirst(schema.family.name.count + 1)
        let scope = schema.family.scopes.first { path.hasPrefix($0 + ".") }
        let name = String(path.dropFirst(scope.map { $0.count + 1 } ?? 0))
        guard !name.isEmpty, name.utf8.allSatisfy(isKeyByte), !schema.family.scopes.contains(name) else {
            let example = "\(schema.family.name).\(schema.family.examples.first ?? "name")"
            return faults.append(
                SettingFault(
                    given.origin,
                    "\(shownKey(given.key, value: given.text)) is not a property; write it like \(example)"))
        }
        if schema.family.runningCode.contains(name), case .file(let file, _) = given.origin, file == foundFile {
            return faults.append(
                SettingFault(
                    given.origin,
                    "\(given.key) makes this program run or load something: it is accepted only in a file that is "
                        + "named with --\(SettingsSchema.fileFlag), or as a flag or variable"))
        }
        guard let value = resolved(given) else { return }
        let entry = PassThroughEntry(
            scope: scope, name: name, value: value, origin: given.origin, wasReadFromFile: given.namesFile)
        if nameSoundsSecret(name) { warn(of: given) }
        passThrough.append(entry)
    }

    private func unknown(_ given: GivenValue, otherFlags: [String]) -> SettingFault {
        guard case .flag = given.origin else {
            guard looksLikeKey(given.key, value: given.text) else {
                return SettingFault(
                    given.origin, "the key of this line (not shown) does not look like a setting; \(listed)")
            }
            let nearest = schema.nearestKey(to: given.key).map { "the nearest is \($0)" }
            return SettingFault(given.origin, "no setting is called \(given.key); \(nearest ?? listed)")
        }
        let nearest = schema.nearestKey(to: given.key, or: otherFlags).map { "the nearest is --\($0)" }
        return SettingFault("no setting or option is called \(quoted("--" + given.key)); \(nearest ?? listed)")
    }

    private var listed: String { "\(schema.help) lists them" }

    /// The text itself, or the contents of the file that it names. nil if it was refused.
    private mutating func resolved(_ given: GivenValue) -> String? {
        guard given.namesFile else {
            // Bytes that are not UTF-8 arrive as U+FFFD; a NUL cannot occur.
            guard !given.text.unicodeScalars.contains("\u{fffd}") else {
                faults.append(
                    SettingFault(given.origin, "\(shownKey(given.key, value: given.text)): the value is not UTF-8"))
                return nil
            }
            return given.text
        }
        let path = String(given.text.dropFirst(GivenValue.filePrefix.count))
        files.append(path)
        do {
            return try contentOfValueFile(path)
        } catch {
            faults.append(SettingFault(given.origin, "\(shownKey(given.key, value: given.text)): \(error)"))
            return nil
        }
    }

    private func contentOfValueFile(_ path: String) throws -> String {
        var bytes = try readOwnFile(path, limitBytes: Self.limitValueFileBytes)
        if bytes.last == UInt8(ascii: "\n") {
            bytes.removeLast()
            if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        }
        guard !bytes.isEmpty else { throw SettingFault("\(path) is empty; write the value to it") }
        guard !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else {
            throw SettingFault("\(path) is not text in UTF-8")
        }
        return text
    }
}
