// A JSON reader for the plain metrics. It gives a tree whose objects keep the bytes that they were written with.

import Foundation

indirect enum PlainJSON {
    case null
    case bool(Bool)
    /// The number as written: with a fraction or an exponent it is not an integer.
    case number(String)
    case string(String)
    case array([PlainJSON])
    case object([(name: String, value: PlainJSON)], raw: [UInt8])

    /// nil if the bytes are not JSON.
    init?(_ bytes: [UInt8]) {
        var reader = Reader(bytes: bytes)
        guard let value = reader.value() else { return nil }
        self = value
    }

    subscript(name: String) -> PlainJSON? {
        guard case .object(let members, _) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    func integer(_ name: String) -> Int64? {
        guard case .number(let digits)? = self[name] else { return nil }
        return Int64(digits)
    }

    func bool(_ name: String) -> Bool? {
        guard case .bool(let bool)? = self[name] else { return nil }
        return bool
    }

    /// "A text that is empty, longer than 256 bytes or has `|` in it is taken as absent."
    func text(_ name: String) -> String? {
        guard case .string(let text)? = self[name] else { return nil }
        return text.isEmpty || text.utf8.count > 256 || text.utf8.contains(UInt8(ascii: "|")) ? nil : text
    }

    /// An encrypted value counts as absent.
    func object(_ name: String) -> (object: PlainJSON, raw: [UInt8])? {
        guard let value = self[name], case .object(_, let raw) = value, value["sealed"] == nil else { return nil }
        return (value, raw)
    }
}

private struct Reader {
    /// Tested byte by byte, because looking up each byte in a set is slow.
    private static let spaces = (0...255).map { Array(" \t\r\n".utf8).contains($0) }
    private static let signs = (0...255).map { Array("{}[],:\" \t\r\n".utf8).contains($0) }

    let bytes: [UInt8]
    var place = 0

    mutating func value() -> PlainJSON? {
        skipSpace()
        guard place < bytes.count else { return nil }
        switch bytes[place] {
        case UInt8(ascii: "{"): return object()
        case UInt8(ascii: "["): return array()
        case UInt8(ascii: "\""): return string().map { .string($0) }
        default: return word()
        }
    }

    private mutating func object() -> PlainJSON? {
        let start = place
        place += 1
        var members: [(name: String, value: PlainJSON)] = []
        while !takes("}") {
            if !members.isEmpty && !takes(",") { return nil }
            skipSpace()
            guard let name = string(), takes(":"), let value = value() else { return nil }
            members.append((name, value))
        }
        return .object(members, raw: Array(bytes[start..<place]))
    }

    private mutating func array() -> PlainJSON? {
        place += 1
        var elements: [PlainJSON] = []
        while !takes("]") {
            if !elements.isEmpty && !takes(",") { return nil }
            guard let value = value() else { return nil }
            elements.append(value)
        }
        return .array(elements)
    }

    private mutating func string() -> String? {
        guard place < bytes.count, bytes[place] == UInt8(ascii: "\"") else { return nil }
        let start = place
        var hasEscape = false
        place += 1
        while place < bytes.count, bytes[place] != UInt8(ascii: "\"") {
            if bytes[place] == UInt8(ascii: "\\") {
                hasEscape = true
                place += 1
            }
            place += 1
        }
        guard place < bytes.count else { return nil }
        place += 1
        guard hasEscape else { return String(decoding: bytes[(start + 1)..<(place - 1)], as: UTF8.self) }
        let whole = Data(bytes[start..<place])
        return try? JSONSerialization.jsonObject(with: whole, options: .fragmentsAllowed) as? String
    }

    private mutating func word() -> PlainJSON? {
        let start = place
        while place < bytes.count, !Self.signs[Int(bytes[place])] { place += 1 }
        switch String(decoding: bytes[start..<place], as: UTF8.self) {
        case "": return nil
        case "null": return .null
        case "true": return .bool(true)
        case "false": return .bool(false)
        case let number: return .number(number)
        }
    }

    private mutating func takes(_ sign: Unicode.Scalar) -> Bool {
        skipSpace()
        guard place < bytes.count, bytes[place] == UInt8(ascii: sign) else { return false }
        place += 1
        return true
    }

    private mutating func skipSpace() {
        while place < bytes.count, Self.spaces[Int(bytes[place])] { place += 1 }
    }
}
