// What the worker keeps of a subscription.

public import Entitlements

/// The facts, and what was last told of them. As bytes: sequence, asOf, facts.
struct EntitlementsState {
    static let format: UInt8 = 1

    /// Of the last value that was written; 0: none was.
    var sequence: Int64 = 0
    /// Its `asOf`: from then on the answer has been what was written.
    var asOf: Int64 = 0
    var facts = Facts()

    init() {}

    /// nil for bytes that no state has.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 16, let facts = Facts(encoded: Array(bytes[16...])) else { return nil }
        sequence = Self.number(bytes[0..<8])
        asOf = Self.number(bytes[8..<16])
        self.facts = facts
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        let facts = facts.encoded
        bytes.reserveCapacity(16 + facts.count)
        for number in [sequence, asOf] {
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: number >> Int64(shift)))
            }
        }
        return bytes + facts
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int64 {
        Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) })
    }
}

extension EntitlementsProcessor {
    /// What the worker keeps of a subscription whose newest value had this `sequence` and `asOf`: for who fills a state, as
    /// benchmarks do.
    public static func state(of facts: Facts, sequence: Int64, asOf: Int64) -> [UInt8] {
        var state = EntitlementsState()
        state.sequence = sequence
        state.asOf = asOf
        state.facts = facts
        return state.bytes
    }
}
