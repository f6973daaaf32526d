import KafkaTestKit
import Log
import MemoryLog
import Platform
import Testing

/// What a reader gets of a record with these headers.
private func read<Answer>(_ headers: [RecordHeader], _ body: (borrowing RecordView) -> Answer) throws -> Answer {
    let log = MemoryLog(clock: .manual())
    let deadline = Deadline(after: patience)
    try log.create([NewTopic("rows", partitions: 1)], by: deadline)
    let output = OutputBatch()
    output.append(topic: 0, partition: 0, timestamp: 0, key: [1], value: [1], headers: headers)
    _ = try log.openWriter(WriterOptions(name: "test", topics: ["rows"])).append(output, by: deadline)
    let reader = try log.openReader(ReaderOptions(name: "test", group: "test", topics: ["rows"]))
    try reader.read(from: [TopicPartition("rows", 0): NextOffset(0)])
    let batch = RecordBatch()
    try reader.poll(into: batch, limit: 1, wait: .zero)
    try #require(batch.count == 1)
    return body(batch[0])
}

@Suite struct `A kind of records` {
    private func meaning(_ headers: [RecordHeader]) throws -> RecordKind.Meaning {
        try read(headers) { RecordKind("row", version: 2).meaning(of: $0, upgrade: "this test") }
    }

    private func meaning(_ type: String?, _ schema: String?) throws -> RecordKind.Meaning {
        try meaning([("type", type), ("schema", schema)].filter { $0.1 != nil }.map { RecordHeader($0.0, $0.1!) })
    }

    @Test func `is known up to the version of this build, with and without the old header`() throws {
        for schema in ["row/1", "row/2"] {
            #expect(try meaning("row", schema) == .known)
            #expect(try meaning(nil, schema) == .known)
        }
        #expect(try meaning("row", nil) == .known)
    }

    @Test func `is newer beyond it, with what is to be done`() throws {
        for version in [3, 999_999_999] {
            let words = "a record has the schema row/\(version), and this build reads up to 2: upgrade this test"
            #expect(try meaning("row", "row/\(version)") == .newer(words))
            #expect(try meaning(nil, "row/\(version)") == .newer(words))
        }
    }

    @Test func `is another one by its old header, whatever the schema says`() throws {
        for type in ["rows", "ro", "", "Row"] { #expect(try meaning(type, "row/9") == .unknownType) }
    }

    @Test func `is another one by its schema, whatever the version`() throws {
        let longest = String(repeating: "r", count: 64)
        for schema in ["rows/1", "ro/9", "Row/1", "tick/1", "\(longest)/999999999"] {
            #expect(try meaning(nil, schema) == .unknownType)
        }
    }

    @Test func `is strange without any type, and with a schema that is none of it`() throws {
        #expect(try meaning(nil, nil) == .strange(.type))
        for schema in ["", "row", "row/", "row/0", "row/x", "row/-1", "rows/1", "col/1", "row/9999999999", "row1"] {
            #expect(try meaning("row", schema) == .strange(.schema), "\(schema)")
        }
    }

    @Test func `is strange with a schema that names no type or no version`() throws {
        let long = String(repeating: "r", count: 65)
        for schema in [
            "", "/", "/1", "row", "row/", "row/0", "row/x", "row/1x", "row/-1", "row/1/1", "row/9999999999", "row1",
            "\(long)/1",
        ] { #expect(try meaning(nil, schema) == .strange(.schema), "\(schema)") }
    }

    @Test func `is what the last of two headers says`() throws {
        let (first, third) = (RecordHeader("schema", "row/1"), RecordHeader("schema", "row/3"))
        #expect(try meaning([third, first]) == .known)
        guard case .newer = try meaning([first, third]) else {
            Issue.record("the last header has a newer version")
            return
        }
        #expect(try meaning([first, RecordHeader("schema", nil as [UInt8]?)]) == .strange(.type))
    }
}

@Suite struct `The header of program and rules` {
    private func parts(_ headers: [RecordHeader]) throws -> [String?] {
        func text(_ bytes: Span<UInt8>?) -> String? {
            bytes?.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        }
        return try read(headers) { [text($0.program), text($0.rules)] }
    }

    @Test func `names both, with a plus between them`() throws {
        #expect(AppHeader.text("perennial/0.2.0", rules: "abc") == "perennial/0.2.0+abc")
        #expect(AppHeader.text("perennial/0.2.0", rules: nil) == "perennial/0.2.0")
        #expect(try parts([RecordHeader("app", "perennial/0.2.0+abc")]) == ["perennial/0.2.0", "abc"])
        #expect(try parts([RecordHeader("app", "perennial/0.2.0")]) == ["perennial/0.2.0", nil])
        #expect(try parts([RecordHeader("app", "perennial/0.2.0+")]) == ["perennial/0.2.0", ""])
        #expect(try parts([RecordHeader("app", "+")]) == ["", ""])
        #expect(try parts([RecordHeader("app", "")]) == ["", nil])
        #expect(try parts([]) == [nil, nil])
    }

    @Test func `is read from two headers of older records`() throws {
        let old = [RecordHeader("app", "perennial/0.1.0"), RecordHeader("rules", "abc")]
        #expect(try parts(old) == ["perennial/0.1.0", "abc"])
    }

    @Test func `gets the rules of an older record that is written again`() {
        let (id, source) = (RecordHeader("id", "1"), RecordHeader("source", "t:0:1"))
        let old = [id, RecordHeader("app", "perennial/0.1.0"), RecordHeader("rules", "abc"), source]
        let new = [id, RecordHeader("app", "perennial/0.1.0+abc"), source]
        #expect(AppHeader.joined(old) == new)
        #expect(AppHeader.joined(new) == new)
        #expect(AppHeader.joined([id, source]) == [id, source])
    }
}
