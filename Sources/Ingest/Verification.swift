// The seam between the endpoint and the verifier.

public import AppStore
import Crypto
public import Platform
import Revocation
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

    private let policy: VerificationPolicy
    private let watch: RevocationWatch?
    private let isRevocationRequired: Bool
    private let idle = Mutex<[Lent]>([])

    /// - Parameter revocation: nil: nobody is asked.
    public convenience init(_ policy: VerificationPolicy, revocation: Revocations?) {
        self.init(policy, watch: revocation?.watch, isRevocationRequired: revocation?.isRequired ?? false)
    }

    init(_ policy: VerificationPolicy, watch: RevocationWatch?, isRevocationRequired: Bool) {
        self.policy = policy
        self.watch = watch
        self.isRevocationRequired = isRevocationRequired
    }

    public func judge(
        _ jws: [UInt8], now: Int64, by deadline: Deadline, verdict: @escaping @Sendable (Verdict) -> Void
    ) {
        let (found, unknown) = judge(jws, now: now)
        guard let watch, isRevocationRequired, !unknown.isEmpty else { return verdict(found) }
        // No thread of the server waits meanwhile.
        watch.whenKnown(unknown, by: deadline) { status in
            switch status {
            // Whatever was found: a revoked certificate may have signed it.
            case .unknown: verdict(.none)
            case .good: verdict(found)
            case .revoked:
                // The verifier says which of the parts it was, and in which order.
                let (found, unknown) = self.judge(jws, now: now)
                verdict(unknown.isEmpty ? found : .none)
            }
        }
    }

    private func judge(_ jws: [UInt8], now: Int64) -> (verdict: Verdict, unknown: [TrustedChain]) {
        let lent = idle.withLock { $0.popLast() } ?? makeVerifier()
        defer { idle.withLock { $0.append(lent) } }
        let verdict: Verdict
        do throws(Rejection) {
            verdict = .verified(try lent.verifier.notification(jws, now: now))
        } catch {
            verdict = .rejected(error)
        }
        return (verdict, lent.verifier.unknownChains)
    }

    private func makeVerifier() -> Lent {
        let verifier = Verifier(policy)
        if let watch { verifier.revocation = { watch.status(of: $0) } }
        return Lent(verifier: verifier)
    }
}
