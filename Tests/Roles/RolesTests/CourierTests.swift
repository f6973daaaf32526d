import Crypto
import HTTP
import HTTPClient
import KafkaTestKit
import Platform
import Synchronization
import Telemetry
import Testing

@testable import Simulator

/// Receives posts, and answers each as the test says.
private final class Endpoint: HTTPHandler {
    typealias Answer = @Sendable (_ body: String, _ earlier: Int) -> HTTPResponse

    private let answer: Answer
    private let received = Mutex<[(body: String, at: ContinuousClock.Instant)]>([])
    init(_ answer: @escaping Answer) { self.answer = answer }

    var bodies: [String] { received.withLock { $0.map(\.body) } }
    var times: [ContinuousClock.Instant] { received.withLock { $0.map(\.at) } }

    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? { nil }
    func handle(_ request: HTTPRequest, _ responder: Responder) {
        let body = String(decoding: request.body, as: UTF8.self)
        let earlier = received.withLock { received in
            defer { received.append((body, .now)) }
            return received.count { $0.body == body }
        }
        responder.respond(answer(body, earlier))
    }
}

/// Answers only when each of three subscribers has a waiting post, and notices if one has two.
private final class ThreeAtOnce: HTTPHandler {
    private struct State {
        var waiting: [Int: Responder] = [:]
        var order: [Int] = []
        var overlaps = 0
    }

    private let state = Mutex(State())

    /// The numbers of the posts in the order of arrival.
    var order: [Int] { state.withLock { $0.order } }
    var overlaps: Int { state.withLock { $0.overlaps } }

    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? { nil }
    func handle(_ request: HTTPRequest, _ responder: Responder) {
        let post = number(in: String(decoding: request.body, as: UTF8.self))
        let answered: [Responder] = state.withLock { state in
            state.order.append(post)
            let overlapped = state.waiting.updateValue(responder, forKey: post % 3)
            if overlapped != nil { state.overlaps += 1 }
            // After a failure the test must end.
            guard state.waiting.count == 3 || state.overlaps > 0 else { return [] }
            defer { state.waiting = [:] }
            return Array(state.waiting.values) + (overlapped.map { [$0] } ?? [])
        }
        for responder in answered { responder.respond(.text(200, "")) }
    }
}

