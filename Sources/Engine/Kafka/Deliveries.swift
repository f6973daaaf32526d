// The broker's acknowledgements of a transaction's records.

internal import Log

/// Keeps the greatest acknowledged offset per partition of each output. It is filled inside the producer's calls, on
/// the owner's thread, once per record, so it is an array that is indexed without a hash. A report's token is the index
/// of its topic.
final class Deliveries {
    /// The index of the first partition of each topic, and one more at the end.
    private var firsts = [0]
    private var open: [Int64] = []
    private var committed: [Int64] = []
    /// Why the first refused record of the open transaction was refused, and the index of its topic.
    private(set) var refusal: (code: KafkaCode, topic: Int)?

    private static let none: Int64 = -1

    /// - Parameter partitions: the number of partitions of each topic.
    func reset(partitions: [Int32]) {
        firsts = partitions.reduce(into: [0]) { $0.append($0.last! + Int($1)) }
        open = Array(repeating: Self.none, count: firsts.last!)
        committed = open
    }

    func note(_ report: DeliveryReport) {
        if let failure = report.failure {
            // An abort itself purges records.
            if !failure.isPurge && refusal == nil { refusal = (failure, Int(report.token)) }
            return
        }
        guard let place = place(of: report.partition, in: Int(report.token)) else { return }
        if report.offset > open[place] { open[place] = report.offset }
    }

    func begin() {
        refusal = nil
        for place in open.indices { open[place] = Self.none }
    }

    func commit() { swap(&open, &committed) }

    /// The offset after the last record of the last commit; nil if that commit wrote nothing there.
    func end(topic: Int, partition: Int32) -> NextOffset? {
        guard let place = place(of: partition, in: topic), committed[place] != Self.none else { return nil }
        return NextOffset(after: committed[place])
    }

    /// nil for a partition that the topic did not have when the session began.
    private func place(of partition: Int32, in topic: Int) -> Int? {
        guard topic >= 0, topic < firsts.count - 1, partition >= 0 else { return nil }
        let place = firsts[topic] + Int(partition)
        return place < firsts[topic + 1] ? place : nil
    }
}
