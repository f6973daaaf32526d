// Random numbers that are the same on every machine and in every release.

/// SplitMix64. It is written here because a seed must repeat a run years later: neither the system's generator nor the
/// standard library's conversion to a range is guaranteed to stay the same.
struct Randomness {
    private var state: UInt64

    /// Different parts give independent streams: the numbers that one subscriber draws never affect another.
    init(_ parts: UInt64...) {
        state = 0
        for part in parts {
            state = Self.mix(state &+ part &+ 0x9e37_79b9_7f4a_7c15)
        }
    }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        return Self.mix(state)
    }

    /// The remainder favours small numbers by less than one part in 10^6 for every range used here.
    mutating func number(in range: ClosedRange<Int64>) -> Int64 {
        let count = UInt64(range.upperBound - range.lowerBound) + 1
        return range.lowerBound + Int64(next() % count)
    }

    mutating func chance(perMille: Int) -> Bool { next() % 1000 < UInt64(perMille) }

    mutating func choice<T>(of elements: [T]) -> T { elements[Int(next() % UInt64(elements.count))] }

    /// A random index with these weights, of which at least one is positive.
    mutating func index(weighted weights: [Int]) -> Int {
        var rest = Int(next() % UInt64(weights.reduce(0, +)))
        for (index, weight) in weights.enumerated() {
            if rest < weight { return index }
            rest -= weight
        }
        preconditionFailure("the remainder is less than the sum")
    }

    /// Version 4, in lower case.
    mutating func uuid() -> UUIDText {
        UUIDText(high: next() & ~0xf000 | 0x4000, low: next() & ~(0b11 << 62) | (0b10 << 62))
    }

    private static func mix(_ value: UInt64) -> UInt64 {
        var mixed = value
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}

/// A UUID whose text is made on demand: a story is run many times, but its texts are needed once.
struct UUIDText: Sendable, CustomStringConvertible {
    let high: UInt64
    let low: UInt64

    var description: String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for index in 0..<32 {
            if [8, 12, 16, 20].contains(index) { text.append(UInt8(ascii: "-")) }
            let half = index < 16 ? high : low
            text.append(digits[Int(half >> UInt64(60 - 4 * (index % 16)) & 0xf)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}
