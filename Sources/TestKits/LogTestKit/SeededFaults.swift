// Faults from a seed.

public import MemoryLog
import Synchronization

/// Chooses faults with its own generator: the same seed and the same calls give the same faults.
public final class SeededFaults: LogFaults {
    /// How often each kind happens, per million of the steps at which it can.
    public struct Rates: Sendable {
        private var perMillion: [InjectedFault.Kind: UInt64] = [:]

        public init() {}

        /// The same rate for all kinds.
        public init(everyKind rate: UInt64) {
            for kind in InjectedFault.Kind.allCases { perMillion[kind] = rate }
        }

        public subscript(kind: InjectedFault.Kind) -> UInt64 {
            get { perMillion[kind, default: 0] }
            set { perMillion[kind] = newValue }
        }
    }

    private struct State {
        var generator: SplitMix64
        var isHealed = false
        var steps = 0
        var trace: [String] = []
    }

    private let rates: Rates
    private let state: Mutex<State>

    public init(seed: UInt64, rates: Rates) {
        self.rates = rates
        state = Mutex(State(generator: SplitMix64(seed: seed)))
    }

    public func fault(at step: LogStep, of identity: String) -> InjectedFault? {
        state.withLock { state in
            state.steps += 1
            guard !state.isHealed else { return nil }
            // One draw per step, whatever the rates are: the kinds share the million.
            var drawn = state.generator.next() % 1_000_000
            for kind in step.kinds {
                guard drawn >= rates[kind] else {
                    let fault = InjectedFault(kind, 1 + Int(state.generator.next() % 4))
                    state.trace.append("\(state.steps) \(step.rawValue) \(identity) \(fault)")
                    return fault
                }
                drawn -= rates[kind]
            }
            return nil
        }
    }

    /// From now on no faults happen, so a test can demand progress.
    public func heal() { state.withLock { $0.isHealed = true } }

    /// One line for each fault: the number of the step, the step, the identity, the fault.
    public var trace: [String] { state.withLock { $0.trace } }
}

/// A generator whose numbers depend only on the seed (Steele, Lea, Flood 2014).
public struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    public init(seed: UInt64) {
        state = seed
    }

    public mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
