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
    private static func garbage(_ bytes: Int, _ number: Int) -> [UInt8] {
        [UInt8](repeating: 0x78, count: bytes - 1) + [UInt8(number)]
    }

    private static func genuine(_ number: Int) -> [UInt8] {
        Apple.body(bundleId: "com.example.other", uuid: "u-\(number)")
    }

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
        // Half of the room is for bodies that anybody can send.
        let door = try Door { $0.rejectedBytesPerHour = 50 }
        defer { door.stop() }
        for number in 0..<3 { #expect(try door.notify(Self.garbage(10, number)).status == 400) }
        #expect(door.log.records.count == 2)
        #expect(door.kept("malformed", true) == 2 && door.kept("malformed", false) == 1)
    }

    /// A record that is not acknowledged in time is usually written later.
    @Test func `takes its room when it may be written, and only then`() throws {
        let door = try Door(FakeLog(.silence)) { $0.rejectedBytesPerHour = 50 }
        defer { door.stop() }
        let body = Self.garbage(10, 2)
        for number in 0..<2 { #expect(try door.notify(Self.garbage(10, number)).status == 400) }
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
        for number in 0..<20 { #expect(try door.notify(Self.garbage(256 << 10, number)).status == 400) }
        let body = Self.garbage(256 << 10, 20)
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
        // Notifications are not delayed by it.
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
        #expect(door.alarms("untrusted_chain", fromApple: true) == 1)
        #expect(door.alarms("untrusted_chain", fromApple: false) == 0)
    }

    @Test func `of an untrusted chain from elsewhere is a 400 without alarm`() throws {
        let door = try Door()
        defer { door.stop() }
        for address in ["198.51.100.7", "18.0.0.1", "2001:db8::11", "nonsense", "17.0.0.1.evil"] {
            #expect(try door.notify(Apple.body(Apple.stranger), from: address).status == 400)
        }
        #expect(door.alarms("untrusted_chain", fromApple: false) == 0)
    }

    @Test func `that Apple signed is kept, alarmed and answered 200`() throws {
        let door = try Door()
        defer { door.stop() }
        let body = Apple.body(bundleId: "com.example.other", environment: "Sandbox")
        #expect(try door.notify(body, from: "198.51.100.7").status == 200)
        let record = try #require(door.log.records.first)
        #expect(record.topic == .rejected && record.header("reason") == "wrong_app" && record.value == body)
        #expect(door.alarms("wrong_app", fromApple: false) == 1)
        #expect(door.alarms("wrong_app", fromApple: true) == 0)
        #expect(door.kept("wrong_app", true) == 1)
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
                #""cause":"bundleId is com.example.other, and the setting apps has com.example.app","count":2"#))
        #expect(line.contains("perennial dead-letters redrive rejected --reason wrong_app --apply"))
        let series =
            #"perennial_ingest_requests_total{outcome="wrong_app",environment="sandbox",bundle="com.example.other"}"#
        #expect(door.metric(series) == 2)
        // The series of our own apps exist before the first body.
        for environment in ["production", "sandbox"] {
            let series = #"{outcome="accepted",environment="\#(environment)",bundle="com.example.app"}"#
            #expect(door.metric("perennial_ingest_requests_total" + series) == 0)
        }
    }

    @Test func `of many other apps makes a bounded number of series and lines`() throws {
        let door = try Door { $0.bundles = ["com.example.app"] }
        defer { door.stop() }
        for number in 0..<30 { _ = try door.notify(Apple.body(bundleId: "com.example.other\(number)")) }
        // A text that is not an app's name must not become a label.
        _ = try door.notify(Apple.body(bundleId: "a\\\"} 1"))
        door.refusals.flush()
        let lines = door.lines.all.split(separator: "\n").count { $0.contains("were set aside") }
        #expect(lines == 20)
        let series = String(decoding: door.metrics.exposition(), as: UTF8.self).split(separator: "\n").filter {
            $0.hasPrefix(#"perennial_ingest_requests_total{outcome="wrong_app""#)
        }
        // Twenty apps, all other apps together, those without a printable name, and bodies without an environment.
        #expect(series.count == 23, "\(series)")
        #expect(door.outcome("wrong_app") == 31)
    }

    @Test func `that Apple signed and Kafka does not have is answered 503`() throws {
        let door = try Door(FakeLog(.outcome(.failed(.timedOut))))
        defer { door.stop() }
        #expect(try door.notify(Apple.body(bundleId: "com.example.other")).status == 503)
        #expect(door.kept("wrong_app", false) == 1)
    }

    @Test func `that Apple signed is answered 503 beyond the room, of which a quarter is for Apple's network`() throws {
        let bytes = Self.genuine(0).count
        let door = try Door { $0.rejectedBytesPerHour = 4 * bytes }
        defer { door.stop() }
        // What was never sent takes no room.
        door.log.answer(.outcome(.failed(.queueFull)))
        #expect(try door.notify(Self.genuine(0)).status == 503)
        door.log.answer(.outcome(.written))
        for number in 0..<3 { #expect(try door.notify(Self.genuine(number)).status == 200) }
        let answer = try door.notify(Self.genuine(3))
        #expect(answer.status == 503 && answer.text == #"{"error":"wrong_app"}"#)
        #expect(try door.notify(Self.genuine(3), from: "17.1.1.1").status == 200)
        #expect(try door.notify(Self.genuine(4), from: "17.1.1.1").status == 503)
        #expect(door.log.records.count == 5)
        #expect(door.kept("wrong_app", true) == 4 && door.kept("wrong_app", false) == 3)
    }

    @Test func `is kept once within the hour`() throws {
        let door = try Door()
        defer { door.stop() }
        for _ in 0..<3 {
            #expect(try door.notify(Array("nonsense".utf8)).status == 400)
            #expect(try door.notify(Self.genuine(0)).status == 200)
        }
        #expect(door.log.records.count == 2)
        #expect(door.kept("malformed", true) == 3 && door.kept("wrong_app", true) == 3)
    }

    @Test func `that Apple signed is answered 503 while the same is on its way, and tried again when it failed`() throws
    {
        let door = try Door(FakeLog(.silence)) { $0.timeout = .seconds(60) }
        defer { door.stop() }
        let client = try HTTPClient()
        defer { client.close() }
        door.log.answer(.outcome(.failed(.timedOut)))
        #expect(try door.notify(Self.genuine(0)).status == 503)
        door.log.answer(.silence)
        #expect(try door.notify(Array("nonsense".utf8)).status == 400)
        // It is in flight, and nobody knows whether it will arrive.
        #expect(try door.notify(Array("nonsense".utf8)).status == 400)
        #expect(door.log.records.count == 2)
        door.log.publications[1].finish(.failed(.timedOut))
        door.log.publications[1].end(wasSent: true)
        door.log.answer(.outcome(.written))
        #expect(try door.notify(Array("nonsense".utf8)).status == 400)
        #expect(try door.notify(Self.genuine(0)).status == 200)
        #expect(door.log.records.count == 4)
    }

    /// Apple signs a purchase on any customer's device, and its sender can pad it.
    @Test func `is kept without what stands beside the signed text`() throws {
        let door = try Door()
        defer { door.stop() }
        let body = Self.genuine(0)
        let padded =
            Array(#"{"padding":""#.utf8) + [UInt8](repeating: 0x78, count: 200_000) + Array(#"","#.utf8)
            + body.dropFirst()
        #expect(try door.notify(padded).status == 200)
        #expect(door.log.records.map(\.value) == [body])
        // The same text with other padding counts as the same.
        #expect(try door.notify(Array(#"{"a":1,"#.utf8) + body.dropFirst()).status == 200)
        #expect(door.log.records.count == 1)
    }

    /// A body that is already in `rejected` is answered with 200 even if no room is left, so that Apple stops retrying.
    @Test func `that Apple signed and that is kept already needs no room`() throws {
        let bytes = Self.genuine(0).count
        let door = try Door { $0.rejectedBytesPerHour = 2 * bytes }
        defer { door.stop() }
        #expect(try door.notify(Self.genuine(0)).status == 200)
        #expect(try door.notify(Self.genuine(1)).status == 503)
        #expect(try door.notify(Self.genuine(1), from: "17.1.1.1").status == 200)
        #expect(try door.notify(Self.genuine(0)).status == 200)
        #expect(door.log.records.count == 2)
    }

    /// While Kafka may still write it, it is not sent again.
    @Test func `is not sent again while it is late`() throws {
        let door = try Door(FakeLog(.silence))
        defer { door.stop() }
        let body = Array("nonsense".utf8)
        #expect(try door.notify(body).status == 400)
        door.log.publications[0].finish(.failed(.timedOut))
        #expect(try door.notify(body).status == 400)
        #expect(door.log.publications.count == 1)
        door.log.publications[0].end(wasSent: true)
        #expect(try door.notify(body).status == 400)
        #expect(door.log.publications.count == 2)
    }

    @Test func `whose date lies ahead is kept and answered 200`() throws {
        let door = try Door()
        defer { door.stop() }
        #expect(try door.notify(Apple.body(signedDate: Apple.now + 301_000)).status == 200)
        #expect(door.log.records.map { $0.header("reason") } == ["in_future"])
    }
}

@Suite struct `The room of rejected` {
    private func take(
        _ room: RejectedRoom, _ bytes: Int, _ hash: UInt8, _ sender: RejectedRoom.Sender = .apple, now: Int64 = 0
    ) -> RejectedRoom.Place { room.take(bytes, hash: [hash], for: sender, now: now) }

    @Test func `is there again in the next hour, and nothing is known then`() {
        let room = RejectedRoom(bytesPerHour: 10)
        #expect(take(room, 10, 1, now: 3_599_999) == .taken)
        #expect(take(room, 1, 2, now: 3_599_999) == .none)
        #expect(!room.hasRoom(for: .apple, now: 3_599_999) && room.hasRoom(for: .apple, now: 3_600_000))
        #expect(take(room, 10, 1, now: 3_600_000) == .taken)
    }

    @Test func `is given back for what was not written`() {
        let room = RejectedRoom(bytesPerHour: 10)
        #expect(take(room, 10, 1) == .taken)
        room.giveBack(4, takenAt: 0)
        #expect(take(room, 5, 2) == .none)
        #expect(take(room, 4, 2) == .taken)
        // What was stored an hour ago makes no room in this hour.
        #expect(take(room, 10, 3, now: 3_600_000) == .taken)
        room.giveBack(10, takenAt: 3_599_999)
        #expect(take(room, 1, 4, now: 3_600_000) == .none)
    }

    @Test func `remembers what was written, and forgets what was not`() {
        let room = RejectedRoom(bytesPerHour: 10)
        #expect(take(room, 1, 1) == .taken && take(room, 1, 1) == .underWay)
        room.remember([1])
        #expect(take(room, 1, 1) == .kept)
        #expect(take(room, 1, 2) == .taken)
        room.forget([2])
        #expect(take(room, 1, 2) == .taken)
    }

    @Test func `is half for anybody, three quarters for what is signed, all for Apple's network`() {
        for limit in [0, 1, 2, 3, 4, 7, 100, 1 << 40] {
            for (sender, quarters) in [(RejectedRoom.Sender.anybody, 2), (.signed, 3), (.apple, 4)] {
                let room = RejectedRoom(bytesPerHour: limit)
                #expect(take(room, limit * quarters / 4 + 1, 1, sender) == .none)
                #expect(take(room, limit * quarters / 4, 1, sender) == .taken)
                #expect(!room.hasRoom(for: sender, now: 0))
            }
        }
    }
}
