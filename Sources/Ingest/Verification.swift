// The seam between the endpoint and the verifier.

public import AppStore
public import Configuration
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
    private final class Lent: @unchecked Sendable {
        let verifier: Verifier
        /// Whether the verdict at hand rests on a chain of which nobody knows whether it is revoked.
        var hasUnknownChain = false

        init(_ policy: VerificationPolicy) { verifier = Verifier(policy) }
    }

    private let policy: VerificationPolicy
    private let revocation: OCSPMode
    private let idle = Mutex<[Lent]>([])

    /// - Parameter revocation: under `hard` there is no verdict on a chain of which nothing is known. Nobody is asked in this
    ///   version, so that is every chain; under `soft` it passes.
    public init(_ policy: VerificationPolicy, revocation: OCSPMode) {
        self.policy = policy
        self.revocation = revocation
    }

    public func judge(
        _ jws: [UInt8], now: Int64, by deadline: Deadline, verdict: @escaping @Sendable (Verdict) -> Void
    ) {
        verdict(judge(jws, now: now))
    }

    public func judge(_ jws: [UInt8], now: Int64) -> Verdict {
        let lent = idle.withLock { $0.popLast() } ?? makeVerifier()
        defer { idle.withLock { $0.append(lent) } }
        lent.hasUnknownChain = false
        var verdict: Verdict
        do throws(Rejection) {
            verdict = .verified(try lent.verifier.notification(jws, now: now))
        } catch {
            verdict = .rejected(error)
        }
        // Whatever else was found: a revoked certificate may have signed it.
        if revocation == .hard, lent.hasUnknownChain { verdict = .none }
        return verdict
    }

    private func makeVerifier() -> Lent {
        let lent = Lent(policy)
        guard revocation != .off else { return lent }
        // Unowned: the verifier belongs to what it would keep alive.
        lent.verifier.revocation = { [unowned lent] _ in
            lent.hasUnknownChain = true
            return .unknown
        }
        return lent
    }
}
