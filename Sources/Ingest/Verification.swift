// The seam between the endpoint and the verifier.

public import AppStore
import Crypto
public import Crypto
public import Platform
public import Revocation
import Revocation
import Synchronization

public enum Verdict: Sendable {
    /// And the text that Apple signed.
    case verified(VerifiedNotification, signedPayload: [UInt8])
    case rejected(Rejection)
    /// Revocation had to be known and was not to be learnt in time: come again.
    case none
}

/// Judges bodies of Apple's POST.
public protocol NotificationJudge: Sendable {
    /// `verdict` is called once, on this thread before the call returns or later on another one, at the latest by
    /// `deadline`.
    func judge(
        _ body: [UInt8], now: Int64, by deadline: Deadline, verdict: @escaping @Sendable (Verdict) -> Void)
}

/// Verifies on the thread of the request. Verifiers are lent out, so that there are as many as there are threads in use at a
/// time, each with its own cache of chains.
public final class VerifierPool: NotificationJudge {
    /// What of revocation has to be known, and who knows it.
    public enum Revocation: Sendable {
        case notAsked
        /// What nobody knows passes; it is asked beside.
        case soft(any RevocationSource)
        /// On a chain of which nothing is known there is no verdict.
        case hard(any RevocationSource)

        var source: (any RevocationSource)? {
            switch self {
            case .notAsked: nil
            case .soft(let source), .hard(let source): source
            }
        }
    }

    /// Unchecked: a verifier is used by whoever has taken it out of the pool, and by nobody else.
    private struct Lent: @unchecked Sendable {
        let verifier: Verifier
    }

    private let policy: VerificationPolicy
    private let revocation: Revocation
    private let idle = Mutex<[Lent]>([])

    public init(_ policy: VerificationPolicy, revocation: Revocation) {
        self.policy = policy
        self.revocation = revocation
    }

    public func judge(
        _ body: [UInt8], now: Int64, by deadline: Deadline, verdict: @escaping @Sendable (Verdict) -> Void
    ) {
        let (found, unknown) = judge(body, now: now)
        guard case .hard(let source) = revocation, !unknown.isEmpty else { return verdict(found) }
        source.whenKnown(unknown, by: deadline) { status in
            switch status {
            // The verifier went on as if it had been.
            case .good: verdict(found)
            // Which chain it is, and so which code, the verifier tells.
            case .revoked: verdict(self.judge(body, now: now).verdict)
            case .unknown: verdict(.none)
            }
        }
    }

    private func judge(_ body: [UInt8], now: Int64) -> (verdict: Verdict, unknown: [TrustedChain]) {
        let lent = idle.withLock { $0.popLast() } ?? makeVerifier()
        defer { idle.withLock { $0.append(lent) } }
        let jws: [UInt8]
        do throws(Rejection) {
            jws = try lent.verifier.signedPayload(of: body)
        } catch {
            return (.rejected(error), [])
        }
        do throws(Rejection) {
            let notification = try lent.verifier.notification(jws, now: now)
            return (.verified(notification, signedPayload: jws), lent.verifier.unknownChains)
        } catch {
            return (.rejected(error), lent.verifier.unknownChains)
        }
    }

    private func makeVerifier() -> Lent {
        let verifier = Verifier(policy)
        if let source = revocation.source { verifier.revocation = { source.status(of: $0) } }
        return Lent(verifier: verifier)
    }
}

/// Who knows whether certificates are revoked. See `RevocationWatch`.
public protocol RevocationSource: Sendable {
    /// What is known now; does not block.
    func status(of chain: TrustedChain) -> RevocationStatus
    /// `completion` is called once, at the latest by `deadline`, then with `unknown`.
    func whenKnown(
        _ chains: [TrustedChain], by deadline: Deadline, completion: @escaping @Sendable (RevocationStatus) -> Void)
}

extension RevocationWatch: RevocationSource {}
