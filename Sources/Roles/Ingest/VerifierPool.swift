// The interface between the endpoint and the verifier.

public import AppStore
import Crypto
public import Platform
public import Records
import Revocation
import Synchronization

public enum Verdict: Sendable {
    /// With the text that Apple signed.
    case verified(VerifiedNotification, signedPayload: [UInt8])
    /// With the text that was checked; nil: the body contained no text.
    case rejected(Rejection, signedPayload: [UInt8]?)
    /// The text is known and need not be verified again.
    case known
    /// The revocation status was needed and could not be determined in time: the sender should retry.
    case none
    /// More bodies came than could be verified in time: the sender should retry.
    case tooBusy
}

/// Verifies bodies of Apple's POST requests.
public protocol NotificationJudge: Sendable {
    /// `verdict` is called once, on this thread before the call returns or later on another one, at the latest by
    /// `deadline`.
    /// - Parameters:
    ///   - isFromApple: the body came from Apple's network, so it is verified before bodies that anybody may have sent.
    ///   - isKnown: called with the signed text before anything expensive is done with it.
    func judge(
        _ body: [UInt8], isFromApple: Bool, now: Int64, by deadline: Deadline,
        unless isKnown: @escaping @Sendable (_ signedPayload: [UInt8]) -> Bool,
        verdict: @escaping @Sendable (Verdict) -> Void)
}

/// Verifies on the calling thread. Verifiers are lent out, so there are as many as threads use at the same time, each
/// with its own cache of chains.
public final class VerifierPool: NotificationJudge {
    /// Unchecked: only the thread that has taken a verifier out of the pool uses it.
    private struct Lent: @unchecked Sendable {
        let verifier: Verifier
        let edition: Int
    }

    private struct State {
        var policy: VerificationPolicy
        /// Version of the policy: a verifier of an earlier policy is not lent again.
        var edition = 0
        var idle: [Lent] = []
    }

    private let watch: (any RevocationSource)?
    private let isRevocationRequired: Bool
    private let state: Mutex<State>

    /// - Parameter revocation: without it, revocation is not checked.
    public convenience init(_ policy: VerificationPolicy, revocation: Revocations?) {
        self.init(policy, watch: revocation?.watch, isRevocationRequired: revocation?.isRequired ?? false)
    }

    init(_ policy: VerificationPolicy, watch: (any RevocationSource)?, isRevocationRequired: Bool) {
        state = Mutex(State(policy: policy))
        self.watch = watch
        self.isRevocationRequired = isRevocationRequired
    }

    public func judge(
        _ body: [UInt8], isFromApple: Bool, now: Int64, by deadline: Deadline,
        unless isKnown: @escaping @Sendable (_ signedPayload: [UInt8]) -> Bool,
        verdict: @escaping @Sendable (Verdict) -> Void
    ) {
        let (found, unknown) = judge(body, now: now, unless: isKnown)
        guard let watch, isRevocationRequired, !unknown.isEmpty else { return verdict(found) }
        // No thread of the server waits in the meantime.
        watch.whenKnown(unknown, by: deadline) { status in
            switch status {
            // Whatever else was found: a revoked certificate may have signed the text.
            case .unknown: verdict(.none)
            case .good: verdict(found)
            case .revoked:
                // The verifier determines which part it was, and in which order.
                let (found, unknown) = self.judge(body, now: now, unless: isKnown)
                verdict(unknown.isEmpty ? found : .none)
            }
        }
    }

    private func judge(
        _ body: [UInt8], now: Int64, unless isKnown: (_ signedPayload: [UInt8]) -> Bool
    ) -> (verdict: Verdict, unknown: [TrustedChain]) {
        let lent = lend()
        defer {
            state.withLock { state in
                if lent.edition == state.edition { state.idle.append(lent) }
            }
        }
        let jws: [UInt8]
        do throws(Rejection) {
            jws = try lent.verifier.signedPayload(of: body)
        } catch {
            return (.rejected(error, signedPayload: nil), [])
        }
        guard !isKnown(jws) else { return (.known, []) }
        do throws(Rejection) {
            let notification = try lent.verifier.notification(jws, now: now)
            return (.verified(notification, signedPayload: jws), lent.verifier.unknownChains)
        } catch {
            return (.rejected(error, signedPayload: jws), lent.verifier.unknownChains)
        }
    }

    /// Replaces the apps or the roots; from now on bodies are verified with the new ones.
    public func replace(_ policy: VerificationPolicy) {
        state.withLock { $0 = State(policy: policy, edition: $0.edition + 1) }
    }

    private func lend() -> Lent {
        let (idle, policy, edition) = state.withLock { ($0.idle.popLast(), $0.policy, $0.edition) }
        if let idle { return idle }
        let verifier = Verifier(policy)
        if let watch { verifier.revocation = { watch.status(of: $0) } }
        return Lent(verifier: verifier, edition: edition)
    }
}

/// Knows whether certificates are revoked.
protocol RevocationSource: Sendable {
    func status(of chain: TrustedChain) -> RevocationStatus
    func whenKnown(
        _ chains: [TrustedChain], by deadline: Deadline, completion: @escaping @Sendable (RevocationStatus) -> Void)
}

extension RevocationWatch: RevocationSource {}
