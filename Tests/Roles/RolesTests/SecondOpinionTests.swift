import AppStore
import Contract
import Crypto
import Foundation
import JSON
import KafkaTestKit
import Platform
import Simulation
import Testing

/// A kind of payload on which the two verifiers disagree.
private struct Difference {
    /// First words of the names of samples.
    let samples: [String]
    /// The verdict of ours.
    let verdict: String
    let reason: String

    init(_ verdict: String, _ samples: [String], because reason: String) {
        self.samples = samples
        self.verdict = verdict
        self.reason = reason
    }
}

@Suite struct `Apple's own library` {
    private static let differences = [
        Difference(
            "malformed", ["forgery padded", #"text signature and "==" after it"#],
            because: "one value has one text: payloads are identified by their hash, so no second form may exist"),
        Difference(
            "malformed",
            ["forgery repeatedMember", "header alg twice", "header alg none, then ES256", "payload repeated member"],
            because: "readers disagree on which of two members counts, so it is unclear what was signed"),
        Difference(
            "malformed", ["header crit b64"],
            because:
                "RFC 7515, 4.1.11: what is critical and not known refuses; the library underneath Apple's knows b64"),
        Difference(
            "malformed",
            ["header byte order mark", "payload byte order mark", "payload NaN", "payload lone surrogate"],
            because: "it is not JSON by RFC 8259, or not UTF-8, and other readers of the record would fail on it"),
        Difference("malformed", ["payload depth 17"], because: "readers recurse; Apple's payloads nest 5 deep"),
        Difference("too_large", ["forgery oversized"], because: "a payload of Apple's has 20 KB"),
        Difference(
            "bad_certificate",
            [
                "forgery certificateWithTrailingByte", "header leaf with a byte more",
                "header intermediate with a byte more",
            ], because: "a certificate is one DER value, and nothing may follow it"),
        Difference(
            "bad_certificate", ["header root nonsense", "header root no base64", "header root empty"],
            because: "the third certificate is not used, but Apple sends one: anything else is not from Apple"),
        Difference(
            "inconsistent", ["forgery twoContents"],
            because: "documented as exclusive; Apple's library reads the first and ignores the other"),
        Difference(
            "inconsistent",
            [
                "forgery renewalOfAnother", "payload purchase of another", "payload renewal of another",
                "payload purchase in place of the renewal", "inner renewal of another",
            ], because: "parts of different subscriptions; Apple's verifies each alone and leaves this to its caller"),
        Difference(
            "inconsistent",
            [
                "payload status a text", "payload status with a fraction", "payload version a number",
                "payload type a number", "payload date a text", "payload date with a",
                "inner purchase with quantity as text",
                "inner purchase with an original that is a number",
            ], because: "the library below Apple's converts types; readers of our records would get another type"),
        Difference(
            "wrong_app", ["payload app id a text"],
            because: "the same conversion; compared as it is written, a text is no number"),
        Difference(
            "inconsistent",
            [
                "payload no type", "payload no UUID", "payload no date", "payload date null", "payload purchase empty",
                "inner purchase without original", "inner renewal without status",
            ], because: "without these members a notification cannot be identified, keyed or ordered"),
        Difference(
            "in_future", ["forgery fromTheFuture", "payload date in an hour"],
            because: "the newest date wins: one from the future would win against everything that comes after it"),
        Difference(
            "ok", ["payload exp", "payload nbf", "payload aud", "payload iat"],
            because:
                "claims of other tokens, which only the library underneath Apple's Python knows: unknown members here"),
    ]

    @Test(.enabled(if: Interop.isInstalled, "\(Interop.absence)"))
    func `agrees on what to take and what to refuse, but for the differences named here`() async throws {
        let maker = try SampleMaker()
        let samples = maker.all
        #expect(samples.count >= 500)
        #expect(Set(samples.map(\.name)).count == samples.count)
        let folder = try ScratchDirectory("perennial-opinion")
        let root = try folder.write(String(decoding: maker.authority.rootPEM, as: UTF8.self), to: "root.pem")
        let apps = try folder.write(appsFile, to: "apps.json")

        let theirs = try await opinions(of: samples, root: root, apps: apps)
        let ours = verdicts(on: samples, maker.authority)
        try #require(theirs.count == samples.count)
        #expect(zip(ours, theirs).count { $0 == ("ok", "ok") } >= 100)
        var met = Set<String>()
        for (sample, (ours, theirs)) in zip(samples, zip(ours, theirs)) {
            let known = Self.differences.lazy.flatMap { difference in
                difference.samples.map { (name: $0, verdict: difference.verdict) }
            }.first { sample.name.hasPrefix($0.name) }
            if (ours == "ok") == (theirs == "ok") { continue }
            #expect(known?.verdict == ours, "\(sample.name): \(ours), Apple's library: \(theirs)")
            if let known { met.insert(known.name) }
        }
        #expect(Set(Self.differences.flatMap(\.samples)).subtracting(met).isEmpty, "no differences any more")
        try await holdCommand(to: ours, samples, root: root, apps: apps, folder)
    }

    /// Runs the program itself on some of them, because it starts a process for each.
    private func holdCommand(
        to verdicts: [String], _ samples: [Sample], root: String, apps: String, _ folder: ScratchDirectory
    ) async throws {
        // The command ignores one line end after the text.
        let judged = Array(zip(samples, verdicts)).filter { !$0.0.text.hasSuffix("\n") }
        for (sample, verdict) in stride(from: 0, to: judged.count, by: judged.count / 30).map({ judged[$0] }) {
            let file = try folder.write(sample.text, to: "payload.jws")
            let outcome = try await perennial(["verify", "--verify.roots", root, "--apps", apps, file])
            #expect(outcome.code == (verdict == "ok" ? 0 : 1), "\(sample.name): \(outcome.standardError)")
            if verdict != "ok" { #expect(outcome.standardOutput == verdict + "\n", "\(sample.name)") }
        }
    }

    private func opinions(of samples: [Sample], root: String, apps: String) async throws -> [String] {
        let lines = samples.map { sample in
            var json = JSONWriter()
            json.string(sample.text)
            return String(decoding: json.bytes, as: UTF8.self) + "\n"
        }
        let result = try await Interop.run("verify_notifications.py", [root, apps], stdin: lines.joined())
        try #require(result.code == 0, "\(result.standardError.suffix(2000))")
        return result.standardOutput.split(separator: "\n").map(String.init)
    }

    /// "ok", or the reason code.
    private func verdicts(on samples: [Sample], _ authority: SimulatedAuthority) -> [String] {
        let verifier = Verifier(
            VerificationPolicy(
                anchors: TrustAnchors([authority.root]), apps: SampleMaker.apps.map(\.contractApp)))
        return samples.map { sample in
            do throws(Rejection) {
                _ = try verifier.notification(Array(sample.text.utf8), now: WallClock.milliseconds())
                return "ok"
            } catch {
                return error.reason.rawValue
            }
        }
    }

    private var appsFile: String {
        let entries = SampleMaker.apps.map { #"{"bundleId":"\#($0.bundleId)","appAppleId":\#($0.appAppleId)}"# }
        return "[\(entries.joined(separator: ","))]"
    }
}
