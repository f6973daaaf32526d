import Foundation
import Glibc
import HTTPClient
import HTTPTestKit
import KafkaTestKit
import Platform
import Testing

extension RealBroker {
    @Suite(.serialized) struct `The log of ingest` {
        /// Posts per second from the simulated store.
        private static let rate = 60
        /// A whole minute if the kill tests run at full length, too.
        private static var seconds: Int { killRounds > 8 ? 60 : 10 }

        @Test func `of a busy minute, searched for tokens, ids of accounts and payloads, holds none`() async throws {
            let installation = try await Installation.make("log", try await Broker.shared(), partitions: 4)
            let store = try await MakeBelieveStore.open(telling: [
                "--from", "2025-06-01", "--seed", "13", "--environment", "both", "--duplicates", "10",
                // About eleven posts per subscriber.
                "--forgeries", "20", "--subscribers", "\(Self.rate * Self.seconds / 11)",
            ])
            let token = "usage-\(UUID().uuidString)"
            let ingest = try ServiceProcess(
                ["ingest", "--ingest.plaintext", "true", "--ingest.listen", "127.0.0.1:0", "--log.level", "trace"]
                    + store.ingestSettings + installation.settings, environment: ["PERENNIAL_USAGE_TOKEN": token])
            try await ingest.waitUntilReady()
            let port = try await ingest.port("ingest listens")

            let simulator = try store.post(to: port, rate: Self.rate)
            let stranger = Stranger(port: port, token: token, genuine: try store.payload("00000000.jws"))
            let half = try store.payloadCount() / 2
            var secrets = try await stranger.post(rounds: 2 * Self.seconds)
            try await waitUntil("half of the posts are answered", within: patience) { store.answerCount() >= half }
            ingest.process.kill(SIGHUP)
            secrets += try await stranger.post(rounds: 2 * Self.seconds)
            // Exit code 1: some posts were given up, such as those of sandbox, which Apple sends only once.
            let ending = try await simulator.wait(within: .seconds(300))
            #expect([.exited(code: 0), .exited(code: 1)].contains(ending), "\(simulator.lastLines(10))")
            try await ingest.stop()

            for payload in try store.payloadsByHash().values { secrets += Secret.all(inBody: payload) }
            secrets.append(Secret(.token, token))
            secrets.append(Secret(.payload, "eyJ"))
            for kind in Secret.Kind.allCases {
                #expect(secrets.contains { $0.kind == kind }, "no text of kind \(kind) was searched for")
            }
            let log = Array((ingest.process.standardOutput + ingest.process.standardError).utf8)
            // A search through an empty log, or through one without the suspect texts, would find nothing wrong.
            let text = ingest.log
            #expect(text.contains("requests were refused") && text.contains(#""level":"debug""#), "\(text)")
            for outcome in ["bad_signature=", "wrong_app=", "malformed=", "invalid=", "unauthorized="] {
                #expect(text.contains(outcome), "no refusal \(outcome) in \(text)")
            }
            let answers = try store.answers()
            #expect(answers.count { $0.status == 200 } > answers.count / 2)
            let found = Set(secrets).filter { $0.isIn(log) }
            // Does not print the secrets themselves: they may be any 40 bytes.
            #expect(found.isEmpty, "in the log: \(found.map(\.description).sorted().prefix(10))")
        }
    }
}

/// Texts that must not be in the log.
private struct Secret: Hashable, CustomStringConvertible {
    enum Kind: String, CaseIterable { case token, account, transaction, payload }

    let kind: Kind
    private let bytes: [UInt8]

    init(_ kind: Kind, _ bytes: some Sequence<UInt8>) {
        self.kind = kind
        self.bytes = Array(bytes)
    }
    init(_ kind: Kind, _ text: String) { self.init(kind, text.utf8) }

    var description: String { "\(kind) of \(bytes.count) bytes" }

    func isIn(_ log: [UInt8]) -> Bool { memmem(log, log.count, bytes, bytes.count) != nil }

