// All settings of a program, and their names outside of it.

import Platform

/// Properties that are passed unchanged to a library: `kafka.linger.ms`, or to one kind of its clients:
/// `kafka.producer.linger.ms`.
public struct PassThroughFamily: Sendable {
    public let name: String
    public let scopes: [String]
    /// Properties that most users set: if a key lacks the family's name, the message suggests it.
    public let examples: [String]
    /// Properties that start a program or load a library. The default settings file, which may just lie in the working
    /// directory, cannot set them.
    public let runningCode: Set<String>

    public init(name: String, scopes: [String], examples: [String], runningCode: Set<String> = []) {
        self.name = name
        self.scopes = scopes
        self.examples = examples
        self.runningCode = runningCode
    }
}

public struct SettingsSchema: Sendable {
    public let definitions: [SettingDefinition]
    public let family: PassThroughFamily
    /// `EXAMPLE_` makes `topic.prefix` the variable `EXAMPLE_TOPIC_PREFIX`.
    public let variablePrefix: String
    /// Read if it exists and no other file is named.
    public let defaultFile: String
    /// The command that lists the settings.
    public let help: String

    public init(
        definitions: [SettingDefinition], family: PassThroughFamily, variablePrefix: String, defaultFile: String,
        help: String
    ) {
        self.definitions = definitions
        self.family = family
        self.variablePrefix = variablePrefix
        self.defaultFile = defaultFile
        self.help = help
        precondition(Set(definitions.map(\.key)).count == definitions.count, "a key is defined twice")
    }

    /// The flag that names the settings file.
    public static let fileFlag = "config"
    public var fileVariable: String { variablePrefix + "CONFIG" }

    public func variable(for key: String) -> String {
        variablePrefix + key.uppercased().map { $0 == "." ? "_" : String($0) }.joined()
    }

    func definition(_ key: String) -> SettingDefinition? { definitions.first { $0.key == key } }

    /// All keys that a message may suggest.
    var keys: [String] { definitions.map(\.key) + family.examples.map { "\(family.name).\($0)" } }

    /// The known key that is most similar to an unknown one. An unknown key may come from the environment or lack the
    /// family's name, and otherwise be the exact name of a setting.
    public func nearestKey(to key: String, or others: [String] = []) -> String? {
        let dotted = String(key.lowercased().map { $0 == "_" ? "." : $0 })
        let prefix = variable(for: "").lowercased().map { $0 == "_" ? "." : String($0) }.joined()
        let plain = dotted.hasPrefix(prefix) ? String(dotted.dropFirst(prefix.count)) : dotted
        // Only the library knows its properties; none has a name near this length.
        let isProperty =
            plain.hasPrefix(family.name + ".") && (family.name.utf8.count + 2...100).contains(plain.utf8.count)
        if isProperty { return plain }
        return [plain, "\(family.name).\(plain)"].first(where: keys.contains)
            ?? nearestName(to: key, among: keys + others) ?? nearestName(to: plain, among: keys)
    }

    /// The key that a variable sets; nil for a name that no setting has.
    func key(ofVariable name: String) -> String? {
        if let definition = definitions.first(where: { variable(for: $0.key) == name }) { return definition.key }
        let familyPrefix = variable(for: family.name) + "_"
        guard name.hasPrefix(familyPrefix) else { return nil }
        return name.dropFirst(variablePrefix.count).lowercased().map { $0 == "_" ? "." : String($0) }.joined()
    }

    /// Kubernetes sets variables in every pod for each service in its namespace. For a service with the name of this
    /// program, or a name that begins with it (`example-ingest`), they look like settings: `EXAMPLE_SERVICE_HOST`,
    /// `EXAMPLE_SERVICE_PORT_HTTPS`, `EXAMPLE_PORT=tcp://10.0.0.1:8443`, `EXAMPLE_INGEST_PORT_8443_TCP_ADDR`. They are
    /// not settings.
    func isServiceVariable(_ name: String, value: String) -> Bool {
        var words = name.split(separator: "_", omittingEmptySubsequences: false)
        let transports = ["TCP", "UDP", "SCTP"]
        if words.suffix(2) == ["SERVICE", "HOST"] { return true }
        if zip(words, words.dropFirst()).contains(where: { $0 == "SERVICE" && $1 == "PORT" }) { return true }
        if words.last == "PORT", transports.contains(where: { value.hasPrefix($0.lowercased() + "://") }) {
            return true
        }
        if let last = words.last, ["PROTO", "PORT", "ADDR"].contains(last) { words.removeLast() }
        let tail = Array(words.suffix(3))
        return tail.count == 3 && tail[0] == "PORT" && UInt16(tail[1]) != nil && transports.contains(String(tail[2]))
    }
}

/// A property of the family that was set.
public struct PassThroughEntry: Sendable, Equatable {
    /// nil: it is for every kind of client.
    public let scope: String?
    public let name: String
    public let value: String
    public let origin: SettingOrigin
    public let wasReadFromFile: Bool

    public init(scope: String?, name: String, value: String, origin: SettingOrigin, wasReadFromFile: Bool = false) {
        self.scope = scope
        self.name = name
        self.value = value
        self.origin = origin
        self.wasReadFromFile = wasReadFromFile
    }

    /// It is unknown which properties a library treats as passwords, so the guess is generous.
    public var isSecret: Bool { wasReadFromFile || nameSoundsSecret(name) }
}

/// For properties without a definition. Hiding a harmless value costs nothing; showing a key reveals it.
func nameSoundsSecret(_ name: String) -> Bool {
    let name = name.lowercased()
    return ["password", "secret", "token", "jaas", ".pem", "credential", "passphrase", "oauthbearer.config"]
        .contains { name.contains($0) }
}
