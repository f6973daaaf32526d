// Writes a document as bytes, member after member, without building a tree first.

/// Misuse, such as a value without a name inside an object, is a programming error and traps.
public struct JSONWriter {
    private enum Container { case array, object }

    public private(set) var bytes: [UInt8] = []
    /// The innermost open container. The calls that write the outer ones remember them, so no array is needed.
    private var innermost: Container?
    private var needsComma = false
    private var hasName = false

    /// - Parameter capacity: the expected number of bytes; it saves moving the document while it grows.
    public init(capacity: Int = 0) {
        bytes.reserveCapacity(capacity)
    }

    /// Empties it. It keeps its memory for the next document.
    public mutating func removeAll() {
        precondition(innermost == nil, "all containers are closed")
        bytes.removeAll(keepingCapacity: true)
        needsComma = false
    }

    public mutating func object(_ body: (inout JSONWriter) throws -> Void) rethrows {
        try container(.object, UInt8(ascii: "{"), UInt8(ascii: "}"), body)
    }

    /// An object whose members are JSON already: `"name":value`, separated by commas; the caller must make sure of that.
    public mutating func object(of members: UnsafeBufferPointer<UInt8>) {
        object { json in
            json.append(members)
            json.needsComma = true
        }
    }

    public mutating func array(_ body: (inout JSONWriter) throws -> Void) rethrows {
        try container(.array, UInt8(ascii: "["), UInt8(ascii: "]"), body)
    }

    /// Writes the name of the member whose value follows. It must not need escaping: half of all written text is names,
    /// and checking each of them again takes long.
    public mutating func name(_ name: StaticString) {
        let comma = beginName()
        let name = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        append(atMost: name.count + 4) { writeName(name, comma: comma, to: $0) }
        needsComma = false
        hasName = true
    }

