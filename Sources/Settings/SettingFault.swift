// Where a value was given, and what is wrong with it.

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

/// One line that says what to do. Values of secrets are never part of it.
public struct SettingFault: Error, Sendable, Equatable, CustomStringConvertible {
    public let place: String?
    public let words: String

    public init(_ origin: SettingOrigin, _ words: String) { self.init(place: origin.description, words) }

    public init(place: String? = nil, _ words: String) {
        self.place = place
        self.words = words
    }

    public var description: String { (place.map { "\($0): " } ?? "") + words }
}

/// Fits a message of one line whatever the user wrote: control characters are shown as escapes, the end is cut off.
public func quoted(_ text: String) -> String {
    // Longer than any sensible value that is not secret; the place says where to look up the rest.
    let shown = 80
    let head = text.unicodeScalars.prefix(shown).map { scalar in
        scalar.value < 0x20 || (0x7f..<0xa0).contains(scalar.value) || scalar.properties.generalCategory == .format
            ? "\\u{\(String(scalar.value, radix: 16))}" : String(scalar)
    }
    return "\"" + head.joined() + (text.unicodeScalars.count > shown ? "…" : "") + "\""
}
