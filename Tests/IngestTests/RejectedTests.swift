import AppStore
import Configuration
import Contract
import Crypto
import HTTPClient
import KafkaTestKit
import Log
import Telemetry
import TestTraits
import Testing

@testable import Ingest

@Suite(.ownThreads) struct `A refused body` {
    @Test func `is answered with its reason and kept`() throws {
        let door = try Door()
        defer { door.stop() }
        let body = Array("nonsense".utf8)
        let answer = try door.notify(body, from: "198.51.100.7")
        #expect(answer.status == 400 && answer.text == #"{"error":"malformed"}"#)
        let record = try #require(door.log.records.first)
        let digest = hexadecimal(SHA256.digest(body.span))
        #expect(record.topic == .rejected && record.environment == .production)
        #expect(record.key == Array(digest.utf8) && record.value == body)
        #expect(record.header("reason") == "malformed" && record.header("id") == digest)
        #expect(record.header("first-timestamp") == String(Apple.now))
        #expect(door.kept("malformed", true) == 1 && door.outcome("malformed") == 1)
    }

    @Test func `is answered 400 also when it cannot be kept`() throws {
        let door = try Door(FakeLog(.silence))
        defer { door.stop() }
        #expect(try door.notify(Array("nonsense".utf8)).status == 400)
        door.log.publications[0].finish(.failed(.timedOut))
        #expect(door.kept("malformed", true) == 0 && door.kept("malformed", false) == 1)
    }

