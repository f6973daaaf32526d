// `perennial verify`: verifies a signed payload and shows its content.

import AppStore
package import CommandLine
import Configuration
import Ingest
import Platform
import Revocation
import Settings
import Telemetry

extension Command {
    package static let verify = Command(
        .verify, "Verifies one signed payload, and shows its content or why it is refused.", operands: "[FILE]",
        operandCount: 0...1,
        options: [
            CommandOption(
                "kind", value: PayloadKind.allCases.map(\.rawValue).joined(separator: "|"),
                effect: "The kind of payload that is expected (notification).")
        ],
        details: """
            FILE, or standard input, holds the signed text (one line end after it is allowed) or the body of Apple's POST.
            Exit code 0: it verifies. Standard output has its JSON, with the signed payloads inside it decoded in their places.
            Exit code 1: it does not verify. Standard output has the reason code; standard error says more.
            Exit code 3: there is no verdict, because verify.ocsp is hard and Apple did not say within 10 s if the certificates are
            revoked (ocsp.apple.com is asked, through http_proxy if that is set).
            Without apps, bundleId and appAppleId are not checked. Payloads of both environments verify.
            """,
        action: .configured { invocation, configuration in
            guard let word = invocation.choice("kind", of: PayloadKind.allCases.map(\.rawValue)),
                let kind = PayloadKind(rawValue: word)
            else { return .wrongUsage }
            let policy: VerificationPolicy
            do throws(ConfigurationFaults) {
                policy = try VerificationPolicy(configuration)
            } catch {
                for fault in error.faults { invocation.output.message("perennial verify: \(fault)") }
                return .wrongUsage
            }
            return VerifyRun(policy: policy, ocsp: configuration.verification.ocsp, output: invocation.output).run(
                invocation.operands.first, as: kind, now: WallClock.milliseconds())
        })
}

struct VerifyRun {
    /// Limit for one certificate chain; nearly always all parts of a payload have the same chain. Apple's libraries wait for half a
    /// minute, but here a person waits.
    private static let limitAsking: Duration = .seconds(10)

    let policy: VerificationPolicy
    let ocsp: OCSPMode
    let output: Output

    /// - Parameter path: nil for standard input.
    func run(_ path: String?, as kind: PayloadKind, now: Int64) -> ExitCode {
        let watch: RevocationWatch?
        do {
            watch = ocsp == .off ? nil : try RevocationWatch(metrics: Metrics(), logger: logger)
        } catch {
            output.message("perennial verify: \(error)")
            return .gaveUp
        }
        defer { watch?.close() }
        let verifier = Verifier(policy)
        if let watch {
            verifier.revocation = { watch.status(of: [$0], waitingUntil: Deadline(after: Self.limitAsking)) }
        }
        do throws(Rejection) {
            guard let input = try read(path) else { return .wrongUsage }
            let json = try verifier.decoded(signedText(in: input), as: kind, now: now)
            if !verifier.unknownChains.isEmpty {
                if ocsp == .hard { return noVerdict() }
                output.message("perennial verify: it is not known whether the certificates are revoked")
            }
            if policy.apps == nil {
                output.message("perennial verify: apps is not set: bundleId and appAppleId were not checked")
            }
            output.data(String(decoding: json, as: UTF8.self))
            return .done
        } catch {
            // Whatever the verdict: the certificate may be revoked.
            if ocsp == .hard, !verifier.unknownChains.isEmpty { return noVerdict() }
            output.data(error.reason.rawValue)
            output.message("perennial verify: \(error.detail)")
            return .no
        }
    }

    /// Logs why Apple's responder does not answer.
    private var logger: Logger {
        let message = output.message
        return Logger(level: .warning, format: .text) { line in
            message(String(decoding: line.dropLast(), as: UTF8.self))
        }
    }

    private func noVerdict() -> ExitCode {
        output.message(
            "perennial verify: no verdict: verify.ocsp is hard, and it is not known if the certificates are revoked")
        return .gaveUp
    }

    /// nil: it cannot be read, and a message was printed.
    private func read(_ path: String?) throws(Rejection) -> [UInt8]? {
        // One byte more for a line end after the text.
        let limit = policy.maxBytes + 1
        do throws(FileFault) {
            if let path { return try readFile(path, limitBytes: limit) }
            return try readStandardInput(limitBytes: limit)
        } catch {
            if case .tooLarge = error {
                throw Rejection(.tooLarge, "there are more than \(policy.maxBytes) bytes")
            }
            output.message("perennial verify: \(error)")
            return nil
        }
    }

    private func signedText(in input: [UInt8]) throws(Rejection) -> [UInt8] {
        let isBody = input.first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: "{")
        if isBody {
            guard input.count <= policy.maxBytes else {
                throw Rejection(.tooLarge, "there are more than \(policy.maxBytes) bytes")
            }
            return try NotificationBody.signedPayload(of: input)
        }
        return input.last == UInt8(ascii: "\n") ? input.dropLast() : input
    }
}
