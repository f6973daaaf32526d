// The settings file: lines of `key = value`, and comment lines that begin with `#`.
//
// A value is the text after the first `=`, without blanks around it: it may contain `=` and `#`. CRLF and a byte order
// mark are accepted, because editors write them.

import Glibc
import Platform

struct SettingsFileLine: Equatable {
    let key: String
    let value: String
    let line: Int
}

struct SettingsFile {
    /// All settings with a comment each are 10 KB.
    static let limitBytes = 1 << 20
    /// Longer than the longest list of servers; a certificate belongs in a separate file (`file:`).
    static let limitLineBytes = 8192

    /// All settings, and all properties of librdkafka for each kind of client, are fewer than a thousand. Without a
    /// limit, each line of some other file would be compared with all names, and reported.
    static let limitEntries = 2000

    private(set) var lines: [SettingsFileLine] = []
    private(set) var faults: [SettingFault] = []
    private let path: String

    init(path: String) {
        self.path = path
        do throws(FileFault) {
            parse(try readOwnFile(path, limitBytes: Self.limitBytes))
        } catch {
            faults.append(SettingFault("\(error)\(Self.remedy(of: error, path).map { "; \($0)" } ?? "")"))
        }
    }

    private static func remedy(of fault: FileFault, _ path: String) -> String? {
        let another = "name another file with --\(SettingsSchema.fileFlag)"
        switch fault {
        case .unreadable:
            var status = stat()
            guard lstat(path, &status) == 0 else {
                return errno == ENOENT
                    ? "name an existing settings file with --\(SettingsSchema.fileFlag)"
                    : "check its directories, or \(another)"
            }
            if status.st_mode & S_IFMT == S_IFLNK, access(path, F_OK) != 0 {
                return "it is a link to a file that does not exist: fix or remove the link"
            }
            return "give this user the right to read it, or \(another)"
        case .notAFile: return another
        case .notOwn: return nil
        case .tooLarge: return "is this a settings file? If not, \(another)"
        }
    }

    init(path: String, bytes: [UInt8]) {
        self.path = path
        parse(bytes)
    }

    private mutating func parse(_ bytes: [UInt8]) {
        let byteOrderMark: [UInt8] = [0xef, 0xbb, 0xbf]
        let bytes = bytes.starts(with: byteOrderMark) ? bytes.dropFirst(byteOrderMark.count) : bytes[...]
        var firstLine: [String: Int] = [:]
        for (index, raw) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
            guard let line = parseLine(raw.last == UInt8(ascii: "\r") ? raw.dropLast() : raw, number: index + 1) else {
                continue
            }
            guard lines.count < Self.limitEntries else {
                refuse(line.line, "more than \(Self.limitEntries) lines set something; is this a settings file?")
                return
            }
            if let first = firstLine[line.key] {
                refuse(
                    line.line,
                    "\(shownKey(line.key, value: line.value)) is already set in line \(first); keep one of the two")
            } else {
                firstLine[line.key] = line.line
                lines.append(line)
            }
        }
    }

    /// nil for blank lines, comments and refused lines. Messages do not repeat the line: it may contain a secret.
    private mutating func parseLine(_ raw: ArraySlice<UInt8>, number: Int) -> SettingsFileLine? {
        guard raw.count <= Self.limitLineBytes else {
            refuse(
                number,
                "the line is longer than \(Self.limitLineBytes) bytes; put the value in a file and write key = file:PATH"
            )
            return nil
        }
        guard !raw.contains(0) else {
            refuse(number, "the line contains a NUL byte; is this a text file?")
            return nil
        }
        guard let text = String(validating: raw, as: UTF8.self) else {
            refuse(number, "the line is not UTF-8; save the file in that encoding")
            return nil
        }
        let content = trimmed(text)
        guard !content.isEmpty, !content.hasPrefix("#") else { return nil }
        guard let equals = content.firstIndex(of: "=") else {
            refuse(number, "the line has no \"=\"; write key = value, or # before a comment")
            return nil
        }
        let key = trimmed(content[..<equals])
        guard !key.isEmpty else {
            refuse(number, "there is no key before \"=\"")
            return nil
        }
        return SettingsFileLine(key: key, value: trimmed(content[content.index(after: equals)...]), line: number)
    }

    private mutating func refuse(_ line: Int, _ words: String) {
        faults.append(SettingFault(.file(path: path, line: line), words))
    }
}

/// A key in the form in which a message may show it.
func shownKey(_ key: String, value: String) -> String {
    looksLikeKey(key, value: value) ? key : "the key (not shown, because it does not look like a setting)"
}

/// Whether the text looks like a key or a variable. Other text may be the last line of a pasted private key; so may
/// letters and digits followed only by the padding of such a line.
func looksLikeKey(_ key: String, value: String) -> Bool {
    let isKey = key.utf8.allSatisfy(isKeyByte)
    let isVariable = key.lowercased().utf8.allSatisfy(isKeyByte) && !["", "="].contains(value)
    return key.utf8.count <= 64 && (isKey || isVariable)
}

func isKeyByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."),
        UInt8(ascii: "_"), UInt8(ascii: "-"):
        true
    default: false
    }
}