private func number(in body: String) -> Int {
    body.firstMatch(of: #/payload-(\d+)/#).flatMap { Int($0.1) } ?? -1
}

/// The journal's entry for a post.
private struct Entry: Equatable {
    let uuid: String
    let sends: Int
    let answer: Answer
    let verdict: Verdict
}

@Suite struct `The courier` {
    private static let hour: Int64 = 3_600_000

    private func parcel(
        _ number: Int, of subscriber: Int? = nil, at: Int64 = 0, _ expectation: Parcel.Expectation = .accepted,
        retryDelays: [Int64] = [1, 12, 24, 48, 72].map { $0 * hour }
    ) -> Parcel {
        Parcel(
            at: at, subscriber: subscriber ?? number, notificationUUID: "\(number)", expectation: expectation,
            retryDelays: retryDelays,
            payload: { Array("payload-\(number)".utf8) })
    }

    /// Delivers everything to an endpoint with this answer; an hour of Apple's is a tenth of a millisecond.
    private func deliver(
        _ parcels: [Parcel], adjust: @escaping @Sendable (inout Courier.Options) -> Void = { _ in },
        answer: @escaping Endpoint.Answer
    ) async throws -> (endpoint: Endpoint, entries: [Entry], tally: Tally) {
        let endpoint = Endpoint(answer)
        let (entries, tally) = try await deliver(parcels, to: endpoint, adjust: adjust)
        return (endpoint, entries, tally)
    }

    private func deliver(
        _ parcels: [Parcel], to endpoint: any HTTPHandler,
        adjust: @escaping @Sendable (inout Courier.Options) -> Void
    ) async throws -> (entries: [Entry], tally: Tally) {
        let server = try HTTPServer(
            HTTPServer.Configuration(name: "test", address: ListenAddress("127.0.0.1:0")!), handler: endpoint,
            metrics: Metrics(), logger: Logger { _ in })
        defer { server.stop(by: Deadline(after: .seconds(5))) }
        let url = "http://\(server.address)/notifications"
        return try await blocking {
            var options = Courier.Options(url: url)
            options.retryScale = Double(Self.hour) * 10
            adjust(&options)
            let client = try HTTPClient()
            defer { client.close() }
            let entries = Mutex<[Entry]>([])
            var courier = Courier(options, client: client) { parcel, _, sends, answer, verdict in
                entries.withLock {
                    $0.append(Entry(uuid: parcel.notificationUUID, sends: sends, answer: answer, verdict: verdict))
                }
            }
            var rest = parcels[...]
            try courier.deliver({ rest.popFirst() }, watch: { _, _ in })
            return (entries.withLock { $0 }, courier.tally)
        }
    }

    @Test func `posts every payload once when it is taken`() async throws {
        let (endpoint, entries, tally) = try await deliver((0..<200).map { parcel($0) }) { _, _ in .text(200, "") }
        #expect(Set(endpoint.bodies) == Set((0..<200).map { #"{"signedPayload":"payload-\#($0)"}"# }))
        #expect(endpoint.bodies.count == 200)
        #expect(
            entries.allSatisfy { $0.sends == 1 && $0.verdict == .accepted && $0.answer == .status(200, error: nil) })
        #expect(tally.isAllRight && tally.accepted == 200 && tally.sends == 200)
    }

    @Test func `keeps the order of the posts when one connection is used`() async throws {
        let (endpoint, _, _) = try await deliver((0..<50).map { parcel($0) }, adjust: { $0.connections = 1 }) { _, _ in
            .text(200, "")
        }
        #expect(endpoint.bodies == (0..<50).map { #"{"signedPayload":"payload-\#($0)"}"# })
    }

    @Test func `keeps the order of each subscriber's posts over many connections`() async throws {
        let parcels = (0..<120).map { parcel($0, of: $0 % 3) }
        // It answers three subscribers at a time: a courier that waited for another subscriber's answer would wait for ever.
        let endpoint = ThreeAtOnce()
        let (entries, tally) = try await deliver(parcels, to: endpoint) { $0.connections = 16 }
        for subscriber in 0..<3 {
            #expect(endpoint.order.filter { $0 % 3 == subscriber } == Array(stride(from: subscriber, to: 120, by: 3)))
        }
        #expect(endpoint.overlaps == 0, "a post was sent before the one before it was answered")
        #expect(entries.count == 120 && tally.isAllRight)
    }

    @Test func `keeps nobody back for a post that has to be sent again`() async throws {
        let parcels = [parcel(0, of: 7), parcel(1, of: 7), parcel(2, of: 7)]
        let (endpoint, entries, _) = try await deliver(parcels, adjust: { $0.retryScale = 3600 }) { body, earlier in
            .text(body.contains("payload-0") && earlier == 0 ? 503 : 200, "")
        }
        #expect(endpoint.bodies.map(number(in:)) == [0, 1, 2, 0])
        #expect(entries.map(\.uuid) == ["1", "2", "0"])
    }

    @Test(arguments: [503, 400, 500, 301, 207])
    func `tries again after any answer that is no success, with the same payload`(_ status: Int) async throws {
        let (endpoint, entries, tally) = try await deliver([parcel(1)]) { _, earlier in
            .text(earlier < 3 ? status : 200, "")
        }
        #expect(endpoint.bodies == Array(repeating: #"{"signedPayload":"payload-1"}"#, count: 4))
        #expect(entries.map(\.sends) == [4])
        #expect(tally.isAllRight)
    }

    @Test func `gives up after six sends, and says so`() async throws {
        let (endpoint, entries, tally) = try await deliver([parcel(1)]) { _, _ in .text(503, "") }
        #expect(endpoint.bodies.count == 6)
        #expect(entries == [Entry(uuid: "1", sends: 6, answer: .status(503, error: nil), verdict: .unsettled)])
        #expect(!tally.isAllRight && tally.givenUp == 1)
    }

    @Test func `sends once where Apple does not try again`() async throws {
        let (endpoint, _, tally) = try await deliver([parcel(1, retryDelays: [])]) { _, _ in .text(503, "") }
        #expect(endpoint.bodies.count == 1)
        #expect(tally.givenUp == 1)
    }

    @Test func `waits from the previous attempt as long as Apple does, scaled`() async throws {
        let (endpoint, _, _) = try await deliver(
            [parcel(1, retryDelays: [1, 12].map { $0 * Self.hour })],
            adjust: { $0.retryScale = Double(Self.hour) / 20 }
        ) { _, _ in .text(503, "") }
        let times = endpoint.times
        try #require(times.count == 3)
        #expect(times[0].duration(to: times[1]) >= .milliseconds(19))
        #expect(times[1].duration(to: times[2]) >= .milliseconds(239))
        // Without the scale it would be thirteen hours.
        #expect(times[0].duration(to: times[2]) < patience)
    }

    @Test func `tells the story at the speed it is asked for`() async throws {
        let parcels = [parcel(0, at: 1000), parcel(1, at: 1000 + Self.hour), parcel(2, at: 1000 + 3 * Self.hour)]
        let (endpoint, _, _) = try await deliver(parcels, adjust: { $0.speed = Double(Self.hour) / 2000 }) { _, _ in
            .text(200, "")
        }
        let times = endpoint.times
        // Half of it: on a busy machine the first may arrive late, which does not make the others early.
        #expect(times[0].duration(to: times[1]) >= .seconds(1))
        #expect(times[0].duration(to: times[2]) >= .seconds(3))
    }

    @Test func `sends no more in a second than it may`() async throws {
        let (endpoint, _, _) = try await deliver((0..<61).map { parcel($0) }, adjust: { $0.rate = 20 }) { _, _ in
            .text(200, "")
        }
        let times = endpoint.times
        // Half of it, as above.
        #expect(times[0].duration(to: times[60]) >= .milliseconds(1500))
    }

    @Test(arguments: [
        ("bad_signature", 400, "bad_signature", true), ("bad_signature", 400, "malformed", false),
        ("bad_signature", 200, nil, false), ("wrong_app", 200, nil, true), ("wrong_app", 400, "wrong_app", false),
        ("too_large", 413, nil, true), ("in_future", 200, nil, true), ("malformed", 404, nil, false),
    ])
    func `holds the answer to a forgery to the code it deserves`(
        _ code: String, _ status: Int, _ error: String?, _ isRight: Bool
    ) async throws {
        let (endpoint, entries, tally) = try await deliver([parcel(1, .refused(code: code))]) { _, _ in
            error.map { .json(status, Array(#"{"error":"\#($0)"}"#.utf8)) } ?? .text(status, "")
        }
        #expect(endpoint.bodies.count == 1)
        #expect(entries.map(\.verdict) == [isRight ? .refused : .wrong])
        #expect(tally.isAllRight == isRight)
    }

    @Test func `sends a forgery again when it was not judged`() async throws {
        let (_, entries, tally) = try await deliver([parcel(1, .refused(code: "malformed"))]) { _, earlier in
            earlier < 2 ? .text(503, "") : .json(400, Array(#"{"error":"malformed"}"#.utf8))
        }
        #expect(entries.map(\.sends) == [3])
        #expect(tally.isAllRight)
    }

    @Test func `counts what got no answer by its cause`() async throws {
        let tally = try await blocking {
            let client = try HTTPClient()
            defer { client.close() }
            // A reserved port where nothing listens.
            var courier = Courier(Courier.Options(url: "http://127.0.0.1:1/"), client: client) { _, _, _, _, _ in }
            var rest = [parcel(1, retryDelays: [])][...]
            try courier.deliver({ rest.popFirst() }, watch: { _, _ in })
            return courier.tally
        }
        #expect(tally.givenUp == 1)
        #expect(tally.summary.contains("answers: not_connected: 1"))
        let givenUp = try #require(tally.summary.last)
        #expect(givenUp.hasPrefix("given up after the last retry: 1; the last error: "))
        #expect(givenUp.contains("127.0.0.1"), "\(givenUp)")
    }

    @Test func `knows what was kept without being taken`() async throws {
        let (_, entries, tally) = try await deliver([parcel(1), parcel(2)]) { body, _ in
            body.contains("payload-1") ? .json(200, Array(#"{"rejected":"wrong_app"}"#.utf8)) : .text(200, "")
        }
        #expect(Set(entries.map(\.verdict)) == [.setAside, .accepted])
        #expect(!tally.isAllRight && tally.setAside == ["wrong_app": 1])
        #expect(tally.summary.contains { $0.hasPrefix("set aside as wrong_app: 1; ") })
    }

    @Test func `ends where nobody is, when it is asked to`() async throws {
        let nobody = try await blocking {
            let client = try HTTPClient()
            defer { client.close() }
            let options = Courier.Options(url: "http://127.0.0.1:1/", patienceForNobody: .milliseconds(300))
            var courier = Courier(options, client: client) { _, _, _, _, _ in }
            // Its next send is due in an hour.
            var rest = [parcel(1, retryDelays: [3_600_000 * 3600])][...]
            try courier.deliver({ rest.popFirst() }, watch: { _, _ in })
            return courier.nobody
        }
        #expect(nobody?.kind == .notConnected)
    }

    /// Delivers what is due by a clock that stands still, and reports when it has finished.
    private final class Guide: CourierGuide {
        private let time: Int64
        private let over: Int
        private let heard = Mutex<[String]>([])
        init(time: Int64, over: Int) { (self.time, self.over) = (time, over) }

        var words: [String] { heard.withLock { $0 } }
        var isOver: Bool { heard.withLock { $0.count { $0.hasPrefix("answered") } } >= over }
        func wait(until time: Int64) -> Duration { time <= self.time ? .zero : .seconds(3600) }
        func sending(_ parcel: Parcel, sends: Int) {
            heard.withLock { $0.append("sending \(parcel.notificationUUID) \(sends)") }
        }
        func answered(_ parcel: Parcel, sends: Int, _ answer: Answer, _ verdict: Verdict) {
            heard.withLock { $0.append("answered \(parcel.notificationUUID) \(sends) \(verdict.rawValue)") }
        }
    }

    @Test func `sends by the clock of its guide, and ends at the guide's word`() async throws {
        let endpoint = Endpoint { _, earlier in .text(earlier == 0 ? 503 : 200, "") }
        let server = try HTTPServer(
            HTTPServer.Configuration(name: "test", address: ListenAddress("127.0.0.1:0")!), handler: endpoint,
            metrics: Metrics(), logger: Logger { _ in })
        defer { server.stop(by: Deadline(after: .seconds(5))) }
        let guide = Guide(time: 10, over: 2)
        try await blocking {
            let client = try HTTPClient()
            defer { client.close() }
            var options = Courier.Options(url: "http://\(server.address)/notifications")
            options.retryScale = Double(Self.hour) * 10
            var courier = Courier(options, client: client, guide: guide) { _, _, _, _, _ in }
            // The second would be due in an hour.
            var rest = [parcel(0, at: 10), parcel(1, at: 11)][...]
            try courier.deliver({ rest.popFirst() }, watch: { _, _ in })
        }
        #expect(guide.words == ["sending 0 1", "answered 0 1 unsettled", "sending 0 2", "answered 0 2 accepted"])
    }
}
