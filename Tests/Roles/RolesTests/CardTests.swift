import CommandLine
import Entitlements
import Log
import MemoryLog
import Platform
import Testing

@testable import Cluster
@testable import Tools

@Suite struct `What a card is made of` {
    @Test(
        arguments: [
            (0, "1970-01-01 00:00"), (1_795_341_600_400, "2026-11-22 10:00"),
            (1_795_341_607_000, "2026-11-22 10:00:07"),
            (253_402_300_799_999, "9999-12-31 23:59:59"), (253_402_300_800_000, "253402300800000 ms"), (-1, "-1 ms"),
            (Int64.max, "9223372036854775807 ms"), (.min, "-9223372036854775808 ms"),
        ] as [(Int64, String)])
    func `has times that people read`(milliseconds: Int64, text: String) {
        #expect(shownTime(milliseconds) == text)
    }

    @Test func `has lengths and days that people read`() {
        #expect(
            [5, 1000, 119_000, 120_000, 7_200_000, 172_800_000, .max].map(shownLength)
                == ["5 ms", "1 s", "119 s", "2 min", "2 h", "2 days", "106751991167 days"])
        #expect(shownDay(1_795_305_600_000) == "2026-11-22")
        #expect(shownDay(1_795_305_660_000) == "2026-11-22 00:01")
        #expect(distance(from: .min, to: .max) == .max)
    }

    @Test(
        arguments: [
            (9990, "USD", "9.99 USD"), (0, "USD", "0 USD"), (600_000, "JPY", "600 JPY"), (9900, "EUR", "9.90 EUR"),
            (1, "KWD", "0.001 KWD"), (-9990, "USD", "-9.99 USD"), (.min, nil, "-9223372036854775.808"),
            (5000, "\u{1b}[2J", "5 \\u{1b}[2J"),
        ] as [(Int64, String?, String)])
    func `has money that people read`(milliunits: Int64, currency: String?, text: String) {
        #expect(shownMoney(milliunits, currency) == text)
    }

    @Test func `shows of long and hostile texts only so much`() {
        #expect(shownText(String(repeating: "x", count: 500)).count == 123)
        #expect(shownText("a\u{202e}\n") == "a\\u{202e}\\u{a}")
    }

    @Test func `is broken between words, and within those that are too long`() {
        #expect(wrapped("one two three", width: 7) == ["one two", "three"])
        #expect(wrapped("one two three", width: 8, hanging: 2) == ["one two", "  three"])
        #expect(wrapped("abcdefghij k", width: 5, hanging: 1) == ["abcd", " efgh", " ij k"])
        #expect(wrapped("", width: 5) == [""])
        #expect(wrapped("com.example.pro.yearly", width: 16) == ["com.example.pro.", "yearly"])
        #expect(wrapped("com.example.yearly", width: 14) == ["com.example.", "yearly"])
        #expect(wrapped("a.bcdefghijk", width: 8) == ["a.bcdefg", "hijk"])
        // The pieces of a word are never joined by a space.
        #expect(wrapped("abcdefgh", width: 6, hanging: 3) == ["abc", "   def", "   gh"])
    }
}

@Suite struct `A partition scanned` {
    private static let partition = TopicPartition("t", 0)

    private func log(_ count: Int) throws -> MemoryLog {
        let log = MemoryLog()
        try log.create([NewTopic("t", partitions: 1)], by: Deadline(after: .seconds(30)))
        let writer = try log.openWriter(WriterOptions(name: "w", topics: ["t"]))
        let batch = OutputBatch()
        for number in 0..<count {
            batch.append(topic: 0, partition: 0, timestamp: 1, key: Array("\(number)".utf8), value: [])
        }
        _ = try writer.append(batch, by: Deadline(after: .seconds(30)))
        return log
    }

    @Test(arguments: [0, 1, 999, 1000, 2500])
    func `gives every record once, then the end`(count: Int) throws {
        let reader = try log(count).openReader(ReaderOptions(name: "r", group: "g", topics: ["t"]))
        var offsets: [Int64] = []
        var fractions: [Double] = []
        let scan = PartitionScan(reader: reader, partition: Self.partition)
        let end = try scan.run(progress: { fractions.append($0) }) { offsets.append($0.offset) }
        #expect(end == NextOffset(Int64(count)))
        #expect(offsets == (0..<Int64(count)).map { $0 })
        #expect(fractions == fractions.sorted() && fractions.last ?? 1 == 1)
        // Starts again from the first card: nothing of the other is left.
        #expect(try scan.run(from: end) { offsets.append($0.offset) } == end)
        #expect(offsets.count == count)
    }

    @Test func `that is not there is told`() throws {
        let reader = try log(0).openReader(ReaderOptions(name: "r", group: "g", topics: ["u"]))
        do throws(ToolFault) {
            try PartitionScan(reader: reader, partition: TopicPartition("u", 0)).run { _ in }
            Issue.record("it is not there")
        } catch {
            #expect(error.code == .gaveUp)
        }
    }
}
