import Foundation
import Platform
import Testing

@testable import CommandLine
@testable import Roles
@testable import Tools

private func version(_ library: LibraryVersion, _ arguments: [String] = []) -> (data: String, messages: [String]) {
    let recorder = Recorder()
    let program = Program(commands: [.version(of: [library] + LibraryVersion.all.dropFirst())], judge: { _ in [] })
    #expect(program.run(["version"] + arguments, environment: [], output: recorder.output) == .done)
    return (recorder.data, recorder.messages)
}

private func librdkafka(_ running: String, headers: String = "2.0.2") -> LibraryVersion {
    LibraryVersion(name: "librdkafka", running: running, headers: headers)
}

@Suite struct `The version command` {
    @Test func `shows the program, the compiler and each library`() {
        let lines = version(librdkafka("2.12.0", headers: "2.0.2")).data.split(separator: "\n")
        #expect(lines.count == 10)
        #expect(lines[0] == "Perennial 0.2.0")
        #expect(lines[1].hasPrefix("Swift 6."))
        #expect(lines[2] == "librdkafka 2.12.0 (built with 2.0.2)")
        #expect(lines[3].hasPrefix("OpenSSL 3."))
        #expect(lines[4].hasPrefix("RocksDB "))
        #expect(lines[5].hasPrefix("libmicrohttpd "))
        #expect(lines[6].hasPrefix("GnuTLS 3."))
        #expect(lines[7].hasPrefix("libcurl "))
        #expect(lines[8].hasPrefix("simdjson "))
        #expect(lines[9].hasPrefix("time zones 20"))
    }

    private static let names = [
        "librdkafka", "OpenSSL", "RocksDB", "libmicrohttpd", "GnuTLS", "libcurl", "simdjson",
    ]

    @Test func `tells programs the same as JSON`() throws {
        let outcome = version(librdkafka("2.0.2"), ["--format", "json"])
        let object = try #require(try JSONSerialization.jsonObject(with: Data(outcome.data.utf8)) as? [String: Any])
        #expect(object["perennial"] as? String == "0.2.0")
        let libraries = try #require(object["libraries"] as? [[String: String]])
        #expect(libraries.map { $0["name"] } == Self.names)
        #expect(libraries[0] == ["name": "librdkafka", "running": "2.0.2", "headers": "2.0.2"])
        let warnings = try #require(object["warnings"] as? [String])
        #expect(warnings.map { "warning: \($0)" } == outcome.messages)
    }

    @Test func `reads the versions of the libraries in this process`() throws {
        #expect(LibraryVersion.all.map(\.name) == Self.names)
        for library in LibraryVersion.all {
            #expect(VersionNumber(library.running) != nil, "\(library.name) \(library.running)")
            #expect(VersionNumber(library.running) == VersionNumber(library.headers), "built and run on one machine")
        }
    }

    @Test(arguments: [
        ("2.0.2", ["SCRAM", "Kafka 4.0.0", "chain", "truncated"]), ("2.6.0", ["SCRAM", "Kafka 4.0.0", "chain"]),
        ("2.6.1", ["Kafka 4.0.0", "chain"]), ("2.8.0", ["Kafka 4.0.0"]), ("2.10.1", ["Kafka 4.0.0"]), ("2.11.0", []),
        ("2.16.0-RC1", []),
    ])
    func `warns of faults of the version that runs, until the one that mends them`(_ running: String, _ words: [String])
    {
        let warnings = librdkafka(running).warnings
        #expect(warnings.count == words.count)
        for (warning, word) in zip(warnings, words) { #expect(warning.contains(word)) }
    }

    @Test(arguments: [("3.0.6", 2), ("3.0.7", 1), ("3.0.8", 0), ("3.0.22", 0), ("3.5.0", 0), ("1.1.1", 0)])
    func `warns of an OpenSSL that a certificate can overrun`(_ running: String, _ count: Int) {
        #expect(LibraryVersion(name: "OpenSSL", running: running, headers: "1.0.0").warnings.count == count)
    }

    @Test(arguments: [("0.9.75", true), ("1.0.1", true), ("1.0.4", true), ("1.0.5", false), ("1.1.0", false)])
    func `warns of an HTTP library that reads otherwise than the proxy before it`(_ running: String, _ warns: Bool) {
        let library = LibraryVersion(name: "libmicrohttpd", running: running, headers: "0.9.75")
        #expect(library.warningBehindProxy?.contains("ingest.tls.certificate") == (warns ? true : nil))
        // Most installations have no proxy, or terminate TLS themselves.
        #expect(library.warnings == [])
    }

    @Test func `warns of a library that is older than its headers, or unreadable`() {
        let older = LibraryVersion(name: "RocksDB", running: "7.8.3", headers: "7.10.2")
        #expect(
            older.warnings == [
                "RocksDB 7.8.3 is older than 7.10.2, which this program was built with; install that version"
            ])
        #expect(LibraryVersion(name: "RocksDB", running: "seven", headers: "7.8.3").warnings.count == 1)
    }
}
