// Reads a document into values, within limits, and reports where it is wrong.

internal import CSIMDJSON

/// Limits of what is read.
public struct JSONLimits: Sendable {
    /// Ten times the largest document read today (librdkafka's statistics of a client with 100 partitions). It must fit
    /// into 32 bits.
    public var bytes = 1 << 20
    /// Statistics nest 5 deep. Code that builds a tree recurses, on threads with 1 MiB of stack. At most 1000.
    public var depth = 64
    /// Two members with the same name: readers disagree about which one counts, so they are refused unless the caller
    /// wants to see them in `JSONObject.members`.
    public var refusesRepeatedNames = true

    public init() {}
}

/// Reads documents into trees, one after the other. Use it on one thread at a time.
public struct JSONReader: ~Copyable {
    private var parser: JSONParser

    public init(limits: JSONLimits = JSONLimits()) { parser = JSONParser(limits: limits) }

    public mutating func read(_ document: [UInt8]) throws(JSONFault) -> JSONValue {
        var builder = TreeBuilder(tokens: try parser.parse(document.span))
        return builder.value()
    }
}

extension JSONValue {
    /// Reads one document. For many documents keep a `JSONReader`.
    public static func read(_ document: [UInt8], limits: JSONLimits = JSONLimits()) throws(JSONFault) -> JSONValue {
        var reader = JSONReader(limits: limits)
        return try reader.read(document)
    }
}

/// Builds the tree from the tokens. They are balanced and their text is valid UTF-8: simdjson has checked both.
private struct TreeBuilder {
    let tokens: UnsafeBufferPointer<perennial_json_token>
    private var next = 0

    init(tokens: UnsafeBufferPointer<perennial_json_token>) { self.tokens = tokens }

    mutating func value() -> JSONValue {
        let token = take()
        return switch token.kind {
        case PERENNIAL_JSON_NULL: .null
        case PERENNIAL_JSON_FALSE: .bool(false)
        case PERENNIAL_JSON_TRUE: .bool(true)
        case PERENNIAL_JSON_NUMBER: number(text(token))
        case PERENNIAL_JSON_STRING: .string(text(token))
        case PERENNIAL_JSON_ARRAY_START: .array(elements())
        default: .object(members())
        }
    }

    private mutating func elements() -> [JSONValue] {
        var elements: [JSONValue] = []
        while tokens[next].kind != PERENNIAL_JSON_ARRAY_END { elements.append(value()) }
        _ = take()
        return elements
    }

    private mutating func members() -> JSONObject {
        var members: [JSONObject.Member] = []
        while tokens[next].kind != PERENNIAL_JSON_OBJECT_END {
            let name = text(take())
            members.append(JSONObject.Member(name: name, value: value()))
        }
        _ = take()
        return JSONObject(members)
    }

    private mutating func take() -> perennial_json_token {
        defer { next += 1 }
        return tokens[next]
    }

    private func text(_ token: perennial_json_token) -> String {
        String(decoding: UnsafeBufferPointer(start: token.bytes, count: Int(token.length)), as: UTF8.self)
    }

    /// "-0" stays text: an integer would lose its sign.
    private func number(_ text: String) -> JSONValue {
        if text != "-0", let integer = Int64(text) { .integer(integer) } else { .number(text) }
    }
}