    /// The same for a name that is not a constant.
    public mutating func name(text name: String) {
        if beginName() { bytes.append(UInt8(ascii: ",")) }
        quote(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
        hasName = true
    }

    /// - Returns: whether a comma comes first.
    private func beginName() -> Bool {
        precondition(innermost == .object && !hasName, "a name must be in an object, before its value")
        return needsComma
    }

    public mutating func string(_ value: String) {
        beginValue()
        quote(value)
    }

    /// A text as UTF-8 bytes; the caller must make sure that they are valid.
    public mutating func string(utf8 value: [UInt8]) {
        beginValue()
        quote(value.span)
    }

    public mutating func string(utf8 value: UnsafeBufferPointer<UInt8>) {
        beginValue()
        quote(value)
    }

    /// Inlined, so that the digits are not written by generic code.
    @inlinable public mutating func integer(_ value: some BinaryInteger) {
        decimal(isNegative: value < 0, UInt64(value.magnitude))
    }

    @usableFromInline mutating func decimal(isNegative: Bool, _ magnitude: UInt64) {
        beginValue()
        append(atMost: decimalBytes) { writeDecimal(isNegative: isNegative, magnitude, to: $0) }
    }

    public mutating func bool(_ value: Bool) { word(value ? "true" : "false") }
    public mutating func null() { word("null") }

    // MARK: Members. Each is written in one piece, because making room takes longer than writing.

    /// nil is null.
    public mutating func member(_ name: StaticString, _ value: String?) {
        guard let value else { return member(name, word: "null") }
        // `nil` is returned for a string without contiguous bytes (no string made on Linux is).
        if value.utf8.withContiguousStorageIfAvailable({ member(name, utf8: $0) }) != nil { return }
        self.name(name)
        string(value)
    }

    @inlinable public mutating func member(_ name: StaticString, _ value: some BinaryInteger) {
        member(name, isNegative: value < 0, UInt64(value.magnitude))
    }

    public mutating func member(_ name: StaticString, _ value: Bool) { member(name, word: value ? "true" : "false") }

    /// nil is null.
    @inlinable public mutating func member(_ name: StaticString, orNull value: (some BinaryInteger)?) {
        if let value { member(name, value) } else { member(name, word: "null") }
    }

    /// nil is null.
    public mutating func member(_ name: StaticString, orNull value: Bool?) {
        if let value { member(name, value) } else { member(name, word: "null") }
    }

    /// nil is null.
    public mutating func member(_ name: StaticString, utf8 value: [UInt8]?) {
        guard let value else { return member(name, word: "null") }
        value.withUnsafeBufferPointer { member(name, utf8: $0) }
    }

    /// nil is null.
    public mutating func member(_ name: StaticString, utf8 value: UnsafeBufferPointer<UInt8>?) {
        guard let value else { return member(name, word: "null") }
        if Self.needsEscape(value) {
            self.name(name)
            string(utf8: value)
        } else {
            member(name, atMost: value.count + 2) { writeQuoted(value, to: $0) }
        }
    }

    @usableFromInline mutating func member(_ name: StaticString, isNegative: Bool, _ magnitude: UInt64) {
        member(name, atMost: decimalBytes) { writeDecimal(isNegative: isNegative, magnitude, to: $0) }
    }

    @usableFromInline mutating func member(_ name: StaticString, word: StaticString) {
        let word = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        member(name, atMost: word.count) { place in
            copy(word, to: place)
            return word.count
        }
    }

    @inline(__always) private mutating func member(
        _ name: StaticString, atMost limit: Int, _ write: (UnsafeMutablePointer<UInt8>) -> Int
    ) {
        let comma = beginName()
        let name = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        append(atMost: name.count + 4 + limit) { place in
            let start = writeName(name, comma: comma, to: place)
            return start + write(place + start)
        }
        needsComma = true
    }

    /// Writes a value that is JSON already, unchanged; the caller must make sure that it is one value.
    public mutating func json(_ value: [UInt8]) {
        beginValue()
        bytes.append(contentsOf: value)
    }

    public mutating func json(_ value: UnsafeBufferPointer<UInt8>) {
        beginValue()
        append(value)
    }

    /// The same as a member; nil becomes null.
    public mutating func member(_ name: StaticString, json value: [UInt8]?) {
        self.name(name)
        if let value { json(value) } else { null() }
    }

    /// A tree as it was read: numbers keep their text.
    public mutating func value(_ value: JSONValue) {
        switch value {
        case .null: null()
        case .bool(let value): bool(value)
        case .integer(let value): integer(value)
        case .number(let text):
            beginValue()
            bytes.append(contentsOf: text.utf8)
        case .string(let value): string(value)
        case .array(let elements): array { for element in elements { $0.value(element) } }
        case .object(let object):
            self.object {
                for member in object.members {
                    $0.name(text: member.name)
                    $0.value(member.value)
                }
            }
        }
    }

    private mutating func container(
        _ kind: Container, _ opening: UInt8, _ closing: UInt8, _ body: (inout JSONWriter) throws -> Void
    ) rethrows {
        beginValue()
        bytes.append(opening)
        let outer = innermost
        innermost = kind
        needsComma = false
        try body(&self)
        precondition(!hasName, "a name without a value")
        innermost = outer
        bytes.append(closing)
        needsComma = true
    }

    private mutating func word(_ word: StaticString) {
        beginValue()
        append(UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }

    private mutating func beginValue() {
        precondition(innermost != .object || hasName, "a value in an object needs a name")
        precondition(innermost != nil || bytes.isEmpty, "a document is one value")
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
        hasName = false
    }

    /// Escapes only what JSON demands: quotation mark, backslash, control characters. Everything else stays UTF-8.
    private mutating func quote(_ text: String) {
        // Nearly always nothing needs escaping, and the text is copied in one piece. `nil` is returned for a string
        // without contiguous bytes (no string made on Linux is).
        if text.utf8.withContiguousStorageIfAvailable({ quote($0) }) != nil { return }
        bytes.append(UInt8(ascii: "\""))
        escape(text.utf8)
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func quote(_ text: Span<UInt8>) { text.withUnsafeBufferPointer { quote($0) } }

    private mutating func quote(_ text: UnsafeBufferPointer<UInt8>) {
        if Self.needsEscape(text) {
            bytes.append(UInt8(ascii: "\""))
            escape(text)
            bytes.append(UInt8(ascii: "\""))
        } else {
            append(atMost: text.count + 2) { writeQuoted(text, to: $0) }
        }
    }

    /// Reserves space once, and lets `write` fill it. It returns how many bytes it has written.
    @inline(__always) private mutating func append(
        atMost limit: Int, _ write: (UnsafeMutablePointer<UInt8>) -> Int
    ) {
        bytes.append(addingCapacity: limit) { output in
            output.withUnsafeMutableBufferPointer { memory, count in
                guard let start = memory.baseAddress else { return }
                count += write(start + count)
            }
        }
    }

    private mutating func append(_ text: UnsafeBufferPointer<UInt8>) {
        append(atMost: text.count) { place in
            copy(text, to: place)
            return text.count
        }
    }

    /// Whether any byte needs escaping. Checks eight at a time: names and texts are most of what is written.
    fileprivate static func needsEscape(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        let bytes = UnsafeRawBufferPointer(text)
        let (ones, tops) = (0x0101_0101_0101_0101 as UInt64, 0x8080_8080_8080_8080 as UInt64)
        /// Sets the top bit of each byte that is zero; perhaps also of bytes after the first one.
        func zeros(_ word: UInt64) -> UInt64 { (word &- ones) & ~word & tops }
        func isMarked(at place: Int) -> Bool {
            let word = bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self)
            let isBelowSpace = (word &- ones &* 0x20) & ~word & tops
            let isMark =
                zeros(word ^ ones &* UInt64(UInt8(ascii: "\""))) | zeros(word ^ ones &* UInt64(UInt8(ascii: "\\")))
            return isBelowSpace | isMark != 0
        }
        if bytes.count < 8 { return text.contains { needsEscape($0) } }
        // The last eight bytes overlap with those before.
        let last = bytes.count - 8
        var place = 0
        while place < last {
            if isMarked(at: place) { return true }
            place += 8
        }
        return isMarked(at: last)
    }

    private static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    private mutating func escape(_ text: some Sequence<UInt8>) {
        for byte in text {
            switch byte {
            case UInt8(ascii: "\""): bytes.append(contentsOf: "\\\"".utf8)
            case UInt8(ascii: "\\"): bytes.append(contentsOf: "\\\\".utf8)
            case UInt8(ascii: "\n"): bytes.append(contentsOf: "\\n".utf8)
            case UInt8(ascii: "\r"): bytes.append(contentsOf: "\\r".utf8)
            case UInt8(ascii: "\t"): bytes.append(contentsOf: "\\t".utf8)
            case 0..<0x20:
                bytes.append(contentsOf: byte < 0x10 ? "\\u000".utf8 : "\\u00".utf8)
                bytes.append(contentsOf: String(byte, radix: 16).utf8)
            default: bytes.append(byte)
            }
        }
    }
}

// MARK: Pieces. Each returns how many bytes it has written.

/// Nearly all texts are short: two words that may overlap are copied faster than by a call.
@inline(__always) private func copy(_ text: UnsafeBufferPointer<UInt8>, to place: UnsafeMutablePointer<UInt8>) {
    guard let start = text.baseAddress else { return }
    let (from, to) = (UnsafeRawPointer(start), UnsafeMutableRawPointer(place))
    let count = text.count
    func copyTwo<Word: BitwiseCopyable>(_: Word.Type) {
        let last = count - MemoryLayout<Word>.size
        let words = (
            from.loadUnaligned(as: Word.self), from.loadUnaligned(fromByteOffset: last, as: Word.self)
        )
        to.storeBytes(of: words.0, as: Word.self)
        to.storeBytes(of: words.1, toByteOffset: last, as: Word.self)
    }
    switch count {
    case 8...16: copyTwo(UInt64.self)
    case 17...32: copyTwo(SIMD16<UInt8>.self)
    case 4...7: copyTwo(UInt32.self)
    case 0...3: for index in 0..<count { place[index] = start[index] }
    default: place.update(from: start, count: count)
    }
}

@inline(__always) private func writeQuoted(
    _ text: UnsafeBufferPointer<UInt8>, to place: UnsafeMutablePointer<UInt8>
) -> Int {
    place[0] = UInt8(ascii: "\"")
    copy(text, to: place + 1)
    place[text.count + 1] = UInt8(ascii: "\"")
    return text.count + 2
}

@inline(__always) private func writeName(
    _ name: UnsafeBufferPointer<UInt8>, comma: Bool, to place: UnsafeMutablePointer<UInt8>
) -> Int {
    assert(!JSONWriter.needsEscape(name), "use name(text:) for a name that needs escaping")
    // Without a comma, the name overwrites this byte.
    place[0] = UInt8(ascii: ",")
    let start = comma ? 1 : 0
    let end = start + writeQuoted(name, to: place + start)
    place[end] = UInt8(ascii: ":")
    return end + 1
}
