import Configuration
import Contract
import HTTP
import KafkaTestKit
import Platform
import Synchronization
import Telemetry
import Testing

@testable import Demo

/// An API that records its requests.
private final class AskedAPI: HTTPHandler {
    let status = Mutex(200)
    let asked = Mutex<[String]>([])

    func earlyAnswer(to head: HTTPRequest) -> HTTPResponse? { nil }

    func handle(_ request: HTTPRequest, _ responder: Responder) {
        // Done before the test sees the request.
        let status = status.withLock { $0 }
        asked.withLock { $0.append(request.path) }
        responder.respond(HTTPResponse(status: status))
    }
}

@Suite struct `Questions to the demo` {
    private static let example = (originalTransactionId: "2000000000000001", appAccountToken: "a-token")

    @Test func `are shown once they are answered, and are about another month when one has passed`() async throws {
        let api = AskedAPI()
        let server = try HTTPServer(
            HTTPServer.Configuration(name: "api", address: ListenAddress("127.0.0.1:0")!), handler: api,
            metrics: Metrics(), logger: Logger { _ in })
        defer { server.stop(by: Deadline(after: .seconds(5))) }
        let url = "http://\(server.address)"
        let questions = try DemoQuestions()
        defer { questions.close() }
        let day = CivilDay(number: 20_000)
        func ask(_ days: Int64) {
            questions.ask(url, Self.example, today: CivilDay(number: day.number + days))
        }
        func shown(_ days: Int64) -> [String] {
            let (from, to) = (CivilDay(number: day.number + days - 30), CivilDay(number: day.number + days + 1))
            return [
                "curl -s \(url)/v1/subscriptions/2000000000000001", "curl -s \(url)/v1/accounts/a-token",
                "curl -s '\(url)/v1/metrics?from=\(from)&to=\(to)'",
            ]
        }

        api.status.withLock { $0 = 503 }
        ask(0)
        try await waitUntil("it was asked") { api.asked.withLock { $0.count } == 1 }
        #expect(questions.answered == [])
        api.status.withLock { $0 = 200 }
        try await waitUntil("it has answered") {
            ask(0)
            return questions.answered == shown(0)
        }
        ask(29)
        #expect(api.asked.withLock { $0.count } == 4)
        // The shown text stays until there is a new one.
        ask(30)
        try await waitUntil("the month is another") { questions.answered == shown(30) }
        #expect(api.asked.withLock { $0.count } == 7)
    }
}
