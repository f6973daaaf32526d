// Reads a document into values, within limits, and says where it is wrong.

internal import CSIMDJSON

/// Bounds on what is read.
public struct JSONLimits: Sendable {
    /// Ten times the largest document read today (librdkafka's statistics of a client with 100 partitions); also at most
    /// what the C face counts in 32 bits.
    public var bytes = 1 << 20
    /// Statistics nest 5 deep. The reader recurses, on threads with 1 MiB of stack. At most 1000.
    public var depth = 64
    /// Two members of one name: readers disagree on which counts, so they are refused unless the caller wants to see them
    /// (`JSONObject.repeatedNames`).
    public var refusesRepeatedNames = true

    public init() {}
}

/// Owns a simdjson parser and its buffers, to be used for one document after another. One thread at a time.
public struct JSONReader: ~Copyable {
    private let parser: OpaquePointer
    private let limits: JSONLimits

    public init(limits: JSONLimits = JSONLimits()) {
        precondition((1...1000).contains(limits.depth) && limits.bytes < Int(UInt32.max), "limits of the C face")
        guard let parser = perennial_json_parser_create(UInt32(limits.depth)) else {
            // A few hundred bytes; nothing can go on without them.
            fatalError("no memory for a JSON parser")
        }
        self.parser = parser
        self.limits = limits
    }

    deinit { perennial_json_parser_destroy(parser) }

    public mutating func read(_ document: [UInt8]) throws(JSONFault) -> JSONValue {
        guard document.count <= limits.bytes else { throw JSONFault(.tooLarge, detail: "limit \(limits.bytes) bytes") }
        let result = document.withUnsafeBufferPointer { perennial_json_parse(parser, $0.baseAddress, $0.count) }
        guard result == PERENNIAL_JSON_OK else { throw fault(result, in: document) }
        var count = 0
        let tokens = UnsafeBufferPointer(start: perennial_json_tokens(parser, &count), count: count)
        var builder = TreeBuilder(tokens: tokens, document: document, refusesRepeatedNames: limits.refusesRepeatedNames)
        return try builder.value()
    }

    private func fault(_ result: perennial_json_result, in document: [UInt8]) -> JSONFault {
        let said = perennial_json_fault_offset(parser)
        let offset: Int? = said < 0 ? nil : Int(said)
        return switch result {
        case PERENNIAL_JSON_EMPTY: JSONFault(.empty)
        case PERENNIAL_JSON_NOT_UTF8: JSONFault(.notUTF8, offset: firstByteThatIsNotUTF8(document), in: document)
        case PERENNIAL_JSON_UNCLOSED_STRING: JSONFault(.unclosedString)
        case PERENNIAL_JSON_CONTROL_CHARACTER: JSONFault(.controlCharacter)
        case PERENNIAL_JSON_BAD_STRING: JSONFault(.badString, offset: offset, in: document)
        case PERENNIAL_JSON_BAD_NUMBER: JSONFault(.badNumber, offset: offset, in: document)
        case PERENNIAL_JSON_BAD_WORD: JSONFault(.badWord, offset: offset, in: document)
        case PERENNIAL_JSON_INCOMPLETE: JSONFault(.incomplete)
        case PERENNIAL_JSON_TRAILING: JSONFault(.trailing, offset: offset, in: document)
        case PERENNIAL_JSON_TOO_DEEP:
            JSONFault(.tooDeep, offset: offset, in: document, detail: "limit \(limits.depth)")
        case PERENNIAL_JSON_NO_MEMORY: JSONFault(.noMemory)
        default: JSONFault(.badStructure, offset: offset, in: document)
        }
    }
}

extension JSONValue {
    /// Reads one document. For many documents keep a `JSONReader`.
    public static func read(_ document: [UInt8], limits: JSONLimits = JSONLimits()) throws(JSONFault) -> JSONValue {
        var reader = JSONReader(limits: limits)
        return try reader.read(document)
    }
}

private func firstByteThatIsNotUTF8(_ document: [UInt8]) -> Int? {
    do {
        _ = try UTF8Span(validating: document.span)
        return nil
    } catch {
        return error.byteOffsets.lowerBound
    }
}

/// Builds the tree from the tokens. They are balanced and their text is valid UTF-8: simdjson has checked both.
private struct TreeBuilder {
    let tokens: UnsafeBufferPointer<perennial_json_token>
    let document: [UInt8]
    let refusesRepeatedNames: Bool
    private var next = 0

    init(tokens: UnsafeBufferPointer<perennial_json_token>, document: [UInt8], refusesRepeatedNames: Bool) {
        self.tokens = tokens
        self.document = document
        self.refusesRepeatedNames = refusesRepeatedNames
    }

    mutating func value() throws(JSONFault) -> JSONValue {
        let token = take()
        return switch token.kind {
        case PERENNIAL_JSON_NULL: .null
        case PERENNIAL_JSON_FALSE: .bool(false)
        case PERENNIAL_JSON_TRUE: .bool(true)
        case PERENNIAL_JSON_NUMBER: number(text(token))
        case PERENNIAL_JSON_STRING: .string(text(token))
        case PERENNIAL_JSON_ARRAY_START: .array(try elements())
        default: .object(try members())
        }
    }

    private mutating func elements() throws(JSONFault) -> [JSONValue] {
        var elements: [JSONValue] = []
        while tokens[next].kind != PERENNIAL_JSON_ARRAY_END { elements.append(try value()) }
        _ = take()
        return elements
    }

    private mutating func members() throws(JSONFault) -> JSONObject {
        var members: [JSONObject.Member] = []
        var names = Set<[UInt8]>()
        while tokens[next].kind != PERENNIAL_JSON_OBJECT_END {
            let token = take()
            let name = text(token)
            if refusesRepeatedNames, !names.insert(Array(name.utf8)).inserted {
                throw JSONFault(
                    .repeatedName, offset: Int(token.offset), in: document, detail: "\"\(name.prefix(60))\"")
            }
            members.append(JSONObject.Member(name: name, value: try value()))
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

    /// "-0" stays text: as an integer its sign would be lost.
    private func number(_ text: String) -> JSONValue {
        if text != "-0", let integer = Int64(text) { .integer(integer) } else { .number(text) }
    }
}
