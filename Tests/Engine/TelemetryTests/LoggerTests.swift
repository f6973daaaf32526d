import Foundation
import Telemetry
import Testing

@Suite struct `A logger` {
    let lines = Lines()

    @Test func `writes one object a line with the fields in the order given`() {
        lines.logger().info("ready", ["partition": 3, "topic": "events", "rate": 0.5, "leader": true])
        #expect(
            lines.texts == [
                #"{"time":"2026-03-01T09:30:00.125Z","level":"info","message":"ready","#
                    + #""partition":3,"topic":"events","rate":0.5,"leader":true}"# + "\n"
            ])
    }

    @Test func `writes a readable line for people`() {
        lines.logger(format: .text).warning("slow commit", ["ms": 812, "topic": "a b", "plain": "x", "none": ""])
        #expect(
            lines.texts == [
                "2026-03-01T09:30:00.125Z WARNING slow commit ms=812 topic=\"a b\" plain=x none=\"\"\n"
            ])
    }

    @Test(arguments: LogLevel.allCases)
    func `writes its level and above, and nothing below`(_ level: LogLevel) {
        let logger = lines.logger(level: level)
        for one in LogLevel.allCases { logger.log(one, one.rawValue) }
        #expect(lines.bytes.count == LogLevel.allCases.filter { $0 >= level }.count)
    }

    @Test func `does not build a message that nobody reads`() {
        var built = 0
        func build() -> String {
            built += 1
            return "x"
        }
        lines.logger(level: .info).debug(build())
        #expect(built == 0)
    }

    @Test(arguments: LogFormat.allCases)
    func `keeps a line a line whatever is in it`(_ format: LogFormat) {
        let nasty =
            String(String.UnicodeScalarView((0...0xA0).compactMap(Unicode.Scalar.init)))
            + "\r\n\u{2028}\u{2029}\u{1F680}"
        lines.logger(format: format).error(nasty, [nasty: .string(nasty)])
        let scalars = lines.texts[0].dropLast().unicodeScalars
        #expect(scalars.allSatisfy { !(0..<0x20).contains($0.value) && !(0x7F..<0xA0).contains($0.value) })
        #expect(scalars.allSatisfy { $0 != "\u{2028}" && $0 != "\u{2029}" })
        #expect(lines.texts[0].hasSuffix("\n"))
    }

    @Test func `writes JSON that reads back as what was given`() throws {
        let nasty =
            String(String.UnicodeScalarView((0...0xFF).compactMap(Unicode.Scalar.init))) + "\r\n\u{2028}\u{1F680}"
        lines.logger().error(nasty, [nasty: .string(nasty), "nan": .double(.nan)])
        let object = try #require(
            JSONSerialization.jsonObject(with: Data(lines.bytes[0])) as? [String: Any])
        #expect(object["message"] as? String == nasty)
        #expect(object[nasty] as? String == nasty)
        #expect(object["nan"] as? String == "nan")
    }

    @Test func `gives a field another name when the name is its own`() throws {
        lines.logger().info("m", ["level": "high", "time": 1])
        let text = lines.texts[0]
        #expect(text.contains(#""level_":"high","time_":1"#))
    }

    @Test(arguments: [0, 1, 5, 100, 1900, 2000, 2040, 3000, 4000, 4050, 4096, 100_000], ["a", "\u{1}", "é", "🚀"])
    func `cuts a long line at its limit, says so, and it is still JSON`(_ length: Int, _ unit: String) throws {
        let long = String(repeating: unit, count: length)
        lines.logger().info(long, ["first": 1, "text": .string(long), "name": .string(long), "last": true])
        let line = lines.bytes[0]
        #expect(line.count <= Logger.maxLineBytes)
        let object = try #require(JSONSerialization.jsonObject(with: Data(line)) as? [String: Any])
        #expect(object["first"] as? Int == 1)
        let isWhole = object["message"] as? String == long && object["name"] as? String == long && object["last"] != nil
        #expect((object["cut"] != nil) == !isWhole)
    }

    @Test func `keeps every line of many threads whole`() async throws {
        let logger = lines.logger()
        await withTaskGroup { group in
            for task in 0..<8 {
                group.addTask {
                    for line in 0..<200 { logger.info("line", ["task": .integer(task), "line": .integer(line)]) }
                }
            }
        }
        #expect(lines.bytes.count == 1600)
        for line in lines.bytes { _ = try JSONSerialization.jsonObject(with: Data(line)) }
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_001, "2000-02-29T00:00:00.001Z"),
            (4_102_444_799_999, "2099-12-31T23:59:59.999Z"),
        ] as [(Int64, String)])
    func `shows time as RFC 3339 in UTC`(_ milliseconds: Int64, _ text: String) {
        #expect(rfc3339(milliseconds: milliseconds) == text)
    }
}
