import Contract
import Crypto
import Foundation
import HTTP
import HTTPClient
import JSON
import KafkaTestKit
import Platform
import Simulation
import Synchronization
import Telemetry
import Testing

@testable import CommandLine
@testable import Roles
@testable import Simulator

/// 2025-01-01.
private let start: Int64 = 1_735_689_600_000
private let day: Int64 = 86_400_000

/// A store whose subscribers all ask for refunds, and its API.
private struct Desk {
    let store: MakeBelieveStore
    let simulation: Simulation
    let server: StoreAPIServer
    let client: HTTPClient
    let folder: ScratchDirectory
    var journalPath: String { "\(folder.path)/journal" }

    init(
        isSplit: Bool = false, sandboxPerMille: Int = 0, decidesByAnswers: Bool = false,
        adjust: (inout StoreAPI.Configuration) -> Void = { _ in }
    ) throws {
        folder = try ScratchDirectory("perennial-store-api")
        var configuration = Simulation.Configuration(
            seed: 7, subscribers: 120, apps: MakeBelieveStore.apps, start: start, end: start + 60 * day)
        configuration.lastArrival = start + day
        configuration.weights = [.consumableAsked: 1]
        configuration.sandboxPerMille = sandboxPerMille
        store = try MakeBelieveStore(
            configuration, Delivery.Configuration(seed: 7), decidesByAnswers: decidesByAnswers)
        simulation = try Simulation(configuration)
        let anyPort = ListenAddress("127.0.0.1:0")!
        var settings = StoreAPIServer.Configuration(address: anyPort, sandbox: isSplit ? anyPort : nil)
        settings.api.hold = .milliseconds(100)
        adjust(&settings.api)
        server = try StoreAPIServer(settings, store: store, journal: APIJournal(path: "\(folder.path)/journal"))
        client = try HTTPClient()
    }

    func close() {
        client.close()
        server.stop()
    }

    var asked: [KnownTransaction] {
        (0..<simulation.configuration.subscribers).flatMap(simulation.refundRequests(of:)).map(\.transaction)
    }

    func answer(
        _ transaction: KnownTransaction, at base: String? = nil, preference: String = "DECLINE"
    ) async throws -> Result<HTTPClient.Response, HTTPClientFault> {
        let now = WallClock.milliseconds() / 1000
        let key = store.apiKey
        let claims =
            #"{"iss":"\#(key.issuerId)","aud":"appstoreconnect-v1","bid":"\#(transaction.bundleId)","exp":\#(now + 300)}"#
        let text = [#"{"alg":"ES256","kid":"\#(key.keyId)","typ":"JWT"}"#, claims]
            .map { String(decoding: Base64.encodeURL(Array($0.utf8).span), as: UTF8.self) }.joined(separator: ".")
        let signature = key.key.sign(digest: SHA256.digest(Array(text.utf8).span).span)
        let token = text + "." + String(decoding: Base64.encodeURL(signature.span), as: UTF8.self)
        let body =
            #"{"customerConsented":true,"sampleContentProvided":false,"deliveryStatus":"DELIVERED","#
            + #""refundPreference":"\#(preference)"}"#
        let request = HTTPClient.Request(
            "PUT",
            "\(base ?? server.production)/inApps/v2/transactions/consumption/\(transaction.transactionId)",
            headers: [
                .init("Authorization", "Bearer \(token)"), .init("Content-Type", "application/json"),
                // If a kept connection is cut, libcurl itself sends a request again.
                .init("Connection", "close"),
            ],
            body: Array(body.utf8))
        return await withCheckedContinuation { waiter in client.send(request) { waiter.resume(returning: $0) } }
    }

    var journal: [JSONValue] {
        get throws { try lines(journalPath) }
    }
}

private func lines(_ path: String) throws -> [JSONValue] {
    try readFile(path, limitBytes: 64 << 20).split(separator: UInt8(ascii: "\n")).map { try JSONValue.read(Array($0)) }
}

@Suite struct `The store's API` {
    @Test func `tells its journal what came before it answers`() async throws {
        let desk = try Desk()
        defer { desk.close() }
        let transaction = try #require(desk.asked.first)
        #expect(try await desk.answer(transaction).get().status == 202)
        let entry = try #require(try desk.journal.first)
        #expect(entry["transactionId"]?.string == transaction.transactionId && entry["status"]?.integer == 202)
        #expect(entry["bundleId"]?.string == transaction.bundleId && entry["taken"]?.bool == true)
        #expect(entry["version"]?.integer == 2 && entry["server"]?.string == "both")
        let body = try #require(entry["body"]?.string)
        #expect(entry["sha256"]?.string == hexadecimal(SHA256.digest(Array(body.utf8).span)))
        // No file contains a token.
        #expect(!String(decoding: try readFile(desk.journalPath), as: UTF8.self).contains("eyJ"))
        #expect(try await desk.answer(transaction, preference: "PLEASE").get().status == 400)
        #expect(try desk.journal.last?["errorCode"]?.integer == 4_000_044)
        #expect(try desk.journal.last?["taken"]?.bool == false)
    }

