import KafkaTestKit
import Log
import MemoryLog
import Platform
import Testing

@Suite struct `A kind of records` {
    private func meaning(_ type: String?, _ schema: String?) throws -> RecordKind.Meaning {
        let log = MemoryLog(clock: .manual())
        let deadline = Deadline(after: patience)
        try log.create([NewTopic("rows", partitions: 1)], by: deadline)
        let output = OutputBatch()
        let headers = [("type", type), ("schema", schema)].filter { $0.1 != nil }.map { RecordHeader($0.0, $0.1!) }
        output.append(topic: 0, partition: 0, timestamp: 0, key: [1], value: [1], headers: headers)
        _ = try log.openWriter(WriterOptions(name: "test", topics: ["rows"])).append(output, by: deadline)
        let reader = try log.openReader(ReaderOptions(name: "test", group: "test", topics: ["rows"]))
        try reader.read(from: [TopicPartition("rows", 0): NextOffset(0)])
        let batch = RecordBatch()
        try reader.poll(into: batch, limit: 1, wait: .zero)
        try #require(batch.count == 1)
        return RecordKind("row", version: 2).meaning(of: batch[0], upgrade: "this test")
    }

    @Test func `is known up to the version of this build, and without one`() throws {
        for schema in ["row/1", "row/2", nil] { #expect(try meaning("row", schema) == .known) }
    }

    @Test func `is newer beyond it, with what is to be done`() throws {
        for version in [3, 999_999_999] {
            let words = "a record has the schema row/\(version), and this build reads up to 2: upgrade this test"
            #expect(try meaning("row", "row/\(version)") == .newer(words))
        }
    }

    @Test func `is another one by its type, whatever the schema says`() throws {
        for type in ["rows", "ro", "", "Row"] { #expect(try meaning(type, "row/9") == .unknownType) }
    }

    @Test func `is strange without a type, and with a schema that is none of it`() throws {
        #expect(try meaning(nil, "row/1") == .strange(.type))
        for schema in ["", "row", "row/", "row/0", "row/x", "row/-1", "rows/1", "col/1", "row/9999999999", "row1"] {
            #expect(try meaning("row", schema) == .strange(.schema), "\(schema)")
        }
    }
}
