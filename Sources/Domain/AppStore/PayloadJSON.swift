// The JSON rules for payloads that Apple signs, and for the body that contains them.

import JSON
import Records

/// JSON readers disagree about repeated members, byte order marks and halves of surrogate pairs. A payload that two
/// readers would understand differently must not be accepted. `JSONDocument` itself refuses all of these.
enum PayloadJSON {
    /// The outermost object has depth 1. Apple's own payloads nest 5 deep.
    static let limitDepth = 16

    static func document(maxBytes: Int) -> JSONDocument {
        var limits = JSONLimits()
        limits.depth = limitDepth
        limits.bytes = maxBytes
        return JSONDocument(limits: limits)
    }

    /// - Parameter place: what is being read, for the detail.
    static func read(
        _ bytes: Span<UInt8>, into document: inout JSONDocument, _ place: StaticString
    ) throws(Rejection) {
        do throws(JSONFault) {
            try document.read(bytes)
        } catch {
            // Only the cause: descriptions of faults quote names from the document.
            throw Rejection(.malformed, "\(place): not the strict JSON of payloads (\(error.cause.rawValue))")
        }
        guard document.kind(of: document.root) == .object else {
            throw Rejection(.malformed, "\(place): not a JSON object")
        }
    }
}

extension JSONDocument {
    /// nil if the member is absent or null, which Apple's payloads use alike.
    borrowing func value(_ name: StaticString, of object: Value) -> Value? {
        guard let member = member(name, of: object), kind(of: member.value) != .null else { return nil }
        return member.value
    }

    borrowing func text(_ name: StaticString, of object: Value) -> String? {
        guard let value = value(name, of: object), let bytes = string(value) else { return nil }
        return bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }

    /// A copy of a string without its escapes; nil if the value is not a string.
    borrowing func bytes(of value: Value) -> [UInt8]? {
        guard let text = string(value) else { return nil }
        return text.withUnsafeBufferPointer { Array($0) }
    }

    /// A copy of the value as it is written.
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

extension JSONDocument {
    borrowing func value(_ name: MemberName, of object: Value) -> Value? { value(name.text, of: object) }
    borrowing func text(_ name: MemberName, of object: Value) -> String? { text(name.text, of: object) }
    borrowing func integer(_ name: MemberName, of object: Value) -> Int64? { integer(name.text, of: object) }
}

/// Compares all bytes, in blocks of the machine's width: headers are compared for every payload and rarely differ.
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
