import Testing

@testable import JSON

private func read(_ text: String, limits: JSONLimits = JSONLimits()) throws -> JSONValue {
    try JSONValue.read(Array(text.utf8), limits: limits)
}

private func fault(_ text: String, limits: JSONLimits = JSONLimits()) -> JSONFault? {
    fault(Array(text.utf8), limits: limits)
}

private func fault(_ bytes: [UInt8], limits: JSONLimits = JSONLimits()) -> JSONFault? {
    do {
        _ = try JSONValue.read(bytes, limits: limits)
        return nil
    } catch {
        return error
    }
}

@Suite struct `The JSON reader` {
    @Test func `reads every kind of value, nested, with members in order`() throws {
        let value = try read(#" {"b": [1, -2.50, "x", true, false, null, {}, []], "a": {"c": "d"}} "#)
        let expected = JSONValue.object(
            JSONObject([
                .init(
                    name: "b",
                    value: .array([
                        .integer(1), .number("-2.50"), .string("x"), .bool(true), .bool(false), .null,
                        .object(JSONObject([])), .array([]),
                    ])),
                .init(name: "a", value: .object(JSONObject([.init(name: "c", value: .string("d"))]))),
            ]))
        #expect(value == expected)
    }

    @Test(arguments: ["1", "\"x\"", "true", "null", "-0.5", " 12 "])
    func `reads a lone value`(_ text: String) { #expect(throws: Never.self) { try read(text) } }

    @Test func `keeps whole numbers of 64 bits exactly and every other number as its text`() throws {
        #expect(try read("9223372036854775807") == .integer(.max))
        #expect(try read("-9223372036854775808") == .integer(.min))
        #expect(try read("9223372036854775808") == .number("9223372036854775808"))
        #expect(try read("1e400") == .number("1e400"))
        #expect(try read("-0") == .number("-0"))
        #expect(try read("1.50") == .number("1.50"))
    }

    @Test func `unescapes strings and names`() throws {
        #expect(
            try read(#"{"a\u0062": "\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"}"#)["ab"]?.string == "\"\\/\u{8}\u{c}\n\r\té😀")
    }

    @Test func `finds members by their bytes, not by Unicode equivalence`() throws {
        let value = try read(#"{"e\u0301": 1, "\u00e9": 2}"#)
        #expect(value["\u{e9}"] == .integer(2))
        #expect(value["e\u{301}"] == .integer(1))
    }

    @Test func `keeps the values of one document when it reads the next`() throws {
        var reader = JSONReader()
        let first = try reader.read(Array(#"["first document"]"#.utf8))
        _ = try reader.read(Array(#"["SECOND DOCUMENT", "and more"]"#.utf8))
        #expect(first == .array([.string("first document")]))
    }

    @Test func `reads again after a document that it refused`() throws {
        var reader = JSONReader()
        for bad in ["[", "{\"a\":}", "[1,]", "\"", "[[[", "nul"] {
            #expect(throws: JSONFault.self) { try reader.read(Array(bad.utf8)) }
            #expect(try reader.read(Array("[1]".utf8)) == .array([.integer(1)]))
        }
    }

    @Test(arguments: [
        ("", JSONFault.Cause.empty), ("  \n", .empty), ("[1,]", .badStructure), ("{\"a\" 1}", .badStructure),
        ("{a:1}", .badStructure), ("[1 2]", .badStructure), ("[01]", .badNumber), ("[1.]", .badNumber),
        ("[-]", .badNumber), ("[+1]", .badWord), ("[truth]", .badWord), ("[NaN]", .badWord), ("[1", .incomplete),
        ("{\"a\":1", .incomplete), ("[1,", .incomplete), ("{\"a\":", .incomplete), ("{\"a\"", .incomplete),
        ("\"abc", .unclosedString), ("[\"\\x\"]", .badString), ("[\"\\ud800\"]", .badString),
        ("[\"a\nb\"]", .controlCharacter), ("1 2", .trailing), ("1,2", .trailing), ("[1] [2]", .trailing),
        ("{} ]", .trailing), ("1]", .trailing), ("],[", .badStructure),
        ("[}", .badStructure), ("{]", .badStructure), ("[,1]", .badStructure), ("{,}", .badStructure),
        ("{\"a\":1,}", .badStructure),
        ("[{]}", .badStructure), ("[1}", .badStructure), ("[1\0]", .badNumber), ("[\0]", .badWord), ("1\0", .badNumber),
    ])
    func `says what is wrong`(_ text: String, _ cause: JSONFault.Cause) {
        #expect(fault(text)?.cause == cause)
    }

    @Test func `says in which line and at which byte`() {
        let wrong = fault("{\n  \"a\": 1,\n  \"b\": tru\n}")
        #expect(wrong?.line == 3)
        #expect(wrong?.offset == 19)
        #expect(wrong?.description == "line 3 (byte 19): expected a value; text must be in quotation marks")
        #expect(fault([0x22, 0x61, 0xff, 0x22])?.offset == 2)
    }

    @Test(
        arguments: [
            ("[1,]", 3), ("{\"a\" 1}", 5), ("{a:1}", 1), ("[1 2]", 3), ("[1, 01]", 4), ("[1,-]", 3),
            ("[\"\\\"\", nul]", 7),
            ("{\"a\": \"\\x\"}", 6), ("{\"\\x\": 1}", 1), ("1 2", 2), ("[] \n ,[]", 5), ("{} ]", 3), ("]", 0),
            ("[1}", 2),
            ("{\"a\":1,\"b\":{\"c\":1,\"d\":2,\"c\":3}}", 24), ("[1", nil), ("{\"a\":", nil), ("{\"a\": tru", 6),
            ("[\"a\", \"b", 6), ("[\"\\\"", 1), ("[\"a\nb\"]", 3), ("[\n\"a\u{1}\"]", 4),
        ] as [(String, Int?)])
    func `says at which byte`(_ text: String, _ offset: Int?) {
        #expect(fault(text)?.cause != nil)
        #expect(fault(text)?.offset == offset)
    }

    @Test func `says in which column, counted in characters`() {
        let wrong = fault("{\n  \"ä€😀\": tru\n}")
        #expect(wrong?.offset == 17)
        #expect(wrong?.place?.line == 2 && wrong?.place?.column == 10)
        let text = Array("ab\ncd".utf8)
        #expect(JSONPlace(of: 0, in: text.span) < JSONPlace(of: 2, in: text.span))
        #expect(JSONPlace(of: 2, in: text.span) < JSONPlace(of: 3, in: text.span))
        #expect(JSONPlace(of: 99, in: text.span) == JSONPlace(of: 5, in: text.span))
    }

    @Test func `refuses what is not UTF-8`() {
        for bytes: [UInt8] in [
            [0x22, 0xff, 0x22], [0x22, 0xc0, 0x80, 0x22], [0x22, 0xed, 0xa0, 0x80, 0x22], [0xef, 0xbb],
        ] {
            #expect(fault(bytes)?.cause == .notUTF8)
        }
    }

    @Test func `refuses a document beyond its limits of bytes and depth, and takes one at them`() {
        var limits = JSONLimits()
        limits.bytes = 6
        limits.depth = 3
        #expect(fault("[[[]]]", limits: limits) == nil)
        #expect(fault("[[[]]] ", limits: limits)?.cause == .tooLarge)
        limits.bytes = 100
        #expect(fault("[[[[]]]]", limits: limits)?.cause == .tooDeep)
        #expect(fault("{\"a\":[{\"b\":[]}]}", limits: limits)?.cause == .tooDeep)
    }

    @Test func `survives a megabyte of opening brackets at the greatest depth`() {
        var limits = JSONLimits()
        limits.depth = 1000
        #expect(fault(String(repeating: "[", count: 1 << 20), limits: limits) != nil)
        let balanced = String(repeating: "[", count: 1000) + String(repeating: "]", count: 1000)
        #expect(fault(balanced, limits: limits) == nil)
    }

    @Test func `refuses a repeated name unless it is asked to report it`() throws {
        let text = #"{"a": 1, "b": 2, "\u0061": 3}"#
        #expect(fault(text)?.cause == .repeatedName)
        var limits = JSONLimits()
        limits.refusesRepeatedNames = false
        let value = try read(text, limits: limits)
        #expect(value.object?.members.map(\.name) == ["a", "b", "a"])
        #expect(value["a"] == .integer(3))
    }

    @Test func `every cause has words of its own`() {
        #expect(Set(JSONFault.Cause.allCases.map { JSONFault($0).description }).count == JSONFault.Cause.allCases.count)
    }
}
