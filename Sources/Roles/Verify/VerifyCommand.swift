// `perennial verify`: is this from Apple, and what does it say?

import AppStore
import Configuration
import Ingest
import Platform
import Settings

extension Command {
    static let verify = Command(
        .verify, "Verifies one signed payload, and shows what it says or why it is refused.", operands: "[FILE]",
        operandCount: 0...1,
        options: [
            CommandOption(
                "kind", value: PayloadKind.allCases.map(\.rawValue).joined(separator: "|"),
                effect: "What is expected to be signed.")
        ],
        details: """
            FILE, or standard input, holds the signed text (one line end after it is allowed) or the body of Apple's POST.
            Exit code 0: it verifies, and standard output has its JSON, payloads signed inside of it decoded in their places.
            Exit code 1: it does not, and standard output has the reason code; standard error says more.
            Exit code 3: no verdict, because verify.ocsp is hard and Apple's answer is not known.
            Without apps neither bundleId nor appAppleId is checked. Payloads of both environments verify.
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
            return VerifyRun(
                policy: policy, needsRevocation: configuration.verification.ocsp == .hard, output: invocation.output
            )
            .run(invocation.operands.first, as: kind, now: WallClock.milliseconds())
        })
}

struct VerifyRun {
    let policy: VerificationPolicy
    /// Nobody is asked in this version: a verdict that needs an answer is not given.
    let needsRevocation: Bool
    let output: Output

    /// - Parameter path: nil for standard input.
    func run(_ path: String?, as kind: PayloadKind, now: Int64) -> ExitCode {
        var isRevocationUnknown = false
        let verifier = Verifier(policy)
        verifier.revocation = { _ in
            isRevocationUnknown = true
            return .unknown
        }
        do throws(Rejection) {
            guard let input = try read(path) else { return .wrongUsage }
            let json = try verifier.decoded(signedText(in: input), as: kind, now: now)
            if needsRevocation { return noVerdict() }
            if policy.apps == nil {
                output.message("perennial verify: apps is not set: bundleId and appAppleId were not checked")
            }
            output.data(String(decoding: json, as: UTF8.self))
            return .done
        } catch {
            if needsRevocation, isRevocationUnknown { return noVerdict() }
            output.data(error.reason.rawValue)
            output.message("perennial verify: \(error.detail)")
            return .no
        }
    }

    private func noVerdict() -> ExitCode {
        output.message(
            "perennial verify: no verdict: verify.ocsp is hard, and whether the certificates are revoked is not known")
        return .gaveUp
    }

    /// nil when it cannot be read, which the user has been told.
    private func read(_ path: String?) throws(Rejection) -> [UInt8]? {
        // The line end is no part of the text.
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