    @Test func `gets into every trouble, the same again for the same seed`() async throws {
        func troubles() async throws -> (faults: [String?], outcomes: [String]) {
            let desk = try Desk { $0.troublesPerMille = 500 }
            defer { desk.close() }
            var outcomes: [String] = []
            for transaction in desk.asked {
                let before = WallClock.milliseconds()
                switch try await desk.answer(transaction) {
                case .failure: outcomes.append("none")
                case .success(let response):
                    outcomes.append("\(response.status)")
                    guard response.status == 429 else { continue }
                    let retryAt = try #require(response.header("Retry-After").flatMap(Int64.init))
                    #expect((before...before + 60_000).contains(retryAt))
                }
            }
            let journal = try desk.journal
            #expect(journal.count == outcomes.count)
            for (entry, outcome) in zip(journal, outcomes) {
                let fault = entry["fault"]?.string
                #expect(entry["status"]?.integer.map(String.init) ?? "none" == outcome)
                let isTaken = fault == nil || fault == "timeout_after" || fault == "cut_after"
                #expect(entry["taken"]?.bool == isTaken, "\(entry)")
            }
            return (journal.map { $0["fault"]?.string }, outcomes)
        }
        let (faults, outcomes) = try await troubles()
        #expect(Set(faults.compactMap { $0 }) == Set(APITrouble.allCases.map(\.rawValue)))
        #expect((35...85).contains(faults.count { $0 == nil }))
        #expect(Set(outcomes) == ["202", "429", "500", "503", "none"])
        let again = try await troubles()
        #expect(again.faults == faults && again.outcomes == outcomes)
    }

