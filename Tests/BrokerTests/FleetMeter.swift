// Memory and processor time of the processes of a fleet.

import KafkaTestKit

struct FleetMeter {
    struct Sample {
        /// Seconds since the beginning.
        let at: Double
        let process: Int32
        let memory: Int
        let cpu: Double
    }

    /// By the name of the process, in order.
    private(set) var samples: [String: [Sample]] = [:]
    private let start = ContinuousClock.now

    mutating func take(_ running: [(name: String, process: ChildProcess)]) {
        let at = Double(start.duration(to: .now).components.seconds)
        for (name, process) in running {
            guard let memory = process.memoryBytes(), let cpu = process.cpuSeconds() else { continue }
            note(name, Sample(at: at, process: process.processID, memory: memory, cpu: cpu))
        }
    }

    mutating func note(_ name: String, _ sample: Sample) { samples[name, default: []].append(sample) }

    /// Cores that the processes used on average, together. What a process used between its last sample and its end is missing.
    func cores(_ isPart: (String) -> Bool) -> Double {
        var (used, seconds) = (0.0, 0.0)
        for (_, samples) in samples.filter({ isPart($0.key) }) {
            for (before, after) in zip(samples, samples.dropFirst()) {
                used += after.process == before.process ? after.cpu - before.cpu : after.cpu
            }
            seconds = max(seconds, (samples.last?.at ?? 0) - (samples.first?.at ?? 0))
        }
        return seconds > 0 ? used / seconds : 0
    }

    func most(_ name: String) -> Int { samples[name]?.map(\.memory).max() ?? 0 }

    /// Memory in the first and in the last third of the time after the warm-up: the most of each. nil: it ran too shortly.
    func growth(_ name: String, after warmUp: Double) -> (early: Int, late: Int)? {
        let all = (samples[name] ?? []).filter { $0.at >= warmUp }
        guard let first = all.first?.at, let last = all.last?.at, last > first else { return nil }
        let third = (last - first) / 3
        let early = all.filter { $0.at <= first + third }.map(\.memory).max()
        let late = all.filter { $0.at >= last - third }.map(\.memory).max()
        return early.flatMap { early in late.map { (early, $0) } }
    }

    /// Flat: a tenth and 16 MiB more are the difference between two busy moments.
    static func isFlat(_ growth: (early: Int, late: Int)) -> Bool {
        growth.late <= growth.early + growth.early / 10 + 16 << 20
    }
}
