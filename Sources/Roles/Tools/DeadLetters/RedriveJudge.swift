// Whether a letter verifies now.

import AppStore
import Configuration
import Crypto
import Platform
import Records
import Revocation
import Telemetry

/// Verifies as ingest does, and asks about revocation as `verify.ocsp` says. One thread.
final class RedriveJudge {
    /// Limit for one certificate chain, applied only once: there are few chains, and if Apple is not reachable, not every letter
    /// should wait.
    private static let limitAsking: Duration = .seconds(10)

    private let verifier: Verifier
    private let ocsp: OCSPMode
    private let watch: RevocationWatch?
    private var askedChains: Set<[UInt8]> = []

    /// - Parameter message: prints what the requests to OCSP report.
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

    /// nil: there is no verdict, because `verify.ocsp` is hard and it is not known whether a certificate is revoked.
    /// - Parameter reason: why the letter was refused.
    func notification(
        in body: [UInt8], refusedAs reason: String, now: Int64
    ) throws(Rejection) -> (VerifiedNotification, jws: [UInt8])? {
        // A revoked certificate stays revoked, even if Apple is not asked or does not answer this time.
        guard reason != RejectionReason.revoked.rawValue else {
            throw Rejection(.revoked, "it was refused because a certificate was revoked")
        }
        let jws = try NotificationBody.signedPayload(of: body)
        do throws(Rejection) {
            let notification = try verifier.notification(jws, now: now)
            return isUndecided ? nil : (notification, jws)
        } catch {
            // Whatever the verdict: the certificate may be revoked.
            if isUndecided { return nil }
            throw error
        }
    }

    private var isUndecided: Bool { ocsp == .hard && !verifier.unknownChains.isEmpty }
}
