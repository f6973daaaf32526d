import KafkaTestKit
import Platform
import Testing

@Suite struct `A reader of lines` {
    private func lines(_ reader: consuming LineReader) throws -> [String] {
        var lines: [String] = []
        while let line = try reader.next() {
            switch line {
            case .bytes(let bytes): lines.append(String(decoding: bytes, as: UTF8.self))
            case .tooLong: lines.append("too long")
            }
        }
        #expect(reader.share == 1)
        return lines
    }

    private static let long = String(repeating: "x", count: 200_000)

    @Test(
        arguments: [
            ("", []), ("a", ["a"]), ("a\n", ["a"]), ("\n", [""]), ("\n\na", ["", "", "a"]), ("a\r\nb", ["a\r", "b"]),
            ("1234567890\n12345678901\nb", ["1234567890", "too long", "b"]), (long, ["too long"]),
            ("\(long)\na\n\(long)\n", ["too long", "a", "too long"]),
            (String(repeating: "ab\n", count: 50_000), Array(repeating: "ab", count: 50_000)),
        ] as [(String, [String])])
    func `gives the same lines of a file and of a text`(_ text: String, _ expected: [String]) throws {
        #expect(try lines(LineReader(text: Array(text.utf8), limitLineBytes: 10)) == expected)
        let folder = try ScratchDirectory("lines")
        let path = try folder.write(text, to: "lines.txt")
        #expect(try lines(LineReader(path: path, limitLineBytes: 10)) == expected)
    }

    @Test func `refuses what is no file`() throws {
        let folder = try ScratchDirectory("lines")
        #expect(throws: FileFault.notAFile(path: folder.path)) {
            _ = try LineReader(path: folder.path, limitLineBytes: 10)
        }
        #expect(throws: FileFault.self) { _ = try LineReader(path: folder.path + "/none", limitLineBytes: 10) }
    }

    @Test func `tells how far it is`() throws {
        var reader = LineReader(text: Array("abc\ndefg\nhi".utf8), limitLineBytes: 10)
        #expect(reader.share == 0)
        _ = try reader.next()
        #expect(reader.share == 4.0 / 11)
    }
}
