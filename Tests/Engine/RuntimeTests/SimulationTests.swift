import Glibc
import MemoryLog
import Synchronization
import Testing

/// Number of seeds: 60 in `make test`; `PERENNIAL_TEST_SEEDS` sets another number, `PERENNIAL_TEST_SEED` a single seed.
private var seeds: [UInt64] {
    func number(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }
    if let seed = number("PERENNIAL_TEST_SEED") { return [seed] }
    return Array(1...(number("PERENNIAL_TEST_SEEDS") ?? 60))
}

/// In a few parts that can run in parallel.
private let parts: [Int] = Array(0..<4)

/// The faults and disturbances that occurred, over all parts.
private let met = Mutex((parts: 0, events: Set<String>()))

/// What must occur somewhere among 300 seeds: every fault at every step where it is possible, and every disturbance.
private let expected: Set<String> = {
    // Only the restorer reads without a group while faults happen.
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
        // The last part to end knows what occurred in all.
        let missing = met.withLock { met in
            met.parts += 1
            return met.parts == parts.count && seeds.count >= 300 ? expected.subtracting(met.events) : []
        }
        #expect(missing.isEmpty, "no seed has met this")
    }
}
