import Glibc
import MemoryLog
import Synchronization
import Testing

/// How many seeds: 60 in the ordinary run; `PERENNIAL_TEST_SEEDS` asks for more, `PERENNIAL_TEST_SEED` for a certain one.
private var seeds: [UInt64] {
    func number(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }
    if let seed = number("PERENNIAL_TEST_SEED") { return [seed] }
    return Array(1...(number("PERENNIAL_TEST_SEEDS") ?? 60))
}

/// In a few parts that can run side by side.
private let parts: [Int] = Array(0..<4)

/// What the seeds have met, over all parts.
private let met = Mutex((parts: 0, events: Set<String>()))

/// What has to happen somewhere among 300 seeds: every fault at every step at which it can, and what people and machines do.
private let expected: Set<String> = {
    // Nothing but the restorer reads without a group while faults happen.
    let faults = LogStep.allCases.filter { $0 != .readerPoll }.flatMap { step in
        step.kinds.map { "\(step.rawValue) \($0.rawValue)" }
    }
    return Set(faults + ["kill", "freeze", "stop", "start", "disk", "offsets", "compact"])
}()

@Suite struct `Workers under everything that can go wrong` {
    @Test(arguments: parts)
    func `write what a plain fold of their input says, once and in order`(part: Int) throws {
        for seed in seeds where Int(seed % 4) == part {
            var run = try SimulatedRun(seed: seed)
            let wrong = try run.run()
            met.withLock { $0.events.formUnion(run.met) }
            if seeds.count == 1 { print(run.trace.joined(separator: "\n")) }
            if wrong.isEmpty { continue }
            Issue.record(
                "seed \(seed): \(wrong.prefix(3).joined(separator: "; ")). Repeat with: make simulate SEED=\(seed)")
        }
        // Whoever is last knows what all have met.
        let missing = met.withLock { met in
            met.parts += 1
            return met.parts == parts.count && seeds.count >= 300 ? expected.subtracting(met.events) : []
        }
        #expect(missing.isEmpty, "no seed has met this")
    }
}
