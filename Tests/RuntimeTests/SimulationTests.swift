import Glibc
import Testing

/// How many seeds: 300 in the ordinary run; `PERENNIAL_TEST_SEEDS` asks for more, `PERENNIAL_TEST_SEED` for a certain one.
private var seeds: [UInt64] {
    func number(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }
    if let seed = number("PERENNIAL_TEST_SEED") { return [seed] }
    return Array(1...(number("PERENNIAL_TEST_SEEDS") ?? 300))
}

/// In a few parts that can run side by side.
private let parts: [Int] = Array(0..<4)

@Suite struct `Workers under everything that can go wrong` {
    @Test(arguments: parts)
    func `write what a plain fold of their input says, once and in order`(part: Int) throws {
        for seed in seeds where Int(seed % 4) == part {
            var run = try SimulatedRun(seed: seed)
            let wrong = try run.run()
            if wrong.isEmpty { continue }
            Issue.record(
                "seed \(seed): \(wrong.prefix(3).joined(separator: "; ")). Repeat with: make simulate SEED=\(seed)")
            if seeds.count == 1 { print(run.trace.joined(separator: "\n")) }
        }
    }
}
