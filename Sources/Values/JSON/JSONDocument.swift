// Reads a document into a flat list of tokens instead of a tree of values: where reading must not allocate memory, and
// where bytes must be passed on unchanged.

internal import CSIMDJSON

/// Holds one document at a time, in buffers that are reused for the next one. Use it on one thread at a time.
///
/// Places in it (`Value`, `Member`) are numbers. They belong to the document that they came from, and are not valid
/// after the next `read`. The compiler makes sure that spans do not outlive it.
public struct JSONDocument: ~Copyable {
    public enum Kind: Sendable { case null, bool, number, string, array, object }

    /// The place of a value.
    public struct Value: Sendable, Equatable {
        fileprivate let token: Int
    }

    /// The place of a member of an object.
    public struct Member: Sendable, Equatable {
        fileprivate let token: Int
        public var value: Value { Value(token: token + 1) }
    }

    private var parser: JSONParser
    private var tokens = UnsafeBufferPointer<perennial_json_token>(start: nil, count: 0)

    public init(limits: JSONLimits = JSONLimits()) { parser = JSONParser(limits: limits) }

    /// After a failure there is no document: accessing one traps.
    public mutating func read(_ document: Span<UInt8>) throws(JSONFault) {
        tokens = UnsafeBufferPointer(start: nil, count: 0)
        tokens = try parser.parse(document)
    }

    public var root: Value { Value(token: 0) }

    public func kind(of value: Value) -> Kind {
        switch tokens[value.token].kind {
        case PERENNIAL_JSON_NULL: .null
        case PERENNIAL_JSON_FALSE, PERENNIAL_JSON_TRUE: .bool
        case PERENNIAL_JSON_NUMBER: .number
        case PERENNIAL_JSON_STRING: .string
        case PERENNIAL_JSON_ARRAY_START: .array
        default: .object
        }
    }

    /// nil if the value is not a bool.
    public func bool(_ value: Value) -> Bool? {
        switch tokens[value.token].kind {
        case PERENNIAL_JSON_TRUE: true
        case PERENNIAL_JSON_FALSE: false
        default: nil
        }
    }

    /// Without escapes. nil if the value is not a string.
    @_lifetime(borrow self)
    public func string(_ value: Value) -> Span<UInt8>? {
        guard tokens[value.token].kind == PERENNIAL_JSON_STRING else { return nil }
        return bytes(ofToken: value.token)
    }

    /// The same as a copied `String`.
    public func text(_ value: Value) -> String? {
        guard let bytes = string(value) else { return nil }
        return bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }

    /// nil if the value is not a number, has a fraction or an exponent, or does not fit 64 bits.
    public func integer(_ value: Value) -> Int64? {
        guard tokens[value.token].kind == PERENNIAL_JSON_NUMBER else { return nil }
        let text = UnsafeBufferPointer(start: tokens[value.token].bytes, count: Int(tokens[value.token].length))
        guard text[0] == UInt8(ascii: "-") else { return decimalNumber(text).flatMap { Int64(exactly: $0) } }
        guard let magnitude = decimalNumber(UnsafeBufferPointer(rebasing: text[1...])),
            magnitude <= Int64.min.magnitude
        else { return nil }
        return Int64(truncatingIfNeeded: 0 &- magnitude)
    }

    /// The value as it is written, brackets and quotation marks included.
    @_lifetime(borrow self)
    public func raw(_ value: Value) -> Span<UInt8> {
        let range = range(of: value)
        let span = Span(_unsafeStart: parser.text + range.lowerBound, count: range.count)
        return _overrideLifetime(span, borrowing: self)
    }

    /// The range of the value in the document's bytes.
    public func range(of value: Value) -> Range<Int> {
        Int(tokens[value.token].offset)..<Int(tokens[value.token].end)
    }

    /// The range of a member, from its name to the end of its value.
    public func range(of member: Member) -> Range<Int> {
        Int(tokens[member.token].offset)..<range(of: member.value).upperBound
    }

