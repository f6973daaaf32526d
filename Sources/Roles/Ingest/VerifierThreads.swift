// Threads that verify, separate from those that read and answer.

import Platform
import Service
import Synchronization
import Telemetry

/// Verifying is nearly all of the work. Doing it here leaves the threads of the server free to answer 503 at once when
/// more arrives than can be verified.
final class VerifierThreads: NotificationJudge, ServicePart {
    private struct Waiting: Sendable {
        let body: [UInt8]
        let isFromApple: Bool
        let now: Int64
        let deadline: Deadline
        /// If verification started later than this, Kafka would have too little time and the answer would be 503
        /// anyway. With a load that stays too high this would happen to every other request as well.
        let latestStart: Deadline
        let isKnown: @Sendable (_ signedPayload: [UInt8]) -> Bool
        let verdict: @Sendable (Verdict) -> Void
    }

    let name = "verifiers"
    private let judge: any NotificationJudge
    private let patience: Duration
    private let count: Int
    private let waiting: Mailbox<Waiting>
    private let stopRequested = Latch()
    private let running = Atomic(0)
    private let ended = Latch()

    /// How long a thread without work sleeps before it checks whether it should end.
    private static let idleInterval: Duration = .milliseconds(250)

    /// - Parameters:
    ///   - capacity: most waiting bodies that anybody may have sent; bodies from Apple's network have a queue of the
    ///     same size.
    ///   - patience: how long a body may wait for its turn.
    init(_ judge: any NotificationJudge, capacity: Int, patience: Duration, count: Int = availableProcessors()) {
        self.judge = judge
        self.patience = patience
        self.count = count
        waiting = Mailbox(capacity: capacity)
    }

    func judge(
        _ body: [UInt8], isFromApple: Bool, now: Int64, by deadline: Deadline,
        unless isKnown: @escaping @Sendable (_ signedPayload: [UInt8]) -> Bool,
        verdict: @escaping @Sendable (Verdict) -> Void
    ) {
        let one = Waiting(
            body: body, isFromApple: isFromApple, now: now, deadline: deadline,
            latestStart: Deadline(after: patience), isKnown: isKnown, verdict: verdict)
        if !waiting.post(one, isUrgent: isFromApple) { verdict(.tooBusy) }
    }

    func start(failed: @escaping @Sendable (any Error) -> Void) throws {
        for index in 0..<count {
            running.add(1, ordering: .relaxed)
            let thread = WorkerThread.start("verifier-\(index)") { self.work() }
            guard case .failure(let error)? = thread.result else { continue }
            leave()
            try? stop(by: Deadline(after: .seconds(1)))
            throw error
        }
    }

    /// Stops after the server, which has answered all requests by then.
    func stop(by deadline: Deadline) throws {
        stopRequested.open()
        waiting.close()
        guard ended.wait(until: deadline) else { throw ServicePartFault.stillRunning }
    }

    private func work() {
        defer { leave() }
        while true {
            if let next = waiting.takeOne(waiting: Self.idleInterval) {
                if next.latestStart.hasPassed {
                    next.verdict(.tooBusy)
                } else {
                    judge.judge(
                        next.body, isFromApple: next.isFromApple, now: next.now, by: next.deadline,
                        unless: next.isKnown, verdict: next.verdict)
                }
            } else if stopRequested.isOpen {
                return
            }
        }
    }

    private func leave() {
        if running.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { ended.open() }
    }
}
