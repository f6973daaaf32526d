// Reads the members of answers; unknown members are ignored.

internal import JSON

/// Why an answer that reports success cannot be used. Names members, never their values.
struct UnreadableAnswer: Error, Equatable { let words: String }

/// An answer that is a JSON object.
protocol ReadableAnswer: Sendable {
    init(_ answer: AnswerObject) throws(UnreadableAnswer)
}

/// An object of an answer, and its place in the answer.
struct AnswerObject {
    private let members: JSONObject
    private let place: String

    init(_ body: [UInt8]) throws(UnreadableAnswer) {
        var limits = JSONLimits()
        // The client has checked the size already.
        limits.bytes = max(limits.bytes, body.count)
        let value: JSONValue
        do throws(JSONFault) {
            value = try JSONValue.read(body, limits: limits)
        } catch {
            // The detail of a fault may quote the document.
            throw UnreadableAnswer(words: "it is not JSON (\(error.cause.rawValue))")
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

    /// nil: the member is absent or null.
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

    /// Empty if the member is absent.
    func objects<Element>(
        _ name: String, _ make: (AnswerObject) throws(UnreadableAnswer) -> Element
    ) throws(UnreadableAnswer) -> [Element] {
        var elements: [Element] = []
        for (index, value) in (try optional(name, \.array) ?? []).enumerated() {
            elements.append(try make(try AnswerObject(value, place: "\(name)[\(index)]")))
        }
        return elements
    }

    /// Empty if the member is absent.
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