    // MARK: Members and elements, in the order of the document

    /// Compares bytes. If a member occurs twice, the first one counts. nil also if `object` is not an object. Time
    /// grows with the number of members.
    public func member(_ name: StaticString, of object: Value) -> Member? {
        let end = self.end(of: object)
        guard tokens[object.token].kind == PERENNIAL_JSON_OBJECT_START else { return nil }
        var token = object.token + 1
        while token < end {
            if self.name(of: Member(token: token), is: name) { return Member(token: token) }
            token = self.end(of: Value(token: token + 1)) + 1
        }
        return nil
    }

    public func firstMember(of object: Value) -> Member? {
        guard tokens[object.token].kind == PERENNIAL_JSON_OBJECT_START else { return nil }
        return memberAt(object.token + 1)
    }

    public func member(after member: Member) -> Member? { memberAt(end(of: member.value) + 1) }

    @_lifetime(borrow self)
    public func name(of member: Member) -> Span<UInt8> { bytes(ofToken: member.token) }

    public func name(of member: Member, is name: StaticString) -> Bool {
        let count = Int(tokens[member.token].length)
        guard count == name.utf8CodeUnitCount, let bytes = tokens[member.token].bytes else { return false }
        let wanted = name.utf8Start
        for index in 0..<count where bytes[index] != wanted[index] { return false }
        return true
    }

    /// Calls `body` with the name and the value of each member, in the order of the document: one pass for a reader who
    /// wants many of them. Does nothing if `object` is not an object. The name is valid until the next `read`.
    public func forEachMember(of object: Value, _ body: (_ name: UnsafeBufferPointer<UInt8>, _ value: Value) -> Void) {
        guard tokens[object.token].kind == PERENNIAL_JSON_OBJECT_START else { return }
        var token = object.token + 1
        while tokens[token].kind == PERENNIAL_JSON_NAME {
            let name = UnsafeBufferPointer(start: tokens[token].bytes, count: Int(tokens[token].length))
            body(name, Value(token: token + 1))
            token = lastToken(of: token + 1, in: tokens) + 1
        }
    }

    /// The bytes of a string where they lie, without escapes: valid until the next `read`. nil if the value is not a
    /// string.
    public func unsafeString(_ value: Value) -> UnsafeBufferPointer<UInt8>? {
        guard tokens[value.token].kind == PERENNIAL_JSON_STRING else { return nil }
        return UnsafeBufferPointer(start: tokens[value.token].bytes, count: Int(tokens[value.token].length))
    }

    public func firstElement(of array: Value) -> Value? {
        guard tokens[array.token].kind == PERENNIAL_JSON_ARRAY_START else { return nil }
        return elementAt(array.token + 1)
    }

    public func element(after element: Value) -> Value? { elementAt(end(of: element) + 1) }

    private func memberAt(_ token: Int) -> Member? {
        tokens[token].kind == PERENNIAL_JSON_NAME ? Member(token: token) : nil
    }

    private func elementAt(_ token: Int) -> Value? {
        tokens[token].kind == PERENNIAL_JSON_ARRAY_END ? nil : Value(token: token)
    }

    /// The last token of the value.
    private func end(of value: Value) -> Int { lastToken(of: value.token, in: tokens) }

    @_lifetime(borrow self)
    private func bytes(ofToken token: Int) -> Span<UInt8> {
        let buffer = UnsafeBufferPointer(start: tokens[token].bytes, count: Int(tokens[token].length))
        return _overrideLifetime(Span(_unsafeElements: buffer), borrowing: self)
    }
}

private func lastToken(of token: Int, in tokens: UnsafeBufferPointer<perennial_json_token>) -> Int {
    switch tokens[token].kind {
    case PERENNIAL_JSON_ARRAY_START, PERENNIAL_JSON_OBJECT_START: token + Int(tokens[token].length) - 1
    default: token
    }
}
