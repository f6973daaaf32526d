// Usage records of the app's backend that wait for their time.

import Simulation

/// In order of time, then in order of insertion. There are a few for each refund request of the last half day, and for each purchase
/// of the last minutes.
struct UsageQueue {
    private var records: [SimulatedUsage] = []

    mutating func add(_ others: [SimulatedUsage]) {
        for record in others {
            let place = records.lastIndex { $0.at <= record.at }.map { $0 + 1 } ?? 0
            records.insert(record, at: place)
        }
    }

    /// - Parameter time: up to which records are due; nil: all records are due.
    mutating func pop(by time: Int64?) -> SimulatedUsage? {
        guard let first = records.first, time.map({ first.at <= $0 }) ?? true else { return nil }
        return records.removeFirst()
    }
}