    /// Parts of a body or a signed text: its first bytes, some from its middle, and the ids in it if it can be decoded.
    static func all(inBody body: [UInt8]) -> [Secret] {
        let middle = body.dropFirst(body.count / 2).prefix(40)
        return [Secret(.payload, body.prefix(32)), Secret(.payload, middle)] + ids(inSigned: body[...])
    }

    private static let kinds: [String: Kind] = [
        "appAccountToken": .account, "appTransactionId": .account, "externalPurchaseId": .account,
        "originalTransactionId": .transaction, "transactionId": .transaction, "webOrderLineItemId": .transaction,
    ]

    /// A forgery need not be a signed text.
    private static func ids(inSigned text: ArraySlice<UInt8>) -> [Secret] {
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let payload = decoded(parts[1]),
            let json = try? JSONSerialization.jsonObject(with: payload) as? [String: Any]
        else { return [] }
        return ids(in: json)
    }

    private static func ids(in json: [String: Any]) -> [Secret] {
        json.flatMap { name, value in
            if let kind = kinds[name], let text = value as? String { return [Secret(kind, text)] }
            if let object = value as? [String: Any] { return ids(in: object) }
            if name.hasPrefix("signed"), let text = value as? String { return ids(inSigned: Array(text.utf8)[...]) }
            return []
        }
    }

    private static func decoded(_ part: ArraySlice<UInt8>) -> Data? {
        var text = String(decoding: part, as: UTF8.self).replacing("-", with: "+").replacing("_", with: "/")
        text += String(repeating: "=", count: (4 - text.count % 4) % 4)
        return Data(base64Encoded: text)
    }
}

/// A client that posts what no ingest accepts, some of it with secrets in wrong places, and usage, right and wrong.
private struct Stranger: Sendable {
    let port: UInt16
    let token: String
    let genuine: [UInt8]

    /// Returns the texts that must not be in a log.
    func post(rounds: Int) async throws -> [Secret] {
        try await blocking {
            let client = try HTTPClient()
            defer { client.close() }
            var secrets: [Secret] = []
            func post(_ path: String, _ body: [UInt8], _ status: Int, token: String? = nil) throws {
                var headers = [HTTPClient.Header("Content-Type", "application/json")]
                if let token { headers.append(.init("Authorization", "Bearer \(token)")) }
                let answer = try client.answer(
                    to: .init("POST", "http://127.0.0.1:\(port)\(path)", headers: headers, body: body))
                #expect(answer.status == status, "\(path.prefix(20))")
                secrets += Secret.all(inBody: body)
            }
            for _ in 0..<rounds {
                let wrongToken = "wrong-\(UUID().uuidString)"
                let account = UUID().uuidString.lowercased()
                let id = "2\(UInt64.random(in: 100_000_000_000_000...999_999_999_999_999))"
                secrets += [Secret(.token, wrongToken), Secret(.account, account), Secret(.transaction, id)]
                try post("/notifications", (0..<200).map { _ in UInt8.random(in: 0...255) }, 400)
                try post(
                    "/notifications", Array(#"{"appAccountToken":"\#(account)","transactionId":"\#(id)"}"#.utf8), 400)
                try post("/notifications", MakeBelieveStore.body(genuine.dropLast(100)), 400)
                try post("/notifications", Array(repeating: UInt8(ascii: "x"), count: 300_000), 413)
                try post("/notifications/\(account)?token=\(wrongToken)", MakeBelieveStore.body(genuine), 404)
                let row = #"{"v":1,"originalTransactionId":"\#(id)","transactionId":"\#(id)","consented":true}"#
                try post("/usage", Array(row.utf8), 202, token: token)
                try post("/usage", Array(row.utf8), 401, token: wrongToken)
                try post("/usage", Array(row.replacing("true", with: "\"\(account)\"").utf8), 422, token: token)
                try post("/usage", Array("[\(row)".utf8), 400, token: token)
            }
            return secrets
        }
    }
}
