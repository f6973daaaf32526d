// Floods that cost their sender nothing and need no key.

import Crypto
import IngestTestKit
import Testing

enum FloodKind: String, CaseIterable, CustomTestStringConvertible {
    case mediaType = "`Content-Type` of 15,000 semicolons"
    case chain = "the public chain, `kid` and signature made up"
    case transaction = "a customer's transaction in 256 KiB, with other members each time"
    case unfinished = "2,500 bodies of 256 KiB but for the last byte"
    case unfinishedOfMany = "2,500 such bodies from 16 addresses"
    case silent = "3,300 connections that say nothing"
    case silentOfMany = "3,300 silent connections from 16 addresses"
    case silentOfStrangers = "3,300 from an address that `ingest.allow` refuses"
    case expectation = "`Expect: 100-continue` on GET, and a stray byte"
    case repeated = "one genuine notification again and again"
    case slowHeads = "200 slow heads for the admin server"

    var testDescription: String { "\(self)" }

    /// False for floods that take TLS handshakes away from others.
    var isPlaintext: Bool { ![.silent, .silentOfMany, .silentOfStrangers].contains(self) }

    var sources: [String] {
        switch self {
        case .unfinishedOfMany, .silentOfMany: (1...16).map { "127.0.2.\($0)" }
        default: ["127.0.0.2"]
        }
    }

    /// The value of `rejected.max.bytes.per.hour`: less than arrives within the seconds of the short form.
    var rejectedLimitBytes: Int { self == .transaction ? 1 << 20 : 8 << 20 }

    var settings: [String] {
        ["--rejected.max.bytes.per.hour", "\(rejectedLimitBytes)"]
            + (self == .silentOfStrangers ? ["--ingest.allow", "\(FloodRun.genuineSource)/32"] : [])
    }

    var isAboutAdmin: Bool { self == .slowHeads }

    private var isSilent: Bool { !isPlaintext }

    var connections: Int {
        switch self {
        case .mediaType, .chain, .transaction, .expectation, .repeated: 32
        case .unfinished, .unfinishedOfMany: 2_500
        case .silent, .silentOfMany, .silentOfStrangers: 3_300
        case .slowHeads: 200
        }
    }

    /// Requests per second. A flood that the server can close at once has as many as can be open within the server's three
    /// seconds. A flood whose requests cost much has as many as one sender can afford: with few requests, much of the cost is
    /// waking up.
    var rate: Double {
        switch self {
        case .silent, .silentOfMany, .silentOfStrangers: 1_100
        case .chain: 1_500
        case .transaction: 800
        case .unfinishedOfMany: 1_000
        default: 300
        }
    }

    /// The answer that nearly all requests of the flood get. If the flood gets another answer, it does not test what it is meant
    /// to test. Empty: the connection is closed, with or without an answer.
    var usualStatuses: [Int] {
        switch self {
        case .mediaType: [415]
        case .chain, .expectation: [400]
        case .repeated: [200]
        // The first while there is room to store the body, the second after that.
        case .transaction: [200, 503]
        case .unfinished, .unfinishedOfMany, .silent, .silentOfMany, .silentOfStrangers, .slowHeads: []
        }
    }

    func requests(_ fixture: NotificationFixture) throws -> Bodies {
        var requests = Bodies()
        for request in try texts(fixture) { requests.append(request) }
        return requests
    }

    private func texts(_ fixture: NotificationFixture) throws -> [[UInt8]] {
        switch self {
        case .mediaType:
            [Self.post(Array("{}".utf8), mediaType: String(repeating: ";", count: 15_000))]
        case .chain:
            try (0..<512).map { Self.post(NotificationFixture.body(try Self.forged(fixture.payloads[0], number: $0))) }
        case .transaction:
            fixture.transactions.prefix(300).map { Self.post(Self.padded($0)) }
        case .unfinished, .unfinishedOfMany:
            [Array(Self.post(Self.padded(fixture.transactions[0])).dropLast())]
        case .silent, .silentOfMany, .silentOfStrangers: [[]]
        case .expectation:
            [Array("GET /notifications HTTP/1.1\r\nHost: flood\r\nExpect: 100-continue\r\n\r\nX".utf8)]
        case .repeated: [Self.post(NotificationFixture.body(fixture.payloads[0]))]
        case .slowHeads: [Array("GET /livez HTTP/1.1\r\nHost: fl".utf8)]
        }
    }

    private static func post(_ body: [UInt8], mediaType: String = "application/json") -> [UInt8] {
        let head =
            "POST /notifications HTTP/1.1\r\nHost: flood\r\nContent-Type: \(mediaType)\r\n"
            + "Content-Length: \(body.count)\r\n\r\n"
        return Array(head.utf8) + body
    }

    /// The largest body that is allowed.
    private static func padded(_ payload: [UInt8]) -> [UInt8] {
        let start = #","junk":"\#(Flood.number)"#
        let missing = (256 << 10) - NotificationFixture.body(payload, more: start + "\"").count
        return NotificationFixture.body(payload, more: start + String(repeating: "x", count: missing) + "\"")
    }

    /// A genuine text with a `kid` in its header and a different signature each time.
    private static func forged(_ payload: [UInt8], number: Int) throws -> [UInt8] {
        let parts = payload.split(separator: UInt8(ascii: "."), maxSplits: 2).map { Array($0) }
        let encoded = parts[0]
        let decoded = Base64.decodeURL(encoded.span)
        let header = try #require(decoded)
        let other = Array(#"{"kid":"\#(number)","#.utf8) + header.dropFirst()
        let dot = [UInt8(ascii: ".")]
        return Base64.encodeURL(other.span) + dot + parts[1] + dot + Array(Flood.number.utf8)
            + parts[2].dropFirst(Flood.number.utf8.count)
    }
}
