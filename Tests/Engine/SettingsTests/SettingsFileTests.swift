import Foundation
import Testing

@testable import Settings

private func file(_ text: String) -> SettingsFile { SettingsFile(path: "x.conf", bytes: Array(text.utf8)) }

@Suite struct `A settings file` {
    @Test func `has keys and values, comments and blank lines`() {
        let read = file("# comment\n\n  # indented comment\na.b = c d \nurl=http://x/?a=b#c\nempty =\n")
        #expect(read.faults.isEmpty)
        #expect(
            read.lines == [
                .init(key: "a.b", value: "c d", line: 4), .init(key: "url", value: "http://x/?a=b#c", line: 5),
                .init(key: "empty", value: "", line: 6),
            ])
    }

    @Test func `may have CRLF line ends, a byte order mark and no last newline`() {
        let read = file("\u{feff}a = 1\r\n\r\nb = 2")
        #expect(read.faults.isEmpty)
        #expect(read.lines == [.init(key: "a", value: "1", line: 1), .init(key: "b", value: "2", line: 3)])
    }

    @Test(arguments: [
        ("a = 1\nb", "x.conf:2: the line has no \"=\"; write key = value, or # before a comment"),
        ("= 1", "x.conf:1: there is no key before \"=\""),
        ("a = 1\n# c\na = 2", "x.conf:3: a is already set in line 1; keep one of the two"),
        ("a = \u{0}", "x.conf:1: the line contains a NUL byte; is this a text file?"),
    ])
    func `says in which line it is wrong`(_ text: String, _ message: String) {
        #expect(file(text).faults.map(\.description) == [message])
    }

    @Test func `must be UTF-8, and says where it is not`() {
        let bytes = Array("a = 1\nb = ".utf8) + [0xff] + Array("\nc = 3".utf8)
        let read = SettingsFile(path: "x.conf", bytes: bytes)
        #expect(read.faults.map(\.description) == ["x.conf:2: the line is not UTF-8; save the file in that encoding"])
        #expect(read.lines.map(\.key) == ["a", "c"])
    }

    @Test func `has lines of at most 8192 bytes`() {
        let longest = "a = " + String(repeating: "x", count: SettingsFile.limitLineBytes - 4)
        #expect(file(longest).faults.isEmpty)
        #expect(file(longest + "x").faults.count == 1)
    }

    @Test func `has an end when it is no settings file`() {
        let content = (0..<100_000).map { "k\($0)=1\n" }.joined()
        let file = SettingsFile(path: "f", bytes: Array(content.utf8))
        #expect(file.lines.count == 2000)
        #expect(
            file.faults.map(\.description) == ["f:2001: more than 2000 lines set something; is this a settings file?"])
    }

    @Test func `that cannot be read is told with the reason and the remedy`() throws {
        let folder = NSTemporaryDirectory() + "settings-\(UUID().uuidString)"
        let files = FileManager.default
        try files.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? files.removeItem(atPath: folder) }
        try files.createSymbolicLink(atPath: folder + "/link", withDestinationPath: folder + "/nowhere")
        try Data(count: SettingsFile.limitBytes + 1).write(to: URL(fileURLWithPath: folder + "/large"))
        for (path, words) in [
            (folder, "it is not a regular file; name another file with --config"),
            (folder + "/large", "is larger than 1048576 bytes; is this a settings file? If not, name another file"),
            (folder + "/link", "No such file or directory; it is a link to a file that does not exist"),
            (folder + "/none", "No such file or directory; name an existing settings file with --config"),
        ] {
            let told = SettingsFile(path: path).faults.map(\.description)
            #expect(told.count == 1)
            #expect(told.first?.contains(words) == true, "\(told)")
        }
    }

    @Test func `that others can change is not read`() throws {
        let path = NSTemporaryDirectory() + "settings-\(UUID().uuidString)"
        try "a = 1".write(toFile: path, atomically: true, encoding: .utf8)
        defer { unlink(path) }
        chmod(path, 0o640)
        #expect(SettingsFile(path: path).lines.count == 1)
        for mode: mode_t in [0o660, 0o606] {
            chmod(path, mode)
            let file = SettingsFile(path: path)
            #expect(file.lines.isEmpty)
            #expect(
                file.faults.map(\.description) == [
                    "\(path) is not read: users other than its owner can write it: chmod go-w \(path)"
                ])
        }
        // Only root can give a file to another user, and root is the one who must not accept it.
        guard geteuid() == 0 else { return }
        chmod(path, 0o600)
        chown(path, 12_345, 0)
        #expect(
            SettingsFile(path: path).faults.map(\.description) == [
                "\(path) is not read: it belongs to user 12345, but must belong to the user who runs this (0) or to root"
            ])
    }

    @Test func `reports every wrong line at once`() {
        #expect(file("one\n= two\na = 1\na = 2\nthree").faults.count == 4)
    }
}
