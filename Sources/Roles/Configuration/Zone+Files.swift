// Where the machine stores its time zones.

import Platform
public import Zone

extension Zone {
    public static let directory = "/usr/share/zoneinfo"
    // The largest zone file has 4 KB; the list of all zones, which contains the version, has 100.
    private static let limitFileBytes = 1 << 16
    private static let limitListBytes = 1 << 20

    /// Reads the zone's file; UTC needs none. Blocks on the disk.
    public init(name: String, directory: String = Zone.directory) throws(ZoneFault) {
        guard name != Zone.utc.name else {
            self = .utc
            return
        }
        // Checked before it becomes part of a path.
        guard Zone.isName(name) else { throw .notAName(name) }
        let file: [UInt8]
        do throws(FileFault) {
            file = try readFile("\(directory)/\(name)", limitBytes: Self.limitFileBytes)
        } catch {
            throw Self.unreadable(name, error.description, in: directory)
        }
        try self.init(
            name: name, file: file, dataVersion: Self.dataVersion(in: directory) ?? Self.version(of: file))
    }

    /// Only names that the machine has are proposed: from Debian 13 on, the list also has those of another package.
    private static func unreadable(_ name: String, _ reason: String, in directory: String) -> ZoneFault {
        func exists(_ name: String) -> Bool { fileExists("\(directory)/\(name)") }
        let names = names(in: directory)
        if names.contains(name), !exists(name) { return .notInstalled(name: name, reason: reason) }
        let others = names.filter { $0 != name && exists($0) }
        return .unreadable(name: name, reason: reason, nearest: nearestName(to: name, among: [utc.name] + others))
    }

    /// Every zone and every alias.
    private static func names(in directory: String) -> [String] {
        let list = (try? readFile("\(directory)/tzdata.zi", limitBytes: limitListBytes)) ?? []
        // `Z NAME ...` is a zone, `L OTHER NAME` an alias of one.
        return list.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let words = line.split(separator: UInt8(ascii: " "), maxSplits: 3)
            switch (words.first?.first, words.count) {
            case (UInt8(ascii: "Z"), 2...): return String(decoding: words[1], as: UTF8.self)
            case (UInt8(ascii: "L"), 3...): return String(decoding: words[2], as: UTF8.self)
            default: return nil
            }
        }
    }

    /// nil if neither of the two files that may contain the version has it. Blocks on the disk.
    public static func dataVersion(in directory: String = Zone.directory) -> String? {
        let opening = "# version "
        if let line = firstLine("\(directory)/tzdata.zi"), line.hasPrefix(opening),
            let version = version(String(line.dropFirst(opening.count)))
        {
            return version
        }
        return firstLine("\(directory)/+VERSION").flatMap(version)
    }

    private static func firstLine(_ path: String) -> String? {
        guard let bytes = try? readFile(path, limitBytes: limitListBytes) else { return nil }
        return String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    /// As its authors write them: 2025b, or 2025b-2-g12ab for a patched release. Data that was built from no release
    /// says "unknown".
    private static func version(_ text: String) -> String? {
        let isVersion = text.utf8.allSatisfy { isLetterOrDigit($0) || "._+-".utf8.contains($0) }
        return isVersion && (1...64).contains(text.utf8.count) && text != "unknown" ? text : nil
    }
}
