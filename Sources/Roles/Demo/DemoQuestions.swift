// Example questions to the API of the demo.

import Contract
import HTTPClient
import Platform
import Synchronization

/// Sends the example questions to the API first: only questions that were answered are shown.
final class DemoQuestions: Sendable {
    private struct State {
        var isAsking = false
        var answered: [String] = []
        /// The day of the answers.
        var day: CivilDay?
    }

    /// The question covers this many days before today. It changes only after this many days, so that people can copy it.
    private static let daysOfMetrics: Int64 = 30

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
    func ask(
        _ api: String, _ example: (originalTransactionId: String, appAccountToken: String), today: CivilDay
    ) {
        let mayAsk = state.withLock { state in
            if let day = state.day, today.number - day.number < Self.daysOfMetrics { return false }
            guard !state.isAsking else { return false }
            state.isAsking = true
            return true
        }
        guard mayAsk else { return }
        let subscription = "\(api)/v1/subscriptions/\(example.originalTransactionId)"
        let account = "\(api)/v1/accounts/\(example.appAccountToken)"
        let month = (from: CivilDay(number: today.number - Self.daysOfMetrics), to: CivilDay(number: today.number + 1))
        let metrics = "\(api)/v1/metrics?from=\(month.from)&to=\(month.to)"
        // Quoted, because a shell would end the command at the &.
        let shown = [subscription, account, "'\(metrics)'"].map { "curl -s \($0)" }
        ask([subscription, account, metrics][...]) { [self] isAnswered in
            state.withLock { state in
                state.isAsking = false
                guard isAnswered else { return }
                state.answered = shown
                state.day = today
            }
        }
    }

    /// Asks one question after another.
    private func ask(_ urls: ArraySlice<String>, _ ended: @escaping @Sendable (Bool) -> Void) {
        guard let url = urls.first else { return ended(true) }
        client.send(HTTPClient.Request("GET", url)) { [self] answer in
            guard case .success(let response) = answer, response.status == 200 else { return ended(false) }
            ask(urls.dropFirst(), ended)
        }
    }
}
