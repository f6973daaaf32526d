// Random numbers for random lives.

import LogTestKit
import MemoryLog

/// A seed gives the same run on every machine.
public struct Chance: RandomNumberGenerator {
    private var numbers: SplitMix64
    public init(seed: UInt64) { numbers = SplitMix64(seed: seed) }

    public mutating func next() -> UInt64 { numbers.next() }
    public mutating func yes(_ perCent: UInt64) -> Bool { next() % 100 < perCent }
    public mutating func of<T>(_ choices: T...) -> T { choices[Int(next() % UInt64(choices.count))] }
    public mutating func below(_ bound: Int64) -> Int64 { Int64(next() % UInt64(bound)) }
}
