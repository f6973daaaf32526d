// What the signatures alone cost: the floor below everything that verifies.

import KafkaTestKit
import Platform

/// L: P-256 verifications per second of one core, as OpenSSL's own benchmark has it. Each notification carries three, so L/3
/// is what a program could reach that did nothing else.
func verificationsPerSecond() async throws -> Double {
    let result = try await run("openssl", ["speed", "-seconds", "3", "ecdsap256"], timeout: .seconds(60))
    // "256 bits ecdsa (nistp256)   0.0000s   0.0001s  40000.0  17000.0"
    let line = result.standardOutput.split(separator: "\n").first { $0.contains("nistp256") }
    guard result.code == 0, let last = line?.split(separator: " ").last, let rate = Double(last) else {
        printMessage("bench: openssl speed said nothing that can be read: \(result.words)")
        exitProcess(3)
    }
    return rate
}

/// Runs of ours between runs of OpenSSL.
struct Rounds {
    /// CPU microseconds per notification, one for each run.
    private(set) var microseconds: [Double] = []
    private(set) var limits: [Double] = []
    /// Our rate over L/3, with the L of just before and just after: what else the machine does meanwhile slows both, and the
    /// frequency of its cores moves within minutes.
    private(set) var ratios: [Double] = []

    /// - Parameter body: one run; returns CPU seconds per notification.
    static func measure(_ count: Int, _ body: () async throws -> Double) async throws -> Rounds {
        var rounds = Rounds()
        var before = try await verificationsPerSecond()
        for round in 1...count {
            let seconds = try await body()
            let after = try await verificationsPerSecond()
            rounds.microseconds.append(seconds * 1e6)
            rounds.limits.append((before + after) / 2)
            rounds.ratios.append(3 / seconds / ((before + after) / 2))
            before = after
            printMessage("round \(round)/\(count): \(decimals(seconds * 1e6)) us, L \(decimals(after))/s")
        }
        return rounds
    }

    var words: String {
        "\(figures(microseconds)) us, \(decimals(1e6 / median(microseconds)))/s a core, L/3 "
            + "\(decimals(median(limits) / 3))/s, ratios \(figures(ratios))"
    }
}
