// The owner of a simdjson parser, shared by the readers.

internal import CSIMDJSON

/// Owns a parser and its buffers, which are reused for each document. Use it on one thread at a time.
struct JSONParser: ~Copyable {
    private let parser: OpaquePointer
    let limits: JSONLimits

    init(limits: JSONLimits) {
        precondition((1...1000).contains(limits.depth) && limits.bytes < Int(UInt32.max), "limits of the C face")
        guard perennial_json_works() else {
            fatalError("the installed simdjson reads JSON wrongly; install the version of the build")
        }
        guard let parser = perennial_json_parser_create(UInt32(limits.depth), limits.refusesRepeatedNames) else {
            // A few hundred bytes; nothing can continue without them.
            fatalError("no memory for a JSON parser")
        }
        self.parser = parser
        self.limits = limits
    }

    deinit { perennial_json_parser_destroy(parser) }

    /// The tokens are valid until the next call.
    mutating func parse(_ document: Span<UInt8>) throws(JSONFault) -> UnsafeBufferPointer<perennial_json_token> {
        guard document.count <= limits.bytes else { throw JSONFault(.tooLarge, detail: "limit \(limits.bytes) bytes") }
        let result = document.withUnsafeBufferPointer { perennial_json_parse(parser, $0.baseAddress, $0.count) }
        guard result == PERENNIAL_JSON_OK else { throw fault(result, in: document) }
        return tokens
    }

    private var tokens: UnsafeBufferPointer<perennial_json_token> {
        var count = 0
        let tokens = perennial_json_tokens(parser, &count)
        return UnsafeBufferPointer(start: tokens, count: count)
    }

    /// The document parsed last, unchanged.
    var text: UnsafePointer<UInt8> { perennial_json_text(parser) }

    private func fault(_ result: perennial_json_result, in document: Span<UInt8>) -> JSONFault {
        let said = perennial_json_fault_offset(parser)
        let offset: Int? = said < 0 ? nil : Int(said)
        return switch result {
        case PERENNIAL_JSON_EMPTY: JSONFault(.empty)
        case PERENNIAL_JSON_NOT_UTF8: JSONFault(.notUTF8, offset: firstByteThatIsNotUTF8(document), in: document)
        case PERENNIAL_JSON_UNCLOSED_STRING:
            JSONFault(.unclosedString, offset: StringFaults(in: document).unclosed, in: document)
        case PERENNIAL_JSON_CONTROL_CHARACTER:
            JSONFault(.controlCharacter, offset: StringFaults(in: document).controlCharacter, in: document)
        case PERENNIAL_JSON_BAD_STRING: JSONFault(.badString, offset: offset, in: document)
        case PERENNIAL_JSON_BAD_NUMBER: JSONFault(.badNumber, offset: offset, in: document)
        case PERENNIAL_JSON_BAD_WORD: JSONFault(.badWord, offset: offset, in: document)
        case PERENNIAL_JSON_INCOMPLETE: JSONFault(.incomplete)
        case PERENNIAL_JSON_TRAILING: JSONFault(.trailing, offset: offset, in: document)
        case PERENNIAL_JSON_TOO_DEEP:
            JSONFault(.tooDeep, offset: offset, in: document, detail: "limit \(limits.depth)")
        case PERENNIAL_JSON_REPEATED_NAME:
            JSONFault(.repeatedName, offset: offset, in: document, detail: "\"\(beginning(of: tokens[0]))\"")
        case PERENNIAL_JSON_NO_MEMORY: JSONFault(.noMemory)
        default: JSONFault(.badStructure, offset: offset, in: document)
        }
    }
}

private func beginning(of name: perennial_json_token) -> String {
    String(decoding: UnsafeBufferPointer(start: name.bytes, count: min(Int(name.length), 60)), as: UTF8.self)
}

private func firstByteThatIsNotUTF8(_ document: Span<UInt8>) -> Int? {
    do {
        _ = try UTF8Span(validating: document)
        return nil
    } catch {
        return error.byteOffsets.lowerBound
    }
}

/// Finds faults in strings that simdjson reports without their place.
private struct StringFaults {
    /// The quotation mark that opens the string which is not closed.
    private(set) var unclosed: Int?
    /// The first control character in a string.
    private(set) var controlCharacter: Int?

    init(in document: Span<UInt8>) {
        var index = 0
        while index < document.count {
            switch document[index] {
            // A backslash changes the meaning of the next byte, outside of strings as well: simdjson reads it so.
            case UInt8(ascii: "\\"): index += 1
            case UInt8(ascii: "\""): unclosed = unclosed == nil ? index : nil
            case 0..<0x20 where unclosed != nil && controlCharacter == nil: controlCharacter = index
            default: break
            }
            index += 1
        }
    }
}
