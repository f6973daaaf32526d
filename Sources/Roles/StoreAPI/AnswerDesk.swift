// What developers have said of refunds, for the make-believe Apple to decide by.

import Simulation
import Synchronization

/// Gathers what the API takes, and fixes each decision when the story reaches its time. Some hundred bytes for each
/// transaction that was asked about, as long as the process lives: its story may be told again.
final class AnswerDesk: RefundDesk {
    private struct State {
        /// How far the story has come.
        var time = Int64.min
        /// The newest word on each transaction.
        var answers: [String: RefundAnswer] = [:]
        var decided: [String: RefundAnswer] = [:]
    }

    private let state = Mutex(State())

    func take(_ answer: RefundAnswer, to transactionId: String) {
        state.withLock { $0.answers[transactionId] = answer }
    }

    /// The story has come to that time: what is due by then is decided when it is asked about next.
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
