// What may happen to the processes of a worker at any moment.

public import LogTestKit
import MemoryLog

/// Kills, freezes, stops and starts processes of a simulation at random, and lets them lose their disks. The same seed does the same.
public struct Disturbances {
    public struct NoProgress: Error, CustomStringConvertible {
        public let description: String

        public init(_ simulation: WorkerSimulation) {
            description = "\(simulation.processes.map { "\($0.slot): \($0.troubles)" })"
        }
    }

    private let simulation: WorkerSimulation
    private let start: (WorkerSimulation.Process) -> Void
    /// Whoever feeds the simulation takes random numbers from it as well, so that one seed decides everything.
    public var dice: SplitMix64
    private var round = 0
    /// By slot: the round in which a frozen process goes on.
    private var frozenUntil: [Int: Int] = [:]
    /// Each word as often as it was done.
    public private(set) var happened: [String] = []

    /// - Parameter start: starts a process that does not run.
    public init(
        seed: UInt64, _ simulation: WorkerSimulation, start: @escaping (WorkerSimulation.Process) -> Void
    ) {
        dice = SplitMix64(seed: seed)
        self.simulation = simulation
        self.start = start
    }

    /// Some steps of each process that is not frozen, and perhaps one disturbance.
    public mutating func disturb() {
        round += 1
        for process in simulation.processes where frozenUntil[process.slot, default: 0] <= round {
            for _ in 0..<Int.random(in: 0...8, using: &dice) {
                simulation.step(process, restorerFirst: Bool.random(using: &dice))
            }
        }
        simulation.clock.advance(by: .milliseconds(Int.random(in: 0...60, using: &dice)))
        let process = simulation.processes.randomElement(using: &dice)!
        switch Int.random(in: 0..<100, using: &dice) {
        case 0..<8 where process.isRunning:
            happened.append("kill")
            simulation.crash(process)
        case 8..<15 where process.isRunning:
            happened.append("freeze")
            frozenUntil[process.slot] = round + Int.random(in: 5...30, using: &dice)
            simulation.clock.advance(by: .seconds(Int.random(in: 0...9, using: &dice)))
        case 15..<22 where process.isRunning:
            happened.append("stop")
            simulation.stop(process)
        case 22..<70 where !process.isRunning:
            if Int.random(in: 0..<3, using: &dice) == 0 {
                happened.append("lost disk")
                simulation.loseDisk(of: process)
            }
            start(process)
        case 70..<73: simulation.log.compact()
        default: break
        }
    }

    /// All processes run, and process everything.
    public mutating func comeToEnd() throws {
        frozenUntil = [:]
        for _ in 0..<100 {
            for process in simulation.processes where !process.isRunning { start(process) }
            if try simulation.runToEnd(limit: 500) { return }
        }
        throw NoProgress(simulation)
    }
}

extension SeededFaults {
    /// Faults of every kind, most of them requests that take long.
    public static func ofEveryKind(seed: UInt64) -> SeededFaults {
        var rates = Rates(everyKind: 2_000)
        rates[.slow] = 20_000
        return SeededFaults(seed: seed, rates: rates)
    }
}
