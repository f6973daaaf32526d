// Versions of the libraries a process runs with, and what is known to be wrong with them.

import COpenSSL
import CRocksDBVersion
import HTTP
import HTTPClient
import JSON
import Kafka

struct LibraryVersion: Sendable, Hashable {
    let name: String
    /// Of the library in the process.
    let running: String
    /// Of the headers this program was built with.
    let headers: String

    init(name: String, running: String, headers: String) {
        self.name = name
        self.running = running
        self.headers = headers
    }

    static var librdkafka: LibraryVersion {
        LibraryVersion(name: "librdkafka", running: Librdkafka.version, headers: Librdkafka.headerVersion)
    }

    static var openSSL: LibraryVersion {
        let running = OpenSSL_version(OPENSSL_VERSION_STRING).map { String(cString: $0) } ?? "unknown"
        return LibraryVersion(name: "OpenSSL", running: running, headers: OPENSSL_VERSION_STR)
    }

    static var rocksDB: LibraryVersion {
        LibraryVersion(
            name: "RocksDB", running: String(cString: perennial_rocksdb_runtime_version()),
            headers: String(cString: perennial_rocksdb_header_version()))
    }

    static var libmicrohttpd: LibraryVersion {
        LibraryVersion(name: "libmicrohttpd", running: Libmicrohttpd.version, headers: Libmicrohttpd.headerVersion)
    }

    static var gnuTLS: LibraryVersion {
        LibraryVersion(name: "GnuTLS", running: GnuTLS.version, headers: GnuTLS.headerVersion)
    }

    static var libcurl: LibraryVersion {
        LibraryVersion(name: "libcurl", running: Libcurl.version, headers: Libcurl.headerVersion)
    }

    static var simdjson: LibraryVersion {
        LibraryVersion(name: "simdjson", running: Simdjson.headerVersion, headers: Simdjson.headerVersion)
    }

    /// What this program is made of.
    static var all: [LibraryVersion] {
        [.librdkafka, .openSSL, .rocksDB, .libmicrohttpd, .gnuTLS, .libcurl, .simdjson]
    }

    /// For an HTTP server without TLS, which has a proxy before it; nil: none.
    var warningBehindProxy: String? {
        guard let version = VersionNumber(running), KnownFault.smuggling.affects(name, version) else { return nil }
        return "\(name) \(running): \(KnownFault.smuggling.words) (fixed in \(KnownFault.smuggling.fixedIn))"
    }

    /// One line each: a library older than its headers, and faults of its version that reach our users.
    var warnings: [String] {
        guard let version = VersionNumber(running) else { return ["\(name): the version \(running) cannot be read"] }
        var warnings: [String] = []
        if let built = VersionNumber(headers), version < built {
            warnings.append(
                "\(name) \(running) is older than the \(headers) this program was built with; install that one")
        }
        return warnings
            + KnownFault.all.filter { $0.affects(name, version) }.map { fault in
                "\(name) \(running): \(fault.words) (fixed in \(fault.fixedIn))"
            }
    }
}

/// Compared number by number; what follows the third one is left out.
struct VersionNumber: Comparable, CustomStringConvertible {
    let parts: [Int]

    init(_ major: Int, _ minor: Int, _ patch: Int) { parts = [major, minor, patch] }

    /// nil without three numbers at the beginning.
    init?(_ text: String) {
        let numbers = text.split(separator: ".").prefix(3).compactMap { part in
            Int(part.prefix { ("0"..."9").contains($0) })
        }
        guard numbers.count == 3 else { return nil }
        parts = numbers
    }

    static func < (left: VersionNumber, right: VersionNumber) -> Bool {
        left.parts.lexicographicallyPrecedes(right.parts)
    }

    var description: String { parts.map(String.init).joined(separator: ".") }
}

/// Only what users can do something about; what the code works around is explained where it does.
struct KnownFault {
    let library: String
    /// nil: in every version before the fix.
    let since: VersionNumber?
    let fixedIn: VersionNumber
    let words: String

    func affects(_ library: String, _ version: VersionNumber) -> Bool {
        library == self.library && version < fixedIn && since.map { $0 <= version } ?? true
    }

    /// Who speaks TLS with its clients itself has nobody before it who could read otherwise.
    static let smuggling = KnownFault(
        library: "libmicrohttpd", since: nil, fixedIn: VersionNumber(1, 0, 5),
        words:
            "it may read a request otherwise than the proxy before it; what is known of that is refused, the rest is not; "
            + "install a newer one, or let ingest have TLS itself (ingest.tls.certificate, ingest.tls.key)")

    static let all = [
        // https://github.com/confluentinc/librdkafka/issues/4895
        KnownFault(
            library: "librdkafka", since: nil, fixedIn: VersionNumber(2, 6, 1),
            words: "SCRAM cannot sign in to Kafka 4; use mutual TLS, or PLAIN over TLS"),
        // https://issues.apache.org/jira/browse/KAFKA-19444
        KnownFault(
            library: "librdkafka", since: nil, fixedIn: VersionNumber(2, 11, 0),
            words: "consumer groups do not work with Kafka 4.0.0; use Kafka up to 3.9, or from 4.0.1"),
        KnownFault(
            library: "librdkafka", since: nil, fixedIn: VersionNumber(2, 8, 0),
            words:
                "of a client certificate the chain is not sent; use one issued directly by a CA that the brokers know"),
        KnownFault(
            library: "librdkafka", since: nil, fixedIn: VersionNumber(2, 1, 0),
            words: "a log that became shorter is not noticed; keep unclean.leader.election.enable=false on the topics"),
        KnownFault(
            library: "OpenSSL", since: VersionNumber(3, 0, 0), fixedIn: VersionNumber(3, 0, 7),
            words: "CVE-2022-3602 and CVE-2022-3786: a certificate can overrun a buffer; update before going on"),
        KnownFault(
            library: "OpenSSL", since: VersionNumber(3, 0, 0), fixedIn: VersionNumber(3, 0, 8),
            words: "CVE-2023-0286: a certificate list can make the process read foreign memory; update before going on"),
    ]
}
