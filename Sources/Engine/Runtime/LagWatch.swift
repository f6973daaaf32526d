// Measures how far a worker is behind.

package import Log
internal import Platform
import Synchronization
internal import Telemetry

/// The positions of a worker's threads, for monitoring.
package final class PositionBoard: Sendable {
    struct Position: Equatable {
        var next: [NextOffset]
        /// The greatest timestamp of the events so far.
        var clock: Int64
    }

    private let positions = Mutex<[Int32: Position]>([:])
    /// The partitions assigned to each thread, whether or not they are open yet.
    private let given = Mutex<[Int: Set<Int32>]>([:])

    package init() {}

    func set(_ position: Position, of partition: Int32) { positions.withLock { $0[partition] = position } }
    func remove(_ partition: Int32) { positions.withLock { $0[partition] = nil } }
    package func next(of partition: Int32) -> [NextOffset]? { positions.withLock { $0[partition]?.next } }
    var all: [Int32: Position] { positions.withLock { $0 } }

    /// Replaces the partitions of a thread.
    func give(_ partitions: Set<Int32>, to thread: Int) { given.withLock { $0[thread] = partitions } }
    var allGiven: Set<Int32> { given.withLock { $0.values.reduce(into: []) { $0.formUnion($1) } } }
}

/// A partition in which an open transaction hides all later records from readers.
struct HeldPartition: Hashable {
    let partition: TopicPartition
    /// Where the transaction begins: no record from there on can be read.
    let offset: NextOffset

    /// A transaction of ours lasts ten seconds at most, and a working broker aborts any other at its timeout.
    static let limit: Duration = .seconds(30)

    func words(after time: Duration) -> String {
        "an open transaction has hidden the records of \(partition) from offset \(offset.value) on for "
            + "\(time.wholeMilliseconds / 1000) s: its producer is slow, or the transaction hangs (KAFKA-20734). Check "
            + "with kafka-transactions.sh find-hanging --topic \(partition.topic) --partition \(partition.partition); "
            + "abort one that hangs with kafka-transactions.sh abort --topic \(partition.topic) --partition "
            + "\(partition.partition) --start-offset \(offset.value)"
    }
}

/// Asks the log for the end offsets of the partitions that this process works on, and compares. librdkafka's own lag
/// does not include offsets that are committed in transactions. For use by one thread.
struct LagWatch: ~Copyable {
    private let definition: WorkerDefinition
    private let log: any RecordLog
    private let board: PositionBoard
    private let metrics: Metrics
    private let worker: String
    private var reader: (any LogReader)?
    /// For each partition whose committed end lies before its true end: that end, and since when.
    private var stalls: [TopicPartition: (end: NextOffset, since: Duration)] = [:]
    private var shown: Set<Int32> = []
    /// The partitions that have been blocked long enough for a person to look, and for how long.
    private(set) var held: [(partition: HeldPartition, time: Duration)] = []

    init(
        _ definition: WorkerDefinition, log: any RecordLog, board: PositionBoard, metrics: Metrics
    ) {
        self.definition = definition
        self.log = log
        self.board = board
        self.metrics = metrics
        worker = definition.name
    }

    mutating func look(elapsed: Duration, wallClock: Int64) {
        let positions = board.all
        hide(shown.subtracting(positions.keys))
        // Partitions that are being restored have no position yet, but a hidden record in the changelog blocks them
        // too.
        let numbers = board.allGiven.union(positions.keys).sorted()
        if numbers.isEmpty {
            showStall([], [:], [:], elapsed)
            return
        }
        let topics = definition.inputs.map(\.topic) + [definition.changelog]
        let partitions = numbers.flatMap { number in topics.map { TopicPartition($0, number) } }
        let deadline = Deadline(after: .seconds(10))
        do throws(LogFault) {
            let reader = try openReader()
            let committed = try reader.ends(.committed, of: partitions, by: deadline)
            let all = try reader.ends(.all, of: partitions, by: deadline)
            for (number, position) in positions.sorted(by: { $0.key < $1.key }) {
                show(number, position, committed, wallClock)
            }
            showStall(partitions, committed, all, elapsed)
        } catch {
            // The next attempt may succeed. The session reports what is wrong with the log.
            close()
        }
    }

    mutating func close() {
        reader?.close(by: Deadline(after: .seconds(5)))
        reader = nil
    }

    private mutating func openReader() throws(LogFault) -> any LogReader {
        if let reader { return reader }
        let made = try log.openReader(
            ReaderOptions(
                name: "\(worker)-lag", group: definition.group,
                topics: definition.inputs.map(\.topic) + [definition.changelog]))
        reader = made
        return made
    }

    private mutating func show(
        _ number: Int32, _ position: PositionBoard.Position, _ ends: [TopicPartition: NextOffset], _ wallClock: Int64
    ) {
        shown.insert(number)
        for (index, input) in definition.inputs.enumerated() {
            guard let end = ends[TopicPartition(input.topic, number)] else { continue }
            let behind = max(0, end.value - position.next[index].value)
            lagRecords(number, input.topic).set(Double(behind))
            if index == 0 {
                let seconds = behind == 0 || position.clock == .min ? 0 : Double(wallClock - position.clock) / 1000
                lagSeconds(number).set(max(0, seconds))
            }
        }
    }

    /// A dead or hanging producer blocks all readers, and nothing else would report it.
    private mutating func showStall(
        _ partitions: [TopicPartition], _ committed: [TopicPartition: NextOffset], _ all: [TopicPartition: NextOffset],
        _ elapsed: Duration
    ) {
        var longest = Duration.zero
        held = []
        let watched = Set(partitions)
        stalls = stalls.filter { watched.contains($0.key) }
        for partition in partitions {
            guard let visible = committed[partition], let end = all[partition], visible < end else {
                stalls[partition] = nil
                continue
            }
            if stalls[partition]?.end != visible { stalls[partition] = (visible, elapsed) }
            let time = elapsed - (stalls[partition]?.since ?? elapsed)
            longest = max(longest, time)
            if time >= HeldPartition.limit {
                held.append((HeldPartition(partition: partition, offset: visible), time))
            }
        }
        metrics.gauge(
            "perennial_lso_stall_seconds",
            help:
                "Seconds for which an open transaction has blocked the readers of an input or the changelog; above 60 "
                + "a person should look.",
            labels: ["worker": worker]
        ).set(longest.fractionalSeconds)
    }

    /// Removes the metrics of partitions that other processes have now.
    private mutating func hide(_ gone: Set<Int32>) {
        for number in gone {
            for input in definition.inputs { lagRecords(number, input.topic).set(0) }
            lagSeconds(number).set(0)
        }
        shown.subtract(gone)
    }

    private func lagRecords(_ number: Int32, _ topic: String) -> Gauge {
        metrics.gauge(
            "perennial_lag_records", help: "Committed records of an input that the worker has not processed yet.",
            labels: ["worker": worker, "topic": topic, "partition": "\(number)"])
    }

    private func lagSeconds(_ number: Int32) -> Gauge {
        metrics.gauge(
            "perennial_lag_seconds", help: "Age of the last processed record, in seconds; 0 at the end of the input.",
            labels: ["worker": worker, "partition": "\(number)"])
    }
}
