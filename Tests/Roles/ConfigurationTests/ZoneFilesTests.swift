import Foundation
import Testing
import Zone

@testable import Configuration

/// A folder of zones that is deleted after the test.
private final class ZoneFolder {
    let path = FileManager.default.temporaryDirectory.path + "/perennial-\(UUID().uuidString)"

    init(_ files: [String: [UInt8]]) throws {
        for (name, bytes) in files {
            let file = URL(fileURLWithPath: "\(path)/\(name)")
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(bytes).write(to: file)
        }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}

private let berlin = (try? Data(contentsOf: URL(fileURLWithPath: "\(Zone.directory)/Europe/Berlin"))).map([UInt8].init)

@Suite struct `The time zones of a machine` {
    @Test(
        arguments: [
            (["tzdata.zi": "# version 2031c\n# This zic input file is in the public domain.\n"], "2031c"),
            (["tzdata.zi": "# version 2031c-7-g0aff\nZ"], "2031c-7-g0aff"),
            (["+VERSION": "2031d\n"], "2031d"), (["+VERSION": "2031d"], "2031d"),
            (["tzdata.zi": "# version 2031c\n", "+VERSION": "2031d\n"], "2031c"),
            (["tzdata.zi": "# version unknown\n", "+VERSION": "2031d\n"], "2031d"),
            (["tzdata.zi": "# version two words\n", "+VERSION": ""], nil), (["tzdata.zi": "", "+VERSION": "\n"], nil),
            ([:], nil),
        ] as [([String: String], String?)])
    func `tell the version of their data`(_ lists: [String: String], _ version: String?) throws {
        let berlin = try #require(berlin)
        let folder = try ZoneFolder(
            lists.mapValues { Array($0.utf8) }.merging(["Europe/Berlin": berlin]) { $1 })
        let zone = try Zone(name: "Europe/Berlin", directory: folder.path)
        #expect(zone.dataVersion == version ?? Zone.version(of: berlin))
        #expect(zone.name == "Europe/Berlin")
    }

    @Test func `have a version of their own when nothing tells it`() throws {
        let berlin = try #require(berlin)
        // FNV-1a's own test vectors.
        #expect(Zone.version(of: []) == "unknown-cbf29ce484222325")
        #expect(Zone.version(of: Array("a".utf8)) == "unknown-af63dc4c8601ec8c")
        #expect(Zone.version(of: Array("foobar".utf8)) == "unknown-85944171f73967e8")
        #expect(Zone.version(of: berlin) != Zone.version(of: berlin.dropLast()))
        #expect(Zone.version(of: berlin).wholeMatch(of: /unknown-[0-9a-f]{16}/) != nil)
    }

    @Test func `are not needed for UTC`() throws {
        let zone = try Zone(name: "UTC", directory: "/nonexistent")
        #expect(zone.fingerprint == "UTC@UTC")
    }

    @Test(arguments: ["", "../etc/passwd", "/etc/passwd", "Europe/../../etc/passwd", "localtime", "Europe//Berlin"])
    func `are looked for under no other name`(_ name: String) throws {
        #expect(throws: ZoneFault.notAName(name)) { try Zone(name: name) }
    }

    @Test func `that cannot be read are told with what to do`() throws {
        let folder = try ZoneFolder([
            "Europe/Berlin": Array("TZif".utf8), "Europe/Paris": [UInt8](repeating: 0, count: 1 << 17),
        ])
        let expected = [
            (
                "Europe/Berlin",
                "it is truncated, or its header announces more data than the file contains; reinstall the package tzdata"
            ),
            ("Europe/Paris", "Europe/Paris: it is larger than 65536 bytes; use a name such as Europe/Berlin"),
            ("Europe/Rome", "Europe/Rome: No such file or directory; use a name such as Europe/Berlin"),
            ("Europe", "it is not a regular file; use a name such as Europe/Berlin"),
        ]
        for (name, words) in expected {
            let fault = #expect(throws: ZoneFault.self) { try Zone(name: name, directory: folder.path) }
            #expect(fault?.description.contains(words) == true, "\(fault?.description ?? "")")
            #expect(fault?.description.contains("\"\(name)\"") == true)
        }
    }

    @Test(arguments: [
        ("utc", "UTC"), ("europe/berlin", "Europe/Berlin"), ("Asia/Calcuta", "Asia/Calcutta"), ("us/eastern", nil),
    ])
    func `that are written otherwise are found by their names`(_ name: String, _ meant: String?) throws {
        let list = """
            # version 2031c
            R d 1916 o - Jun 14 23s 1 S
            Z Europe/Berlin 0:53:28 - LMT 1893 Ap
            1 c CE%sT 1980
            L Asia/Kolkata Asia/Calcutta
            L America/New_York US/Eastern
            """
        let folder = try ZoneFolder(["tzdata.zi": Array(list.utf8), "Europe/Berlin": [], "Asia/Calcutta": []])
        let fault = #expect(throws: ZoneFault.self) { try Zone(name: name, directory: folder.path) }
        let end = meant.map { "No such file or directory; did you mean \($0)?" } ?? "if it is missing"
        #expect(fault?.description.hasSuffix(end) == true, "\(fault?.description ?? "")")
    }

    /// As on Debian 13 without tzdata-legacy.
    @Test func `that are in the list but not on the disk are told with the package that has them`() throws {
        let list = "# version 2031c\nL America/New_York US/Eastern\n"
        let folder = try ZoneFolder(["tzdata.zi": Array(list.utf8), "America/New_York": []])
        let fault = #expect(throws: ZoneFault.self) { try Zone(name: "US/Eastern", directory: folder.path) }
        let words = "the data of time zone \"US/Eastern\" is missing: cannot read \(folder.path)/US/Eastern: "
        #expect(fault?.description.hasPrefix(words) == true, "\(fault?.description ?? "")")
        #expect(fault?.description.contains("tzdata-legacy") == true)
    }

    @Test func `that count leap seconds are not taken`() throws {
        var leaping = try #require(berlin)
        let second = try #require((5..<leaping.count).first { leaping[$0...].starts(with: "TZif".utf8) })
        leaping[second + 31] = 1
        leaping.insert(contentsOf: [UInt8](repeating: 0, count: 12), at: leaping.count - 40)
        let folder = try ZoneFolder(["right/Europe/Berlin": leaping])
        let fault = #expect(throws: ZoneFault.self) { try Zone(name: "right/Europe/Berlin", directory: folder.path) }
        #expect(fault?.description.contains("without right/") == true, "\(fault?.description ?? "")")
    }
}
