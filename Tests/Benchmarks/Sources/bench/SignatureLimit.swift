// The cost of the signatures alone: no program that verifies can cost less.

import KafkaTestKit
import Platform

/// The core that our run and OpenSSL's benchmark share while they are measured. Side by side on one core they see the same
/// frequency and the same busy neighbour, which on a machine of two hardware threads changes L by a factor of two; one after the
/// other they do not. Both are counted in CPU time, so neither loses by sharing. OpenSSL has the lower priority (`nice`), so that
/// ours is as busy as on a core of its own.
let measuredCore = ["taskset", "-c", "0"]

/// L: P-256 verifications per second of one core, measured by OpenSSL's own benchmark. Each notification carries three
/// signatures, so a program that did nothing else could reach L/3.
/// - Parameter seconds: of each of the benchmark's two halves, signing and verifying; together about as long as the run that is
///   compared with it.
func verificationsPerSecond(seconds: Int) async throws -> Double {
    let arguments =
        measuredCore.dropFirst() + ["nice", "-n", "5", "openssl", "speed", "-seconds", "\(seconds)", "ecdsap256"]
    let result = try await run(measuredCore[0], Array(arguments), timeout: .seconds(120))
    // "256 bits ecdsa (nistp256)   0.0000s   0.0001s  40000.0  17000.0"
    let line = result.standardOutput.split(separator: "\n").first { $0.contains("nistp256") }
    guard result.code == 0, let last = line?.split(separator: " ").last, let rate = Double(last) else {
        printMessage("bench: cannot read the output of openssl speed: \(result.words)")
        exitProcess(3)
    }
    return rate
}

/// Our runs and simultaneous runs of OpenSSL.
struct Rounds {
    /// CPU microseconds per notification, one value per run.
    private(set) var microseconds: [Double] = []
    private(set) var limits: [Double] = []
    /// Our rate divided by L/3 of the same seconds.
    private(set) var ratios: [Double] = []

    /// - Parameter body: one run on the measured core; returns CPU seconds per notification.
    static func measure(_ count: Int, opensslSeconds: Int, _ body: () async throws -> Double) async throws -> Rounds {
        var rounds = Rounds()
        for round in 1...count {
            async let limit = verificationsPerSecond(seconds: opensslSeconds)
            let seconds = try await body()
            let perSecond = try await limit
            rounds.microseconds.append(seconds * 1e6)
            rounds.limits.append(perSecond)
            rounds.ratios.append(3 / seconds / perSecond)
            printMessage("round \(round)/\(count): \(decimals(seconds * 1e6)) us, L \(decimals(perSecond))/s")
        }
        return rounds
    }

    var words: String {
        "\(figures(microseconds)) us, \(decimals(1e6 / median(microseconds)))/s a core, L/3 "
            + "\(decimals(median(limits) / 3))/s, ratios \(figures(ratios))"
    }
}
