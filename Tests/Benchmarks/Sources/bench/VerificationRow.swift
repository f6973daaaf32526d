// Verification on one thread, compared with the signatures alone and with Apple's own library.

import AppStore
import CLoops
import Crypto
import Glibc
import IngestTestKit
import KafkaTestKit
import Platform
import Records

/// Distinct payloads, so that only the chain is found in a cache; 58 MB, more than the processor's cache.
private let notifications = 3_000
/// A run takes a second or two.
private let repetitions = 3
private let rounds = 5
private let floor = 0.88

/// Apple's library takes some 5 ms per payload.
private let notificationsForPython = 1_000
private let multipleOfPython = 9.0

private func verifier(for fixture: NotificationFixture) -> Verifier {
    Verifier(VerificationPolicy(anchors: TrustAnchors([fixture.root]), apps: [fixture.app]))
}

/// `verify|verify-and-encode`
func verifyLoop(_ arguments: [String]) throws -> Int64 {
    let encodes = arguments[0] == "verify-and-encode"
    let fixture = try NotificationFixture(count: notifications)
    let verifier = verifier(for: fixture)
    let now = WallClock.milliseconds()
    var bytes = 0
    func treat(_ payload: [UInt8]) throws(Rejection) {
        let notification = try verifier.notification(payload, now: now)
        if encodes { bytes += NotificationRecord.value(notification, receivedDate: now, source: .push).count }
    }
    // Fills the cache of chains.
    try treat(fixture.payloads[0])
    let start = bench_cpu_microseconds()
    for _ in 0..<repetitions {
        for payload in fixture.payloads { try treat(payload) }
    }
    let spent = bench_cpu_microseconds() - start
    return encodes == (bytes > 0) ? spent : -1
}

private func cpuSeconds(_ loop: String) async throws -> Double {
    try await measureLoop([loop], by: measuredCore) / 1e6 / Double(notifications * repetitions)
}

func measureVerification(_ report: inout Report) async throws {
    let fixture = try NotificationFixture(count: 100)
    report.note(
        "\(notifications) distinct notifications of \(fixture.averageBytes) bytes, three signatures each; CPU time of the "
            + "process, \(rounds) runs beside openssl on one core")
    let alone = try await Rounds.measure(rounds, opensslSeconds: 3) { try await cpuSeconds("verify") }
    report.judge("verification", alone.words, ratio: median(alone.ratios), .atLeast(floor))
    let encoding = try await Rounds.measure(rounds, opensslSeconds: 3) { try await cpuSeconds("verify-and-encode") }
    report.note("with the record's JSON encoded: \(encoding.words)")
}

/// Only the Python library: those for Java and Node are not measured here, so this ratio is not a ratio against Apple's fastest
/// library.
func measurePython(_ report: inout Report) async throws {
    // Tests/Interop/setup.sh makes it.
    let python = "\(repositoryPath)/.build/interop/bin/python"
    guard access(python, X_OK) == 0 else {
        return report.note("skipped: Apple's library is not installed; run Tests/Interop/setup.sh")
    }
    let fixture = try NotificationFixture(count: notificationsForPython)
    let scratch = try ScratchDirectory("bench-python")
    let payloads = try scratch.write(
        fixture.payloads.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "\n"), to: "payloads")
    let root = try scratch.write(String(decoding: fixture.rootPEM, as: UTF8.self), to: "root.pem")
    var ours: [Double] = []
    var theirs: [Double] = []
    for round in 1...rounds {
        ours.append(try await cpuSeconds("verify") * 1e6)
        let result = try await run(
            python,
            [
                "\(repositoryPath)/Tests/Benchmarks/apple_library.py", payloads, root, NotificationFixture.bundleId,
                "\(NotificationFixture.appAppleId)",
            ], timeout: .seconds(300))
        guard result.code == 0, let seconds = Double(result.standardOutput.prefix { $0 != "\n" }) else {
            printMessage("bench: Apple's library failed: \(result.words)")
            exitProcess(3)
        }
        theirs.append(seconds * 1e6 / Double(notificationsForPython))
        printMessage("round \(round)/\(rounds)")
    }
    report.judge(
        "python", "\(figures(theirs)) us, Perennial \(figures(ours)) us", ratio: median(theirs) / median(ours),
        .atLeast(multipleOfPython))
}

/// This file is in Tests/Benchmarks/Sources/bench.
let repositoryPath = String(#filePath.split(separator: "/").dropLast(5).reduce("") { "\($0)/\($1)" })
