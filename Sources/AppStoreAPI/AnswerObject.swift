// Reads the members of answers; members that nobody knows are passed over.

internal import JSON

/// Why an answer of success cannot be used. Names members, never their values.
struct UnreadableAnswer: Error, Equatable { let words: String }

/// An answer that is a JSON object.
protocol ReadableAnswer: Sendable {
    init(_ answer: AnswerObject) throws(UnreadableAnswer)
}

/// An object of an answer, and where it stands in it.
struct AnswerObject {
    private let members: JSONObject
    private let place: String

    init(_ body: [UInt8]) throws(UnreadableAnswer) {
        var limits = JSONLimits()
        // The client has counted already.
        limits.bytes = max(limits.bytes, body.count)
        let value: JSONValue
        do throws(JSONFault) {
            value = try JSONValue.read(body, limits: limits)
        } catch {
            // The detail of a fault may quote the document.
            throw UnreadableAnswer(words: "it is no JSON (\(error.cause.rawValue))")
        }
        try self.init(value, place: "it")
    }

    private init(_ value: JSONValue, place: String) throws(UnreadableAnswer) {
        guard let object = value.object else {
            throw UnreadableAnswer(words: "\(place) is \(value.kindInWords), not an object")
        }
        members = object
        self.place = place
    }

    /// nil: it is not there, or null.
    func optional<Value>(
        _ name: String, _ read: KeyPath<JSONValue, Value?>
    ) throws(UnreadableAnswer) -> Value? {
        guard let value = members[name], value != .null else { return nil }
        guard let content = value[keyPath: read] else {
            throw UnreadableAnswer(words: "\(name) of \(place) is \(value.kindInWords)")
        }
        return content
    }

    func required<Value>(
        _ name: String, _ read: KeyPath<JSONValue, Value?>
    ) throws(UnreadableAnswer) -> Value {
        guard let content = try optional(name, read) else {
            throw UnreadableAnswer(words: "\(place) has no \(name)")
        }
        return content
    }

    /// None when the member is not there.
    func objects<Element>(
        _ name: String, _ make: (AnswerObject) throws(UnreadableAnswer) -> Element
    ) throws(UnreadableAnswer) -> [Element] {
        var elements: [Element] = []
        for (index, value) in (try optional(name, \.array) ?? []).enumerated() {
            elements.append(try make(try AnswerObject(value, place: "\(name)[\(index)]")))
        }
        return elements
    }

    /// None when the member is not there.
    func strings(_ name: String) throws(UnreadableAnswer) -> [String] {
        var strings: [String] = []
        for (index, value) in (try optional(name, \.array) ?? []).enumerated() {
            guard let string = value.string else {
                throw UnreadableAnswer(words: "\(name)[\(index)] is \(value.kindInWords)")
            }
            strings.append(string)
        }
        return strings
    }
}
