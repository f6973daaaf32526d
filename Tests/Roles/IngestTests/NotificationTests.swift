import AppStore
import Configuration
import Contract
import Crypto
import HTTPClient
import KafkaTestKit
import Log
import TestTraits
import Testing

@testable import Ingest

@Suite(.ownThreads) struct `A notification` {
    @Test func `of type TEST is published and answered 200`() throws {
        let door = try Door()
        defer { door.stop() }
        let answer = try door.notify(Apple.body(environment: "Sandbox"))
        #expect(answer.status == 200 && answer.body.isEmpty)
        let record = try #require(door.log.records(of: .notifications).first)
        #expect(record.environment == .sandbox)
        // It has neither transaction nor renewal info to get a key from.
        #expect(record.key == Array("u-1".utf8))
        #expect(record.timestamp == Apple.now)
        #expect(
            record.headers == [
                RecordHeader("id", "u-1"), RecordHeader("schema", "notification/1"),
                RecordHeader("app", "perennial/test"),
            ])
        let value = String(decoding: record.value, as: UTF8.self)
        #expect(value.contains(#""notificationType":"TEST""#) && value.contains(#""source":"push""#))
        #expect(value.contains(#""receivedDate":\#(Apple.now)"#))
        #expect(door.outcome("accepted") == 1)
        #expect(door.metric("perennial_ingest_notification_age_seconds_sum") == 1)
    }

    @Test func `is archived as it was signed, in one publication with its record`() throws {
        let door = try Door()
        defer { door.stop() }
        let body = Apple.body()
        #expect(try door.notify(body).status == 200)
        let publication = try #require(door.log.publications.first)
        #expect(publication.records.map(\.topic) == [.notifications, .signed])
        #expect(publication.records[1].value == (try NotificationBody.signedPayload(of: body)))
        #expect(publication.records[1].key == publication.records[0].key)
        #expect(publication.records[1].environment == .production)
    }

    @Test(arguments: [(Contract.Environment.production, "Production"), (.sandbox, "Sandbox")])
    func `is written to the topics of its own environment, the signed text too`(
        _ environment: Contract.Environment, _ name: String
    ) throws {
        let door = try Door()
        defer { door.stop() }
        #expect(try door.notify(Apple.body(environment: name)).status == 200)
        #expect(door.log.records.map(\.topic) == [.notifications, .signed])
        #expect(door.log.records.map(\.environment) == [environment, environment])
    }

    @Test func `is not archived when that is turned off`() throws {
        let door = try Door { $0.archivesSignedPayloads = false }
        defer { door.stop() }
        #expect(try door.notify(Apple.body()).status == 200)
        #expect(door.log.records.map(\.topic) == [.notifications])
    }

    @Test func `that Kafka has acknowledged is answered 200 again, and not written once more`() throws {
        let door = try Door(FakeLog(.outcome(.failed(.timedOut))))
        defer { door.stop() }
        // A record that is not acknowledged is retried.
        #expect(try door.notify(Apple.body()).status == 503)
        door.log.answer(.outcome(.written))
        for _ in 0..<3 { #expect(try door.notify(Apple.body()).status == 200) }
        #expect(door.log.records(of: .notifications).count == 2)
        #expect(door.outcome("accepted") == 1 && door.outcome("repeated") == 2)
        // Whatever other members are beside it.
        let padded = Array(#"{"more":[1],"#.utf8) + Apple.body().dropFirst()
        #expect(try door.notify(padded).status == 200 && door.outcome("repeated") == 3)
        #expect(try door.notify(Apple.body(uuid: "u-2")).status == 200)
        #expect(door.outcome("accepted") == 2)
    }

    @Test(arguments: PublishFailure.allCases)
    func `that Kafka does not have is answered 503 and called for again`(_ failure: PublishFailure) throws {
        let door = try Door(FakeLog(.outcome(.failed(failure))))
        defer { door.stop() }
        let answer = try door.notify(Apple.body())
        #expect(answer.status == 503 && answer.header("Retry-After") == "60")
        #expect(answer.text == #"{"error":"\#(failure.rawValue)"}"#)
        #expect(door.outcome("accepted") == 0 && door.outcome(failure.rawValue) == 1)
    }

    @Test func `without a verdict on revocation is answered 503, and nothing is written`() throws {
        let door = try Door(
            judge: VerifierPool(Apple.policy, watch: FakeResponder(.unknown), isRevocationRequired: true))
        defer { door.stop() }
        #expect(try door.notify(Apple.body()).status == 503)
        #expect(door.log.records.isEmpty)
        #expect(door.outcome("no_verdict") == 1)
    }

    @Test func `under hard revocation is judged when Apple has answered`() throws {
        let good = try Door(judge: VerifierPool(Apple.policy, watch: FakeResponder(.good), isRevocationRequired: true))
        defer { good.stop() }
        #expect(try good.notify(Apple.body()).status == 200)
        let revoked = try Door(
            judge: VerifierPool(Apple.policy, watch: FakeResponder(.revoked), isRevocationRequired: true))
        defer { revoked.stop() }
        let answer = try revoked.notify(Apple.body())
        #expect(answer.status == 400 && answer.text == #"{"error":"revoked"}"#)
    }

    @Test func `passes under soft revocation while nothing is known`() throws {
        let door = try Door(
            judge: VerifierPool(Apple.policy, watch: FakeResponder(.unknown), isRevocationRequired: false))
        defer { door.stop() }
        #expect(try door.notify(Apple.body()).status == 200)
    }
}

extension Acknowledged {
    fileprivate func note(_ text: [UInt8], now: Int64) {
        let hash = SHA256.digest(text.span)
        _ = begin(text, hash: hash, now: now) { _ in }
        _ = complete(text, hash: hash, .written, now: now)
        end(hash)
    }
}

@Suite(.ownThreads) struct `What Kafka has acknowledged` {
    private static let generation: Int64 = 3 * 3_600_000

    @Test func `is known for some hours`() {
        let known = Acknowledged(generationMilliseconds: Self.generation)
        known.note([1], now: Apple.now)
        #expect(known.contains([1], now: Apple.now) && !known.contains([2], now: Apple.now))
        #expect(known.contains([1], now: Apple.now + Self.generation - 1))
        // The previous generation is kept while the next one grows.
        #expect(known.contains([1], now: Apple.now + Self.generation))
        #expect(known.contains([1], now: Apple.now + 2 * Self.generation - 1))
        #expect(!known.contains([1], now: Apple.now + 2 * Self.generation))
    }

    @Test func `is not known by a clock that was set back, or after a long silence`() {
        let known = Acknowledged(generationMilliseconds: Self.generation)
        known.note([1], now: Apple.now)
        #expect(!known.contains([1], now: Apple.now - Acknowledged.disorderMilliseconds - 1))
        known.note([2], now: Apple.now)
        #expect(!known.contains([2], now: Apple.now + 2 * Self.generation))
    }

    /// Threads process requests in another order than that of arrival.
    @Test func `is known also to a request that came a little earlier`() {
        let known = Acknowledged(generationMilliseconds: Self.generation)
        known.note([1], now: Apple.now)
        let turn = Apple.now + Self.generation
        known.note([2], now: turn)
        known.note([3], now: turn - 1)
        for hash in [[1], [2], [3]] as [[UInt8]] { #expect(known.contains(hash, now: turn)) }
    }

    @Test func `takes no more memory than two generations`() {
        let known = Acknowledged(generationMilliseconds: Self.generation)
        func text(_ number: Int) -> [UInt8] { withUnsafeBytes(of: number) { Array($0) } }
        for number in 0..<2 * Acknowledged.limitEach + 1 { known.note(text(number), now: 1000) }
        #expect(!known.contains(text(0), now: 1000))
        #expect(known.contains(text(Acknowledged.limitEach), now: 1000))
        #expect(known.contains(text(2 * Acknowledged.limitEach), now: 1000))
    }

    /// While Kafka stands still nothing is acknowledged, and a client that repeats one notification could fill the queue.
    @Test func `or will acknowledge is not sent a second time meanwhile`() async throws {
        let door = try Door(FakeLog(.silence))
        defer { door.stop() }
        let body = Apple.body()
        async let first = blocking { try door.notify(body).status }
        try await waitUntil("the first is sent") { door.log.publications.count == 1 }
        async let second = blocking { try door.notify(body).status }
        try await waitUntil("the second waits") {
            door.metric("perennial_http_requests_in_flight{server=\"test\"}") == 2
        }
        door.log.publications[0].finish(.failed(.timedOut))
        #expect(try await [first, second] == [503, 503])
        #expect(try await blocking { try door.notify(body).status } == 503, "it may still come")
        #expect(door.log.publications.count == 1)
        door.log.publications[0].end(wasSent: true)
        door.log.answer(.outcome(.written))
        #expect(try await blocking { try door.notify(body).status } == 200)
        #expect(door.log.publications.count == 2 && door.outcome("accepted") == 1)
    }

    @Test func `is not known where nothing is to be`() {
        let known = Acknowledged(generationMilliseconds: 0)
        known.note([1], now: Apple.now)
        #expect(!known.contains([1], now: Apple.now))
    }

    /// The end of a text finds it in the cache. But another text with the same end must still be verified.
    @Test func `is known by all of its bytes`() {
        let known = Acknowledged(generationMilliseconds: Self.generation)
        let end = [UInt8](repeating: 7, count: 86)
        known.note([1] + end, now: Apple.now)
        #expect(known.contains([1] + end, now: Apple.now))
        #expect(!known.contains([2] + end, now: Apple.now) && !known.contains([1] + end.dropLast(), now: Apple.now))
    }
}

/// Bodies that the endpoint refuses before it looks for a signature, and one that it must not refuse.
@Suite(.ownThreads) struct `A body` {
    /// Without `signedPayload`, with two of them, with one that is not a string, of version 1, or without any JSON.
    @Test(
        arguments: [
            "", "{", "[]", "null", #"{"signedPayload":1}"#, #"{"signedPayload":null}"#,
            #"{"signedPayload":"a","signedPayload":"b"}"#,
            #"{"notification_type":"DID_RENEW","auto_renew_status":"1"}"#,
            #"{"signedPayload":"not.a.jws"}"#, "\u{FEFF}{}",
        ])
    func `that holds no signed text is malformed`(_ body: String) throws {
        let door = try Door()
        defer { door.stop() }
        let answer = try door.notify(Array(body.utf8))
        #expect(answer.status == 400 && answer.text == #"{"error":"malformed"}"#)
        #expect(door.log.records(of: .notifications).isEmpty)
    }

    @Test func `that nests too deeply is malformed`() throws {
        let door = try Door()
        defer { door.stop() }
        let deep = #"{"signedPayload":"a","x":"# + String(repeating: "[", count: 100_000) + "}"
        #expect(try door.notify(Array(deep.utf8)).status == 400)
    }

    @Test func `over the limit is too large`() throws {
        let door = try Door()
        defer { door.stop() }
        let answer = try door.notify([UInt8](repeating: 0x20, count: (256 << 10) + 1))
        #expect(answer.status == 413 && answer.text == #"{"error":"too_large"}"#)
        #expect(door.log.records.isEmpty)
    }

    @Test func `may have members that are not known`() throws {
        let door = try Door()
        defer { door.stop() }
        let jws = try NotificationBody.signedPayload(of: Apple.body())
        let body = Array(#"{"new":[1,{"a":null}],"signedPayload":""#.utf8) + jws + Array(#""}"#.utf8)
        #expect(try door.notify(body).status == 200)
    }
}

@Suite struct `What is refused` {
    /// "Answers by reason" in docs/reference/ingest-http.md, row by row.
    @Test func `is treated by its reason and by where it comes from`() {
        let refused: [RejectionReason] = [.malformed, .badAlgorithm, .badChainLength, .badSignature]
        let chain: [RejectionReason] = [.badCertificate, .untrustedChain, .missingMarker, .expiredChain, .revoked]
        let genuine: [RejectionReason] = [.wrongApp, .wrongEnvironment, .inconsistent, .inFuture]
        #expect(Set(refused + chain + genuine + [.tooLarge]) == Set(RejectionReason.allCases))
        for fromApple in [true, false] {
            for reason in refused { #expect(reason.treatment(fromApple: fromApple) == .refuse) }
            for reason in genuine { #expect(reason.treatment(fromApple: fromApple) == .quarantine) }
            #expect(RejectionReason.tooLarge.treatment(fromApple: fromApple) == .tooLarge)
        }
        for reason in chain {
            #expect(reason.treatment(fromApple: true) == .keepAndAskAgain)
            #expect(reason.treatment(fromApple: false) == .refuse)
        }
    }
}