    @Test func `beyond the room of the hour is only counted`() throws {
        let door = try Door { $0.rejectedBytesPerHour = 25 }
        defer { door.stop() }
        for _ in 0..<3 { #expect(try door.notify([UInt8](repeating: 0x78, count: 10)).status == 400) }
        #expect(door.log.records.count == 2)
        #expect(door.kept("malformed", true) == 2 && door.kept("malformed", false) == 1)
    }

    /// What is not acknowledged in time is usually written later.
    @Test func `takes its room when it may be written, and only then`() throws {
        let door = try Door(FakeLog(.silence)) { $0.rejectedBytesPerHour = 25 }
        defer { door.stop() }
        let body = [UInt8](repeating: 0x78, count: 10)
        for _ in 0..<2 { #expect(try door.notify(body).status == 400) }
        door.log.publications[0].finish(.failed(.timedOut))
        door.log.publications[0].end(wasSent: true)
        #expect(try door.notify(body).status == 400)
        #expect(door.log.records.count == 2)
        door.log.publications[1].refuse(.notConnected)
        #expect(try door.notify(body).status == 400)
        #expect(door.log.records.count == 3)
    }

    @Test func `cannot fill the queue to Kafka`() throws {
        let door = try Door(FakeLog(.silence)) { $0.rejectedBytesPerHour = 1 << 30 }
        defer { door.stop() }
        let body = [UInt8](repeating: 0x78, count: 256 << 10)
        for _ in 0..<20 { #expect(try door.notify(body).status == 400) }
        // 4 MiB without an acknowledgement, and not one byte more.
        #expect(door.log.records.count == 16)
        door.log.answer(.outcome(.written))
        // Their time is over, but they still wait for Kafka.
        for publication in door.log.publications { publication.finish(.failed(.timedOut)) }
        #expect(try door.notify(body).status == 400)
        #expect(door.log.records.count == 16)
        for publication in door.log.publications { publication.end(wasSent: true) }
        #expect(try door.notify(body).status == 400)
        #expect(door.log.records.count == 17)
        // Notifications are not held up by it.
        #expect(try door.notify(Apple.body()).status == 200)
    }

    @Test func `of an untrusted chain from Apple's network is kept and called for again`() throws {
        let door = try Door()
        defer { door.stop() }
        let body = Apple.body(Apple.stranger)
        let answer = try door.notify(body, from: "17.58.0.1")
        #expect(answer.status == 503 && answer.header("Retry-After") == "60")
        #expect(answer.text == #"{"error":"untrusted_chain"}"#)
        #expect(door.log.records.map(\.topic) == [.rejected] && door.log.records[0].value == body)
        #expect(door.alarms("untrusted_chain") == 1)
    }

    @Test func `of an untrusted chain from elsewhere is a 400 without alarm`() throws {
        let door = try Door()
        defer { door.stop() }
        for address in ["198.51.100.7", "18.0.0.1", "2001:db8::11", "nonsense", "17.0.0.1.evil"] {
            #expect(try door.notify(Apple.body(Apple.stranger), from: address).status == 400)
        }
        #expect(door.alarms("untrusted_chain") == 0)
    }

    @Test func `that Apple signed is kept, alarmed and answered 200`() throws {
        let door = try Door()
        defer { door.stop() }
        let body = Apple.body(bundleId: "com.example.other", environment: "Sandbox")
        #expect(try door.notify(body, from: "198.51.100.7").status == 200)
        let record = try #require(door.log.records.first)
        #expect(record.topic == .rejected && record.header("reason") == "wrong_app" && record.value == body)
        #expect(door.alarms("wrong_app") == 1 && door.kept("wrong_app", true) == 1)
        #expect(door.outcome("accepted") == 0)
    }

    @Test func `of another app is told with what came, what is expected, and what to do`() throws {
        let door = try Door { $0.bundles = ["com.example.app"] }
        defer { door.stop() }
        let answer = try door.notify(Apple.body(bundleId: "com.example.other", environment: "Sandbox"))
        #expect(answer.status == 200 && answer.text == #"{"rejected":"wrong_app"}"#)
        _ = try door.notify(Apple.body(bundleId: "com.example.other", uuid: "u-2", environment: "Sandbox"))
        door.refusals.flush()
        let line = try #require(door.lines.all.split(separator: "\n").first { $0.contains("were set aside") })
        #expect(
            line.contains(
                #""cause":"bundleId is com.example.other, and the setting apps knows com.example.app","count":2"#))
        #expect(line.contains("perennial dead-letters redrive rejected --reason wrong_app --apply"))
        let series =
            #"perennial_ingest_requests_total{outcome="wrong_app",environment="sandbox",bundle="com.example.other"}"#
        #expect(door.metric(series) == 2)
        // What is ours is there before it comes.
        for environment in ["production", "sandbox"] {
            let series = #"{outcome="accepted",environment="\#(environment)",bundle="com.example.app"}"#
            #expect(door.metric("perennial_ingest_requests_total" + series) == 0)
        }
    }

    @Test func `of many other apps makes a bounded number of series and lines`() throws {
        let door = try Door { $0.bundles = ["com.example.app"] }
        defer { door.stop() }
        for number in 0..<30 { _ = try door.notify(Apple.body(bundleId: "com.example.other\(number)")) }
        // A text that no app is called is no label.
        _ = try door.notify(Apple.body(bundleId: "a\\\"} 1"))
        door.refusals.flush()
        let lines = door.lines.all.split(separator: "\n").count { $0.contains("were set aside") }
        #expect(lines == 20)
        let series = String(decoding: door.metrics.exposition(), as: UTF8.self).split(separator: "\n").filter {
            $0.hasPrefix(#"perennial_ingest_requests_total{outcome="wrong_app""#)
        }
        // Twenty apps, the others together, those without a name that can be shown, and what has no environment.
        #expect(series.count == 23, "\(series)")
        #expect(door.outcome("wrong_app") == 31)
    }

    @Test func `that Apple signed and Kafka does not have is answered 503`() throws {
        let door = try Door(FakeLog(.outcome(.failed(.timedOut))))
        defer { door.stop() }
        #expect(try door.notify(Apple.body(bundleId: "com.example.other")).status == 503)
        #expect(door.kept("wrong_app", false) == 1)
    }

    @Test func `that Apple signed is answered 503 beyond ten times the room`() throws {
        let body = Apple.body(bundleId: "com.example.other")
        // Room for one and a half of them; anonymous garbage uses another.
        let door = try Door { $0.rejectedBytesPerHour = body.count * 3 / 20 }
        defer { door.stop() }
        #expect(try door.notify(Array("nonsense".utf8)).status == 400)
        // What was never sent takes no room.
        door.log.answer(.outcome(.failed(.queueFull)))
        #expect(try door.notify(body).status == 503)
        door.log.answer(.outcome(.written))
        #expect(try door.notify(body).status == 200)
        let answer = try door.notify(body)
        #expect(answer.status == 503 && answer.text == #"{"error":"wrong_app"}"#)
        #expect(door.kept("wrong_app", false) == 2)
    }

    @Test func `whose date lies ahead is kept and answered 200`() throws {
        let door = try Door()
        defer { door.stop() }
        #expect(try door.notify(Apple.body(signedDate: Apple.now + 301_000)).status == 200)
        #expect(door.log.records.map { $0.header("reason") } == ["in_future"])
    }
}

@Suite struct `The room of rejected` {
    @Test func `is there again in the next hour`() {
        let room = RejectedRoom(bytesPerHour: 10)
        #expect(room.take(10, now: 3_599_999))
        #expect(!room.take(1, now: 3_599_999))
        #expect(room.take(10, now: 3_600_000))
    }

    @Test func `is given back for what was not written`() {
        let room = RejectedRoom(bytesPerHour: 10)
        #expect(room.take(10, now: 0))
        room.giveBack(4)
        #expect(!room.take(5, now: 0))
        #expect(room.take(4, now: 0))
    }

    @Test func `may be none`() { #expect(!RejectedRoom(bytesPerHour: 0).take(1, now: 0)) }
}
