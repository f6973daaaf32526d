// What a user may ask the demo.

import HTTPClient
import Platform
import Synchronization

/// Asks the API what a user is then told to ask: only what has been answered is shown.
final class DemoQuestions: Sendable {
    private struct State {
        var isAsking = false
        var answered: [String] = []
    }

    private let client: HTTPClient
    private let state = Mutex(State())

    init() throws(HTTPClientFault) {
        var configuration = HTTPClient.Configuration()
        configuration.threadName = "demo-questions"
        configuration.timeout = .seconds(5)
        client = try HTTPClient(configuration)
    }

    func close() { client.close(by: Deadline(after: .seconds(2))) }

    var answered: [String] { state.withLock { $0.answered } }

    /// Returns at once.
    func ask(_ api: String, _ example: (originalTransactionId: String, appAccountToken: String)) {
        let mayAsk = state.withLock { state in
            guard !state.isAsking, state.answered.isEmpty else { return false }
            state.isAsking = true
            return true
        }
        guard mayAsk else { return }
        let subscription = "\(api)/v1/subscriptions/\(example.originalTransactionId)"
        let account = "\(api)/v1/accounts/\(example.appAccountToken)"
        client.send(HTTPClient.Request("GET", subscription)) { [self] first in
            guard case .success(let response) = first, response.status == 200 else { return ended([]) }
            client.send(HTTPClient.Request("GET", account)) { [self] second in
                guard case .success(let response) = second, response.status == 200 else { return ended([]) }
                ended(["curl -s \(subscription)", "curl -s \(account)"])
            }
        }
    }

    private func ended(_ questions: [String]) {
        state.withLock { state in
            state.isAsking = false
            state.answered = questions
        }
    }
}
