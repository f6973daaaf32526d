public import JSON
import Platform

/// As much of JSON Schema as the files in deploy/schemas use. An unknown keyword is reported as a problem, so that none is
/// ignored.
public struct Schema {
    private let root: JSONValue
    /// By name.
    private let definitions: JSONValue

    public init(_ name: String) throws {
        let folder = "\(#filePath)".split(separator: "/").dropLast(4).joined(separator: "/")
        let path = "/\(folder)/deploy/schemas/\(name).schema.json"
        root = try JSONValue.read(readFile(path, limitBytes: 1 << 20))
        definitions = root["$defs"] ?? .null
    }

    /// A schema within a larger document, with references to parts of that document.
    public init(_ schema: JSONValue, of parts: JSONValue) {
        root = schema
        definitions = parts
    }

    /// One of the parts.
    public init(_ name: String, of parts: JSONValue) { self.init(parts[name] ?? .null, of: parts) }

    public var required: Set<String> { Set(root["required"]?.array?.compactMap(\.string) ?? []) }
    public var properties: Set<String> { Set(root["properties"]?.object?.members.map(\.name) ?? []) }

    /// The properties as the file lists them.
    public var order: [String] { root["properties"]?.object?.members.map(\.name) ?? [] }

    /// The members that the object in a property may have, as the file lists them.
    public func names(of property: String) -> [String] {
        names(root["properties"]?[property] ?? .null)
    }

    /// The same for a part with a name of its own.
    public func names(of property: String, in definition: String) -> [String] {
        names(root["$defs"]?[definition]?["properties"]?[property] ?? .null)
    }

    private func names(_ rule: JSONValue) -> [String] {
        let name = rule["$ref"]?.string?.split(separator: "/").last.map(String.init)
        let object = name.flatMap { definitions[$0] } ?? rule
        return object["properties"]?.object?.members.map(\.name) ?? []
    }

    public func problems(of value: JSONValue) -> [String] { problems(of: value, by: root, at: "$") }

    private func problems(of value: JSONValue, by schema: JSONValue, at place: String) -> [String] {
        var problems = (schema.object?.members ?? []).flatMap {
            self.problems(of: value, by: $0.name, $0.value, at: place)
        }
        if schema["additionalProperties"] == .bool(false), let object = value.object {
            let known = schema["properties"]?.object?.members.map(\.name) ?? []
            problems += object.members.filter { !known.contains($0.name) }.map { "\(place) may not have \($0.name)" }
        }
        return problems
    }

    private func problems(of value: JSONValue, by keyword: String, _ rule: JSONValue, at place: String) -> [String] {
        switch keyword {
        case "$schema", "title", "description", "$defs": return []
        // Checked together with the properties.
        case "additionalProperties" where rule == .bool(false): return []
        case "minItems": return (value.array?.count ?? .max) >= rule.integer ?? .max ? [] : ["\(place) is too short"]
        case "maxItems": return (value.array?.count ?? 0) <= rule.integer ?? 0 ? [] : ["\(place) is too long"]
        case "$ref":
            let name = rule.string?.split(separator: "/").last.map(String.init) ?? ""
            return problems(of: value, by: definitions[name] ?? .null, at: place)
        case "type":
            let types = rule.array?.compactMap(\.string) ?? [rule.string ?? ""]
            return types.contains { isOf($0, value) } ? [] : ["\(place) is none of \(types)"]
        case "const": return value == rule ? [] : ["\(place) is not the constant"]
        case "enum": return rule.array?.contains(value) == true ? [] : ["\(place) is none of the values"]
        case "minLength": return length(value) >= (rule.integer ?? 0) ? [] : ["\(place) is too short"]
        case "maxLength": return length(value) <= rule.integer ?? .max ? [] : ["\(place) is too long"]
        case "minimum": return (value.integer ?? .max) >= rule.integer ?? .max ? [] : ["\(place) is too small"]
        case "maximum": return (value.integer ?? .min) <= rule.integer ?? .min ? [] : ["\(place) is too large"]
        case "pattern":
            guard let text = value.string else { return [] }
            let pattern = rule.string.flatMap { try? Regex($0) }
            return pattern.flatMap { text.firstMatch(of: $0) } == nil ? ["\(place) does not match"] : []
        case "required":
            guard let object = value.object else { return [] }
            return (rule.array ?? []).compactMap(\.string).filter { object[$0] == nil }.map { "\(place) lacks \($0)" }
        case "properties":
            guard let object = value.object else { return [] }
            return (rule.object?.members ?? []).flatMap { member in
                object[member.name].map { problems(of: $0, by: member.value, at: "\(place).\(member.name)") } ?? []
            }
        case "items":
            return (value.array ?? []).enumerated().flatMap { index, element in
                problems(of: element, by: rule, at: "\(place)[\(index)]")
            }
        case "oneOf":
            let fitting = (rule.array ?? []).filter { problems(of: value, by: $0, at: place).isEmpty }
            return fitting.count == 1 ? [] : ["\(place) fits \(fitting.count) of the forms"]
        default: return ["\(place): the schema uses \(keyword), which this test does not support"]
        }
    }

    private func length(_ value: JSONValue) -> Int64 { value.string.map { Int64($0.unicodeScalars.count) } ?? .max }

    private func isOf(_ type: String, _ value: JSONValue) -> Bool {
        switch (type, value) {
        case ("null", .null), ("boolean", .bool), ("integer", .integer), ("string", .string), ("array", .array),
            ("object", .object):
            true
        default: false
        }
    }
}
