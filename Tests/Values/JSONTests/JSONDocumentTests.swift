import Testing

@testable import JSON

private func flat(_ text: String, limits: JSONLimits = JSONLimits()) throws -> JSONDocument {
    var document = JSONDocument(limits: limits)
    try document.read(Array(text.utf8).span)
    return document
}

private func cause(_ text: String) -> JSONFault.Cause? {
    do throws(JSONFault) {
        var document = JSONDocument()
        try document.read(Array(text.utf8).span)
        return nil
    } catch {
        return error.cause
    }
}

extension JSONDocument {
    fileprivate borrowing func rawText(_ value: Value) -> String {
        raw(value).withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    }

    /// The same as a tree, built only from flat reading.
    borrowing func tree(_ value: Value) -> JSONValue {
        switch kind(of: value) {
        case .null: return .null
        case .bool: return .bool(bool(value) == true)
        case .number:
            let text = rawText(value)
            return text == "-0" ? .number(text) : integer(value).map { .integer($0) } ?? .number(text)
        case .string: return .string(text(value) ?? "")
        case .array:
            var elements: [JSONValue] = []
            var next = firstElement(of: value)
            while let element = next {
                elements.append(tree(element))
                next = self.element(after: element)
            }
            return .array(elements)
        case .object:
            var members: [JSONObject.Member] = []
            var next = firstMember(of: value)
            while let member = next {
                let name = name(of: member).withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
                members.append(.init(name: name, value: tree(member.value)))
                next = self.member(after: member)
            }
            return .object(JSONObject(members))
        }
    }
}

private let nested = #" {"a" : [1, -2.50, "x\u00e9", {"b":{}, "c":[ ]} , true] , "d":{ "e" : null } ,"":""} "#

/// The macros of Testing copy their operands, so values are taken out of the document first.
@Suite struct `A JSON document read flat` {
    @Test(arguments: [nested, "1", "\"x\"", "[]", "{}", "[[],[[]],{}]", "{\"a\":{\"b\":[{}]},\"c\":1}", "-0"])
    func `is the same as the tree`(_ text: String) throws {
        let document = try flat(text)
        let tree = document.tree(document.root)
        #expect(tree == (try JSONValue.read(Array(text.utf8))))
    }

