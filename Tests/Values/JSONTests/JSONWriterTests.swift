import Foundation
import Testing

@testable import JSON

private func text(_ write: (inout JSONWriter) -> Void) -> String {
    var writer = JSONWriter()
    write(&writer)
    return String(decoding: writer.bytes, as: UTF8.self)
}

@Suite struct `The JSON writer` {
    @Test func `puts commas and colons where they belong`() {
        let written = text {
            $0.object {
                $0.member("a", 1)
                $0.name("b")
                $0.array {
                    $0.integer(-2)
                    $0.object { _ in }
                    $0.array { _ in }
                    $0.null()
                }
                $0.member("c", true)
                $0.member("d", nil)
                $0.member("e", "f")
            }
        }
        #expect(written == #"{"a":1,"b":[-2,{},[],null],"c":true,"d":null,"e":"f"}"#)
    }

    /// First in an object, then behind a comma.
    @Test func `writes a member as it writes its name and its value`() {
        let values: [String?] = [
            nil, "", "a", "1234567", "12345678", "Zoë 😀", "a\"b\\\n", String(repeating: "x", count: 5_000),
        ]
        for value in values {
            let bytes = value.map { Array($0.utf8) }
            let places = text {
                $0.object { json in
                    for _ in 0..<2 {
                        if let bytes {
                            bytes.withUnsafeBufferPointer { json.member("name", utf8: $0) }
                        } else {
                            json.member("name", utf8: nil as UnsafeBufferPointer<UInt8>?)
                        }
                    }
                }
            }
            expectSame({ $0.member("name", value) }) { if let value { $0.string(value) } else { $0.null() } }
            expectSame({ $0.member("name", utf8: bytes) }) { if let value { $0.string(value) } else { $0.null() } }
            #expect(places == twice { $0.member("name", value) })
        }
        for number in [0, 7, -1, 10, 99_999_999, 100_000_000, -1_771_000_000_000, .max, .min] as [Int64] {
            expectSame({ $0.member("name", number) }) { $0.integer(number) }
            expectSame({ $0.member("name", orNull: number) }) { $0.integer(number) }
        }
        for flag in [true, false] {
            expectSame({ $0.member("name", flag) }) { $0.bool(flag) }
            expectSame({ $0.member("name", orNull: flag) }) { $0.bool(flag) }
        }
        expectSame({ $0.member("name", orNull: Int64?.none) }) { $0.null() }
        expectSame({ $0.member("name", orNull: Bool?.none) }) { $0.null() }
    }

    private func expectSame(
        _ member: (inout JSONWriter) -> Void, _ value: (inout JSONWriter) -> Void,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let parts = twice { json in
            json.name("name")
            value(&json)
        }
        #expect(twice(member) == parts, sourceLocation: sourceLocation)
    }

    private func twice(_ member: (inout JSONWriter) -> Void) -> String {
        text { writer in
            writer.object { json in
                member(&json)
                member(&json)
            }
        }
    }

    @Test func `writes another document into the same memory`() {
        var writer = JSONWriter()
        for number in 0..<3 {
            writer.removeAll()
            writer.object { $0.member("a", number) }
            #expect(String(decoding: writer.bytes, as: UTF8.self) == "{\"a\":\(number)}")
        }
    }

    @Test func `writes texts, values and members that lie elsewhere`() {
        let written = text { writer in
            writer.array { list in
                Array("a\"\n".utf8).withUnsafeBufferPointer { list.string(utf8: $0) }
                Array(#"{"b":[]}"#.utf8).withUnsafeBufferPointer { list.json($0) }
                Array(#""c":1,"d":2"#.utf8).withUnsafeBufferPointer { list.object(of: $0) }
                list.object { object in
                    Array("f".utf8).withUnsafeBufferPointer { object.member("e", utf8: $0) }
                    object.member("g", utf8: nil as UnsafeBufferPointer<UInt8>?)
                }
            }
        }
        #expect(written == #"["a\"\n",{"b":[]},{"c":1,"d":2},{"e":"f","g":null}]"#)
    }

    @Test func `escapes what JSON demands and nothing else`() {
        #expect(
            text { $0.string("\"\\\n\r\t\u{0}\u{1f}/é😀\u{2028}") } == "\"\\\"\\\\\\n\\r\\t\\u0000\\u001f/é😀\u{2028}\"")
    }

    @Test func `escapes a name that was not known before`() {
        let written = text {
            $0.object {
                $0.name(text: "a\"b"); $0.null()
            }
        }
        #expect(written == #"{"a\"b":null}"#)
    }

    /// The writer examines texts eight bytes at a time.
    @Test func `finds what is to be escaped at every place, as text and as bytes`() {
        for length in 1...20 {
            for place in 0..<length {
                for byte in UInt8.min..<0x80 {
                    var bytes = [UInt8](repeating: UInt8(ascii: "z"), count: length)
                    bytes[place] = byte
                    let isSpecial = byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
                    let written = text { $0.string(utf8: bytes) }
                    #expect(written == text { $0.string(String(decoding: bytes, as: UTF8.self)) })
                    #expect((written.utf8.count > length + 2) == isSpecial, "\(bytes)")
                }
            }
        }
        #expect(text { $0.integer(Int64.min) } == "-9223372036854775808")
        #expect(text { $0.integer(UInt64.max) } == "18446744073709551615")
    }

    /// Short texts are copied as two words, which have other sizes for other lengths.
    @Test func `copies a text of any length`() {
        for length in 0...80 {
            // Other bytes for each length: memory may still have those of the last one.
            let bytes = (0..<length).map { UInt8(ascii: "#") + UInt8((5 * length + $0) % 57) }
            #expect(text { $0.string(utf8: bytes) } == "\"" + String(decoding: bytes, as: UTF8.self) + "\"")
        }
    }

    @Test func `writes every character so that another reader gets it back`() throws {
        let all = String(String.UnicodeScalarView((0...0x2ff).map { Unicode.Scalar($0)! }))
        var writer = JSONWriter()
        writer.array { $0.string(all) }
        let back = try #require(JSONSerialization.jsonObject(with: Data(writer.bytes)) as? [String])
        #expect(back[0].utf8.elementsEqual(all.utf8))
    }

    @Test func `writes the extremes of integers exactly`() {
        #expect(text { $0.integer(Int64.min) } == "-9223372036854775808")
        #expect(text { $0.integer(UInt64.max) } == "18446744073709551615")
    }

    @Test func `stops a value without a name`() async {
        await #expect(processExitsWith: .failure) {
            var writer = JSONWriter()
            writer.object { $0.integer(1) }
        }
    }

    @Test func `stops a second document`() async {
        await #expect(processExitsWith: .failure) {
            var writer = JSONWriter()
            writer.integer(1)
            writer.integer(2)
        }
    }
}
