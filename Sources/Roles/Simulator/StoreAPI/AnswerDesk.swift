// The developers' answers to refund requests, by which the simulated Apple decides.

import Simulation
import Synchronization

/// Collects the answers that the API accepts, and fixes each decision when the story reaches its time. Keeps some hundred bytes
/// for each transaction as long as the process lives, because its story may be produced again.
final class AnswerDesk: RefundDesk {
    private struct State {
        /// The current time of the stories.
        var time = Int64.min
        /// The newest answer for each transaction.
        var answers: [String: RefundAnswer] = [:]
        var decided: [String: RefundAnswer] = [:]
    }

    private let state = Mutex(State())

    func take(_ answer: RefundAnswer, to transactionId: String) {
        state.withLock { $0.answers[transactionId] = answer }
    }

    /// Advances the time of the stories. Decisions that are due by then are made when they are needed.
    func advance(to time: Int64) { state.withLock { $0.time = max($0.time, time) } }

    func answer(to transactionId: String, decidedAt: Int64) -> RefundAnswer? {
        state.withLock { state in
            if let decided = state.decided[transactionId] { return decided }
            guard decidedAt <= state.time else { return nil }
            let answer = state.answers[transactionId] ?? .none
            state.decided[transactionId] = answer
            return answer
        }
    }
}
