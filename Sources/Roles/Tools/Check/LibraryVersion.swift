// Versions of the libraries of the process, and their known faults.

import COpenSSL
import CRocksDBVersion
import HTTP
import HTTPClient
import JSON
import Kafka

package struct LibraryVersion: Sendable, Hashable {
    package let name: String
    /// The version of the library in the process.
    package let running: String
    /// The version of the headers that this program was built with.
    package let headers: String

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

    package static var libmicrohttpd: LibraryVersion {
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

    /// All libraries of this program.
    package static var all: [LibraryVersion] {
        [.librdkafka, .openSSL, .rocksDB, .libmicrohttpd, .gnuTLS, .libcurl, .simdjson]
    }

    /// A warning for an HTTP server without TLS, which is behind a proxy; nil: no fault is known.
    package var warningBehindProxy: String? {
        guard let version = VersionNumber(running), KnownFault.smuggling.affects(name, version) else { return nil }
        return "\(name) \(running): \(KnownFault.smuggling.words) (fixed in \(KnownFault.smuggling.fixedIn))"
    }

    /// One line each: a library that is older than its headers, and faults of its version that affect users.
    package var warnings: [String] {
        guard let version = VersionNumber(running) else { return ["\(name): cannot read its version \(running)"] }
        var warnings: [String] = []
        if let built = VersionNumber(headers), version < built {
            warnings.append(
                "\(name) \(running) is older than \(headers), which this program was built with; install that version")
        }
        return warnings
            + KnownFault.all.filter { $0.affects(name, version) }.map { fault in
                "\(name) \(running): \(fault.words) (fixed in \(fault.fixedIn))"
            }
    }
}

/// Compares three numbers; the rest of the text is ignored.
struct VersionNumber: Comparable, CustomStringConvertible {
    let parts: [Int]

    init(_ major: Int, _ minor: Int, _ patch: Int) { parts = [major, minor, patch] }

    /// nil: the text does not begin with three numbers.
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

/// Only faults that users can do something about. Faults with a workaround in the code are explained there.
struct KnownFault {
    let library: String
    /// nil: every version before the fix has the fault.
    let since: VersionNumber?
    let fixedIn: VersionNumber
    let words: String

    func affects(_ library: String, _ version: VersionNumber) -> Bool {
        library == self.library && version < fixedIn && since.map { $0 <= version } ?? true
    }

    /// Only for servers behind a proxy: if a server terminates TLS itself, no proxy can read a request differently.
    static let smuggling = KnownFault(
        library: "libmicrohttpd", since: nil, fixedIn: VersionNumber(1, 0, 5),
        words:
            "it may read a request differently from the proxy in front of it. Known cases are refused, others are not; "
            + "to exclude them all, let ingest terminate TLS (ingest.tls.certificate, ingest.tls.key)")

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
                "it does not send the chain of a client certificate; use one issued directly by a CA of the brokers"),
        KnownFault(
            library: "librdkafka", since: nil, fixedIn: VersionNumber(2, 1, 0),
            words: "it does not notice a truncated log; keep unclean.leader.election.enable=false on the topics"),
        KnownFault(
            library: "OpenSSL", since: VersionNumber(3, 0, 0), fixedIn: VersionNumber(3, 0, 7),
            words: "CVE-2022-3602 and CVE-2022-3786: a certificate can overrun a buffer; update before going on"),
        KnownFault(
            library: "OpenSSL", since: VersionNumber(3, 0, 0), fixedIn: VersionNumber(3, 0, 8),
            words: "CVE-2023-0286: a certificate list can make the process read foreign memory; update before going on"),
    ]
}
