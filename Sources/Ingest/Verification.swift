// The seam between the endpoint and the verifier.

public import AppStore
public import Platform
import Synchronization

public enum Verdict: Sendable {
    case verified(VerifiedNotification)
    case rejected(Rejection)
    /// Revocation had to be known and was not to be learnt in time: come again.
    case none
}

/// Judges signed payloads.
public protocol NotificationJudge: Sendable {
    /// `verdict` is called once, on this thread before the call returns or later on another one, at the latest by
    /// `deadline`.
    func judge(
        _ jws: [UInt8], now: Int64, by deadline: Deadline, verdict: @escaping @Sendable (Verdict) -> Void)
}

/// Verifies on the thread of the request. Verifiers are lent out, so that there are as many as there are threads in use at a
/// time, each with its own cache of chains.
public final class VerifierPool: NotificationJudge {
    /// Unchecked: a verifier is used by whoever has taken it out of the pool, and by nobody else.
    private struct Lent: @unchecked Sendable {
        let verifier: Verifier
    }

    private let make: @Sendable () -> Verifier
    private let idle = Mutex<[Lent]>([])

    public init(_ make: @escaping @Sendable () -> Verifier) {
        self.make = make
    }

    public func judge(
        _ jws: [UInt8], now: Int64, by deadline: Deadline, verdict: @escaping @Sendable (Verdict) -> Void
    ) {
        verdict(judge(jws, now: now))
    }

    public func judge(_ jws: [UInt8], now: Int64) -> Verdict {
        let lent = idle.withLock { $0.popLast() } ?? Lent(verifier: make())
        defer { idle.withLock { $0.append(lent) } }
        do throws(Rejection) {
            return .verified(try lent.verifier.notification(jws, now: now))
        } catch {
            return .rejected(error)
        }
    }
}
