// Whether a letter holds now.

import AppStore
import Configuration
import Crypto
import Platform
import Revocation
import Telemetry

/// Verifies as ingest does, and asks about revocation as `verify.ocsp` has it. One thread.
final class RedriveJudge {
    /// For one chain, and only once: a topic of letters has few chains, and where Apple is not reachable not every letter is
    /// to wait for it.
    private static let limitAsking: Duration = .seconds(10)

    private let verifier: Verifier
    private let ocsp: OCSPMode
    private let watch: RevocationWatch?
    private var askedChains: Set<[UInt8]> = []

    /// - Parameter message: takes what there is to say of the asking.
    init(_ policy: VerificationPolicy, ocsp: OCSPMode, message: @escaping @Sendable (String) -> Void) throws {
        verifier = Verifier(policy)
        self.ocsp = ocsp
        let logger = Logger(level: .warning, format: .text) { line in
            message(String(decoding: line.dropLast(), as: UTF8.self))
        }
        watch = ocsp == .off ? nil : try RevocationWatch(metrics: Metrics(), logger: logger)
        if let watch {
            verifier.revocation = { [unowned self] chain in
                let isNew = askedChains.insert(chain.fingerprint).inserted
                return isNew
                    ? watch.status(of: [chain], waitingUntil: Deadline(after: Self.limitAsking))
                    : watch.status(of: chain)
            }
        }
    }

    func close() { watch?.close() }

    /// nil: there is no verdict, because `verify.ocsp` is hard and whether a certificate is revoked is not known.
    /// - Parameter reason: why the letter was refused.
    func notification(
        in body: [UInt8], refusedAs reason: String, now: Int64
    ) throws(Rejection) -> (VerifiedNotification, jws: [UInt8])? {
        // What Apple has revoked stays so, whether or not it is asked, or answers, this time.
        guard reason != RejectionReason.revoked.rawValue else {
            throw Rejection(.revoked, "it was refused because a certificate was revoked")
        }
        let jws = try NotificationBody.signedPayload(of: body)
        do throws(Rejection) {
            let notification = try verifier.notification(jws, now: now)
            return isUndecided ? nil : (notification, jws)
        } catch {
            // Whatever was found: a revoked certificate may have signed it.
            if isUndecided { return nil }
            throw error
        }
    }

    private var isUndecided: Bool { ocsp == .hard && !verifier.unknownChains.isEmpty }
}