    @Test func `takes so many requests of an app within a second, and says when the next one begins`() {
        var rate = APIRate(perSecond: 2)
        let second: Int64 = 1_735_689_600_000
        #expect(rate.refusal(of: "a", now: second) == nil && rate.refusal(of: "a", now: second + 1) == nil)
        #expect(rate.refusal(of: "a", now: second + 2) == second + 1000)
        #expect(rate.refusal(of: "b", now: second + 999) == nil)
        #expect(rate.refusal(of: "a", now: second + 1000) == nil)
        var none = APIRate(perSecond: nil)
        for _ in 0..<1000 { #expect(none.refusal(of: "a", now: second) == nil) }
    }

    @Test func `refuses what is beyond the rate`() async throws {
        let desk = try Desk { $0.requestsPerSecond = 1 }
        defer { desk.close() }
        let transaction = try #require(desk.asked.first)
        // Requests at the same time, and of so many of them two fall into one second, however busy this machine is.
        var statuses: Set<Int> = []
        for _ in 0..<10 where statuses.count < 2 {
            async let one = desk.answer(transaction).get().status
            async let two = desk.answer(transaction).get().status
            async let three = desk.answer(transaction).get().status
            statuses.formUnion(try await [one, two, three])
        }
        #expect(statuses == [202, 429])
        let refused = try #require(try desk.journal.first { $0["status"]?.integer == 429 })
        #expect(refused["errorCode"]?.integer == 4_290_000 && refused["taken"]?.bool == false)
        #expect(refused["retryAfter"]?.integer ?? 0 > refused["at"]?.integer ?? .max)
    }

    @Test func `knows each environment behind its own door only`() async throws {
        let desk = try Desk(isSplit: true, sandboxPerMille: 500)
        defer { desk.close() }
        let sandbox = try #require(desk.asked.first { $0.environment == .sandbox })
        let production = try #require(desk.asked.first { $0.environment == .production })
        #expect(desk.server.production != desk.server.sandbox)
        #expect(try await desk.answer(sandbox, at: desk.server.sandbox).get().status == 202)
        #expect(try await desk.answer(sandbox).get().status == 404)
        #expect(try await desk.answer(production).get().status == 202)
        #expect(try await desk.answer(production, at: desk.server.sandbox).get().status == 404)
        #expect(try desk.journal.map { $0["server"]?.string } == ["sandbox", "production", "production", "sandbox"])
    }

    @Test func `decides by the newest answer before the decision is due, and by none that comes later`() async throws {
        let desk = try Desk(decidesByAnswers: true)
        defer { desk.close() }
        var parcels = desk.store.parcels
        var waits = 0
        var answered = 0
        while let parcel = parcels.next() {
            guard parcel.kind == .wait else { continue }
            waits += 1
            // All purchases that have been asked about by now; those that were decided stay decided.
            guard waits == 1 else { continue }
            for transaction in desk.asked {
                #expect(try await desk.answer(transaction).get().status == 202)
                answered += 1
            }
        }
        #expect(waits >= 100 && answered == desk.asked.count)
        let ids = desk.asked.map(\.transactionId)
        #expect(ids.allSatisfy { desk.store.desk?.answer(to: $0, decidedAt: 0) == .decline })
        for transaction in desk.asked.prefix(3) { _ = try await desk.answer(transaction, preference: "GRANT_FULL") }
        #expect(ids.allSatisfy { desk.store.desk?.answer(to: $0, decidedAt: 0) == .decline })
    }

    @Test(.enabled(if: Interop.isInstalled, "\(Interop.absence)"))
    func `answers Apple's own client as the documents say`() async throws {
        let folder = try ScratchDirectory("perennial-client")
        func path(_ name: String) -> String { "\(folder.path)/\(name)" }
        let child = try ChildProcess(
            try productPath("perennial"),
            ["simulate", "--seed=5", "--subscribers=200", "--refunds=100", "--from=2025-01-01", "--days=60"]
                + ["--truth=\(path("truth"))", "--api=127.0.0.1:0", "--api-ca=\(path("ca.pem"))"]
                + ["--api-key=\(path("key.p8"))", "--api-settings=\(path("settings"))"]
                + ["--api-journal=\(path("journal"))"],
            environment: .only([:]), workingDirectory: "/")
        // The truth is written before the simulator only serves its API.
        try await child.waitUntilPrinted("serving until")
        let result = try await Interop.run("client_against_simulator.py", [path("settings"), path("truth")])
        try #require(result.code == 0, "\(result.standardError.suffix(2000))")
        let cases = try result.standardOutput.split(separator: "\n").map { try JSONValue.read(Array($0.utf8)) }
        #expect(cases.count == 41)
        for one in cases { #expect(one["got"] == one["expected"] && one["got"] != nil, "\(one)") }
        child.kill(SIGTERM)
        #expect(try await child.wait() == .exited(code: 0))
        let journal = try lines(path("journal"))
        #expect(journal.count == cases.count)
        #expect(journal.count { $0["status"]?.integer == 202 } == cases.count { $0["got"]?.integer == 202 })
        #expect(journal.allSatisfy { $0["userAgent"]?.string?.hasPrefix("app-store-server-library/python/") == true })
    }
}

/// Accepts notifications and usage, and keeps the bodies.
private final class Inbox: HTTPHandler {
    private let received = Mutex<[(path: String, token: String?, body: String)]>([])
    var all: [(path: String, token: String?, body: String)] { received.withLock { $0 } }

    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? { nil }
    func handle(_ request: HTTPRequest, _ responder: Responder) {
        received.withLock {
            $0.append((request.path, request.headers["Authorization"], String(decoding: request.body, as: UTF8.self)))
        }
        responder.respond(.text(request.path == "/usage" ? 202 : 200, ""))
    }
}

@Suite struct `perennial simulate as the app's backend` {
    private let folder: ScratchDirectory
    private func path(_ name: String) -> String { "\(folder.path)/\(name)" }

    init() throws { folder = try ScratchDirectory("perennial-backend") }

    private func simulate(_ arguments: [String]) async throws -> (code: ExitCode, messages: [String]) {
        try await blocking {
            let recorder = Recorder()
            let code = Program.standard.run(["simulate"] + arguments, environment: [], output: recorder.output)
            return (code, recorder.messages)
        }
    }

    @Test func `posts usage between the notifications, with its token, as the file says`() async throws {
        let inbox = Inbox()
        let server = try HTTPServer(
            HTTPServer.Configuration(name: "inbox", address: ListenAddress("127.0.0.1:0")!), handler: inbox,
            metrics: Metrics(), logger: Logger { _ in })
        defer { server.stop(by: Deadline(after: .seconds(5))) }
        try OutputFile.write(Array("secret-of-the-backend\n".utf8), to: path("token"))
        let outcome = try await simulate(
            ["--url=http://\(server.address)/notifications", "--usage=http://\(server.address)/usage"]
                + ["--usage-token=file:\(path("token"))", "--usage-out=\(path("usage"))", "--connections=1"]
                + ["--refunds=100", "--subscribers=30", "--from=2025-01-01", "--days=60"])
        #expect(outcome.code == .done, "\(outcome.messages)")
        let posted = inbox.all.filter { $0.path == "/usage" }
        #expect(posted.allSatisfy { $0.token == "Bearer secret-of-the-backend" })
        #expect(inbox.all.filter { $0.path == "/notifications" }.allSatisfy { $0.token == nil })
        let written = try lines(path("usage")).compactMap { $0["record"] }
        #expect(written.count > 60)
        #expect(try posted.map { try JSONValue.read(Array($0.body.utf8)) } == written)
        // Some come before it and some after it.
        let kinds = inbox.all.map(\.path)
        #expect(kinds.firstIndex(of: "/usage")! < 10 && kinds.lastIndex(of: "/notifications")! > kinds.count / 2)
    }

    @Test func `goes on with the time on the wall, and ends when it is told to`() async throws {
        let inbox = Inbox()
        let server = try HTTPServer(
            HTTPServer.Configuration(name: "inbox", address: ListenAddress("127.0.0.1:0")!), handler: inbox,
            metrics: Metrics(), logger: Logger { _ in })
        defer { server.stop(by: Deadline(after: .seconds(5))) }
        let before = WallClock.milliseconds()
        let outcome = try await simulate(
            ["--url=http://\(server.address)/notifications", "--live", "--hours=3", "--ahead=2s"]
                + ["--refunds=100", "--subscribers=40", "--decide-after=1h", "--truth=\(path("truth"))"]
                + ["--api=127.0.0.1:0", "--api-journal=\(path("journal"))", "--api-for=1s"])
        #expect(outcome.code == .done, "\(outcome.messages)")
        let requests = try lines(path("truth")).filter { $0["kind"]?.string == "refund_request" }
        #expect(requests.count > 5)
        let open = 12 * 3_600_000 as Int64
        #expect(requests.allSatisfy { $0["at"]?.integer ?? 0 > before - open && $0["deadline"]?.integer ?? 0 > before })
        // Nobody answered, and Apple decides without an answer.
        #expect(requests.contains { $0["outcome"]?.string != nil })
        #expect(try readFile(path("journal")).isEmpty)
    }

    @Test(arguments: [
        (["--api-faults=20"], "--api-faults needs --api: give --api as well"),
        (["--out=x", "--api=nowhere"], "--api must be an address and a port, such as 127.0.0.1:0, not \"nowhere\""),
        (["--url=http://a/", "--usage=http://a/"], "--usage needs --usage-token: give both, or none"),
        (["--usage=http://a/", "--usage-token=t"], "--usage needs --url: give --url as well"),
        (["--out=x", "--hours=2", "--days=2"], "--hours replaces --days: give only one of them"),
        (["--out=x", "--ahead=2m"], "--ahead needs --live: give --live as well"),
        (["--out=x", "--live", "--speed=2"], "--live runs in real time: remove --from and --speed"),
        (
            ["--out=x", "--decide-after=2"],
            "--decide-after must be a duration up to 24h, such as 30s, 10m or 2h, not \"2\""
        ),
        (
            ["--url=http://a/", "--usage=http://a/", "--usage-token=file:/nowhere"],
            "--usage-token: cannot read /nowhere: No such file or directory"
        ),
    ])
    func `says what is wrong with an option`(_ arguments: [String], _ words: String) async throws {
        let outcome = try await simulate(arguments)
        #expect(outcome.code == .wrongUsage)
        #expect(outcome.messages.first == "perennial simulate: \(words)")
    }
}