    @Test func `gives each value as it was written`() throws {
        let document = try flat(nested)
        var raws = [document.rawText(document.root)]
        var next = document.firstMember(of: document.root)
        while let member = next {
            raws.append(document.rawText(member.value))
            raws.append(String(decoding: Array(nested.utf8)[document.range(of: member)], as: UTF8.self))
            next = document.member(after: member)
        }
        let array = #"[1, -2.50, "x\u00e9", {"b":{}, "c":[ ]} , true]"#
        #expect(raws[0] == nested.dropFirst().dropLast())
        #expect(
            raws.dropFirst() == [
                array, "\"a\" : \(array)", #"{ "e" : null }"#, #""d":{ "e" : null }"#, "\"\"", "\"\":\"\"",
            ])
    }

    @Test func `gives each element as it was written`() throws {
        let document = try flat(#" [1 , -2.50,"x\u00e9" , {"b":{}, "c":[ ]} , true ] "#)
        var raws: [String] = []
        var next = document.firstElement(of: document.root)
        while let element = next {
            raws.append(document.rawText(element))
            next = document.element(after: element)
        }
        #expect(raws == ["1", "-2.50", #""x\u00e9""#, #"{"b":{}, "c":[ ]}"#, "true"])
    }

    @Test func `finds members of an object by their bytes, and not those of objects inside`() throws {
        let document = try flat(#"{"x":{"a":1},"\u0061":2,"A":3}"#)
        let found = document.member("a", of: document.root).flatMap { document.integer($0.value) }
        let missing = document.member("b", of: document.root)
        #expect(found == 2)
        #expect(missing == nil)
        let array = try flat("[1]")
        let members = [array.member("a", of: array.root), array.firstMember(of: array.root)]
        #expect(members == [nil, nil])
    }

    @Test(
        arguments: [
            ("0", 0), ("-0", 0), ("-1", -1), ("9223372036854775807", .max), ("-9223372036854775808", .min),
            ("9223372036854775808", nil), ("-9223372036854775809", nil), ("99999999999999999999", nil), ("1.0", nil),
            ("1e2", nil), ("\"1\"", nil), ("true", nil), ("[1]", nil),
        ] as [(String, Int64?)])
    func `reads whole numbers of 64 bits and no others`(_ text: String, _ expected: Int64?) throws {
        let document = try flat(text)
        let integer = document.integer(document.root)
        #expect(integer == expected)
    }

    /// Five strings, short and long, each with an escape before it, after it or nowhere.
    @Test func `gives all members of an object in one pass, and none of other values`() throws {
        let document = try flat(#"{"a":[{"x":1}],"b\n":"t\"","":{"a":{"y":2}},"d":-3}"#)
        var seen: [String] = []
        document.forEachMember(of: document.root) { name, value in
            let string = document.unsafeString(value).map { String(decoding: $0, as: UTF8.self) } ?? "none"
            seen.append("\(String(decoding: name, as: UTF8.self)) \(document.rawText(value)) \(string)")
        }
        #expect(
            seen == [
                #"a [{"x":1}] none"#, "b\n " + #""t\"" t""#, #" {"a":{"y":2}} none"#, "d -3 none",
            ])
        for text in ["[1,2]", "7", #""s""#, "null", "{}"] {
            let other = try flat(text)
            other.forEachMember(of: other.root) { _, _ in Issue.record("\(text) has no members") }
        }
    }

    @Test func `takes the escapes out of the strings that have some, and leaves the others as they are`() throws {
        let long = String(repeating: "0123456789", count: 9)
        let parts = [
            ("a", "a"), (#"\""#, "\""), (#"\\"#, "\\"), (long, long), (#"\u00e9"# + long + #"\/"#, "é" + long + "/"),
        ]
        var document = JSONDocument()
        for choice in 0..<(5 * 5 * 5 * 5 * 5) {
            var rest = choice
            var chosen: [(String, String)] = []
            for _ in 0..<5 {
                chosen.append(parts[rest % 5])
                rest /= 5
            }
            let text = "[" + chosen.map { "\"\($0.0)\"" }.joined(separator: ", ") + "]"
            try document.read(Array(text.utf8).span)
            let tree = document.tree(document.root)
            guard tree != .array(chosen.map { .string($0.1) }) else { continue }
            Issue.record("\(text) was read as \(tree)")
        }
    }

    @Test func `asks for the kind before it gives a value`() throws {
        let document = try flat("[null, false, \"x\"]")
        var values: [(bool: Bool?, text: String?)] = []
        var next = document.firstElement(of: document.root)
        while let element = next {
            values.append((document.bool(element), document.text(element)))
            next = document.element(after: element)
        }
        #expect(values.map(\.bool) == [nil, false, nil])
        #expect(values.map(\.text) == [nil, nil, "x"])
    }

    @Test(arguments: [
        ("{\"a\":1,\"a\":2}", JSONFault.Cause.repeatedName), ("{\"a\":1,\"\\u0061\":2}", .repeatedName),
        ("[{\"a\":[{\"b\":1,\"c\":{},\"b\":2}]}]", .repeatedName), ("\"\\ud800\"", .badString),
        ("\"\\udc00\"", .badString), ("\"\\ud800\\u0041\"", .badString), ("\"\\ud800x\"", .badString),
        ("{\"\\ud800\":1}", .badString), ("\u{feff}{}", .badWord), ("{}{}", .trailing), ("[", .incomplete),
        ("", .empty),
    ])
    func `refuses what the reader refuses`(_ text: String, _ expected: JSONFault.Cause) {
        #expect(cause(text) == expected)
        #expect(throws: JSONFault.self) { try JSONValue.read(Array(text.utf8)) }
    }

    @Test func `finds a repeated name in a large object, the names being compared in two ways`() {
        func object(_ count: Int, _ last: String) -> String {
            "{" + (0..<count).map { "\"m\($0)\":0," }.joined() + "\"\(last)\":0}"
        }
        for count in [1, 63, 64, 65, 66, 200] {
            #expect(cause(object(count, "new")) == nil)
            for name in ["m0", "m\(count - 1)", "m\(count / 2)"] {
                #expect(cause(object(count, name)) == .repeatedName, "\(name) of \(count)")
            }
        }
    }

    @Test func `names the second of two members of one name, and the first such`() {
        func fault(_ text: String) -> JSONFault? {
            do throws(JSONFault) {
                var document = JSONDocument()
                try document.read(Array(text.utf8).span)
                return nil
            } catch {
                return error
            }
        }
        for (count, second, later) in [(3, "1", "2"), (3, "2", "1"), (100, "1", "2"), (100, "2", "1")] {
            let members = (0..<count).map { "\"m\($0)\":0" }.joined(separator: ",")
            let found = fault("{\(members),\"m\(second)\":1,\"x\":2,\"\\u006d\(later)\":3}")
            #expect(found?.offset == members.utf8.count + 2)
            #expect(found?.detail == "\"m\(second)\"")
        }
        #expect(fault("{\"a\":0,\"\\u0061\":1}")?.detail == "\"a\"")
    }

    @Test(arguments: [2, 9, 64, 65, 90])
    func `takes names that look alike for what they are`(_ count: Int) {
        // All of one length, with the same first, middle and last byte.
        let names = (0..<count).map { "a\(10 + $0)-\(10 + $0)z" }
        func object(_ names: [String]) -> String { "{" + names.map { "\"\($0)\":0" }.joined(separator: ",") + "}" }
        #expect(cause(object(names)) == nil)
        for name in names { #expect(cause(object(names + [name])) == .repeatedName, "\(name) of \(count)") }
    }

    @Test func `takes repeated names where that is wanted, the first counting`() throws {
        var limits = JSONLimits()
        limits.refusesRepeatedNames = false
        let document = try flat("{\"a\":1,\"a\":2}", limits: limits)
        let found = document.member("a", of: document.root).flatMap { document.integer($0.value) }
        #expect(found == 1)
    }

    @Test func `reads again after a document that it refused`() throws {
        var document = JSONDocument()
        for bad in ["[", "{\"a\":1,\"a\":1}", "nul"] {
            do throws(JSONFault) {
                try document.read(Array(bad.utf8).span)
                Issue.record("took \(bad)")
            } catch {
                try document.read(Array("7".utf8).span)
            }
            let integer = document.integer(document.root)
            #expect(integer == 7)
        }
    }
}
