// The JSON rules of payloads: what Apple signs, and the body it comes in.

import JSON

/// Readers disagree on what the second of two equal members means, on byte order marks and on halves of surrogate pairs; a
/// payload that one reads so and another so must not be signed for. All of that is refused, by `JSONDocument` itself.
enum PayloadJSON {
    /// The outermost object is 1. Apple's own nest 5 deep.
    static let limitDepth = 16

    static func document(maxBytes: Int) -> JSONDocument {
        var limits = JSONLimits()
        limits.depth = limitDepth
        limits.bytes = maxBytes
        return JSONDocument(limits: limits)
    }

    /// - Parameter place: what is read, for the detail.
    static func read(
        _ bytes: Span<UInt8>, into document: inout JSONDocument, _ place: StaticString
    ) throws(Rejection) {
        do throws(JSONFault) {
            try document.read(bytes)
        } catch {
            // The cause alone: descriptions of faults quote names from the document.
            throw Rejection(.malformed, "\(place): no JSON as payloads have it (\(error.cause.rawValue))")
        }
        guard document.kind(of: document.root) == .object else {
            throw Rejection(.malformed, "\(place): no JSON object")
        }
    }
}

extension JSONDocument {
    /// nil when it is absent or null, which Apple's payloads use alike.
    borrowing func value(_ name: StaticString, of object: Value) -> Value? {
        guard let member = member(name, of: object), kind(of: member.value) != .null else { return nil }
        return member.value
    }

    borrowing func text(_ name: StaticString, of object: Value) -> String? {
        guard let value = value(name, of: object), let bytes = string(value) else { return nil }
        return bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }

    /// A copy of a string without its escapes; nil when the value is none.
    borrowing func bytes(of value: Value) -> [UInt8]? {
        guard let text = string(value) else { return nil }
        return text.withUnsafeBufferPointer { Array($0) }
    }

    /// A copy of the value as it was written.
    borrowing func rawBytes(of value: Value) -> [UInt8] { raw(value).withUnsafeBufferPointer { Array($0) } }

    borrowing func integer(_ name: StaticString, of object: Value) -> Int64? {
        value(name, of: object).flatMap { integer($0) }
    }

    /// Whether the member is a string of exactly these bytes.
    borrowing func has(_ name: StaticString, of object: Value, equalTo text: StaticString) -> Bool {
        guard let value = value(name, of: object), let bytes = string(value) else { return false }
        return bytes.withUnsafeBufferPointer { bytes in
            text.withUTF8Buffer { bytes.elementsEqual($0) }
        }
    }
}

/// Looks at every byte, in blocks of the machine's width: headers are compared for every payload, and hardly ever differ.
func areEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
    guard left.count == right.count else { return false }
    return left.withUnsafeBufferPointer { left in
        right.withUnsafeBufferPointer { right in
            var difference: UInt8 = 0
            for index in 0..<left.count { difference |= left[index] ^ right[index] }
            return difference == 0
        }
    }
}
