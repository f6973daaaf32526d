// Numbers for lives that nobody planned.

/// SplitMix64: one seed is one run, on every machine.
public struct Chance: RandomNumberGenerator {
    private var state: UInt64
    public init(seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    public mutating func yes(_ perCent: UInt64) -> Bool { next() % 100 < perCent }
    public mutating func of<T>(_ choices: T...) -> T { choices[Int(next() % UInt64(choices.count))] }
    public mutating func below(_ bound: Int64) -> Int64 { Int64(next() % UInt64(bound)) }
}
