// Where a value was set, and what is wrong with it.

public enum SettingOrigin: Sendable, Equatable, CustomStringConvertible {
    case builtIn
    case flag(String)
    case variable(String)
    case file(path: String, line: Int)

    public var description: String {
        switch self {
        case .builtIn: "default"
        case .flag(let key): "flag --\(key)"
        case .variable(let name): "variable \(name)"
        case .file(let path, let line): "\(path):\(line)"
        }
    }
}

/// One line that says what to do. It never contains values of secrets.
public struct SettingFault: Error, Sendable, Equatable, CustomStringConvertible {
    public let place: String?
    public let words: String

    public init(_ origin: SettingOrigin, _ words: String) { self.init(place: origin.description, words) }

    public init(place: String? = nil, _ words: String) {
        self.place = place
        self.words = words
    }

    public var description: String { visible((place.map { "\($0): " } ?? "") + words) }
}

/// Makes a text fit into a message of one line: control characters become escapes, the end is cut off.
public func quoted(_ text: String) -> String {
    // Longer than any usual value that is not secret; the place says where to find the rest.
    let shown = 80
    return "\"" + visible(String(text.unicodeScalars.prefix(shown)))
        + (text.unicodeScalars.count > shown ? "…" : "") + "\""
}

/// Control and formatting characters as escapes: a path or a value must not start a new line of a log, or hide one.
private func visible(_ text: String) -> String {
    text.unicodeScalars.map { scalar in
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: "\\u{\(String(scalar.value, radix: 16))}"
        default: String(scalar)
        }
    }.joined()
}
