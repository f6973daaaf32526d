// Metrics that the hot path updates. Every operation is lock-free and may be called from any thread.

import Synchronization

/// A number that only grows. One atomic addition per call.
public final class Counter: Sendable {
    private let total = Atomic<UInt64>(0)

    init() {}

    public func add(_ amount: UInt64 = 1) { total.wrappingAdd(amount, ordering: .relaxed) }
    public var value: UInt64 { total.load(ordering: .relaxed) }
}

/// A number that goes up and down.
public final class Gauge: Sendable {
    private let bits = Atomic<UInt64>(0)

    init() {}

    public func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }
    public func add(_ amount: Double) { bits.addDouble(amount) }
    public var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }
}

/// Counts observations by size. One atomic addition and one exchange per call.
public final class Histogram: Sendable {
    /// Seconds from a millisecond to half a minute: the time of a commit, a request or a call to Apple.
    public static let latencySeconds: [Double] = [
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
    ]

    private final class Bucket: Sendable {
        let count = Atomic<UInt64>(0)
    }

    let bounds: [Double]
    private let buckets: [Bucket]
    private let sumBits = Atomic<UInt64>(0)

    init(bounds: [Double]) {
        precondition(!bounds.isEmpty && bounds.allSatisfy(\.isFinite), "a histogram needs finite bounds")
        precondition(zip(bounds, bounds.dropFirst()).allSatisfy { $0 < $1 }, "the bounds of a histogram must rise")
        self.bounds = bounds
        buckets = (0...bounds.count).map { _ in Bucket() }
    }

    /// A bucket counts values up to its bound. NaN fits no bucket and would spoil the sum forever, so it is ignored.
    public func observe(_ value: Double) {
        guard !value.isNaN else { return }
        let index = bounds.firstIndex { value <= $0 } ?? bounds.count
        buckets[index].count.wrappingAdd(1, ordering: .relaxed)
        sumBits.addDouble(value)
    }

    /// In seconds, the unit of Prometheus.
    public func observe(_ duration: Duration) {
        observe(Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18)
    }

    func reading() -> (counts: [UInt64], sum: Double) {
        (buckets.map { $0.count.load(ordering: .relaxed) }, Double(bitPattern: sumBits.load(ordering: .relaxed)))
    }
}

extension Atomic where Value == UInt64 {
    /// Adds to a Double that is stored by its bit pattern: the processor has no atomic addition of floating-point
    /// numbers.
    fileprivate func addDouble(_ amount: Double) {
        var seen = load(ordering: .relaxed)
        while true {
            let sum = (Double(bitPattern: seen) + amount).bitPattern
            let (exchanged, original) = weakCompareExchange(expected: seen, desired: sum, ordering: .relaxed)
            if exchanged { return }
            seen = original
        }
    }
}
