// How far a worker is behind, by our own count.

package import Log
internal import Platform
import Synchronization
internal import Telemetry

/// Where the threads of a worker stand, for those who watch.
package final class PositionBoard: Sendable {
    struct Position: Equatable {
        var next: [NextOffset]
        /// The largest timestamp of the events so far.
        var clock: Int64
    }

    private let positions = Mutex<[Int32: Position]>([:])
    /// What each thread was given, whether or not it is open yet.
    private let given = Mutex<[Int: Set<Int32>]>([:])

    package init() {}

    func set(_ position: Position, of partition: Int32) { positions.withLock { $0[partition] = position } }
    func remove(_ partition: Int32) { positions.withLock { $0[partition] = nil } }
    package func next(of partition: Int32) -> [NextOffset]? { positions.withLock { $0[partition]?.next } }
    var all: [Int32: Position] { positions.withLock { $0 } }

    /// All that a thread has from now on.
    func give(_ partitions: Set<Int32>, to thread: Int) { given.withLock { $0[thread] = partitions } }
    var allGiven: Set<Int32> { given.withLock { $0.values.reduce(into: []) { $0.formUnion($1) } } }
}

/// A partition in which an open transaction hides from readers what comes behind it.
struct HeldPartition: Hashable {
    let partition: TopicPartition
    /// Where the transaction begins: nothing from there on can be read.
    let offset: NextOffset

    /// A transaction of ours lasts ten seconds at most; a broker that works ends every one when its own time is over.
    static let limit: Duration = .seconds(30)

    func words(after time: Duration) -> String {
        "an open transaction has hidden what is in \(partition) from offset \(offset.value) on for "
            + "\(time.wholeMilliseconds / 1000) s: its writer works for very long, or it hangs (KAFKA-20734). Look with "
            + "kafka-transactions.sh find-hanging --topic \(partition.topic) --partition \(partition.partition); end one that "
            + "hangs with kafka-transactions.sh abort --topic \(partition.topic) --partition \(partition.partition) "
            + "--start-offset \(offset.value)"
    }
}

/// Asks the log for the ends of what this process works on, and compares. The client library's own figure misses positions that
/// are committed in transactions. One thread.
struct LagWatch: ~Copyable {
    private let definition: WorkerDefinition
    private let log: any RecordLog
    private let board: PositionBoard
    private let metrics: Metrics
    private let worker: String
    private var reader: (any LogReader)?
    /// Of each partition whose committed end lies before its true end: that end, and since when.
    private var stalls: [TopicPartition: (end: NextOffset, since: Duration)] = [:]
    private var shown: Set<Int32> = []
    /// What has been held back for so long that somebody should look, and for how long.
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
        // Those that are restored have no position yet, and wait for what is hidden in the changelog all the same.
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
            // The next look may fare better; the session tells what is wrong with the log.
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

    /// A dead or hanging writer holds all readers back; nobody else would say so.
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
                "For how long an open transaction has held back the readers of an input or the changelog; above 60 somebody "
                + "should look.",
            labels: ["worker": worker]
        ).set(longest.fractionalSeconds)
    }

    /// Partitions that others have now.
    private mutating func hide(_ gone: Set<Int32>) {
        for number in gone {
            for input in definition.inputs { lagRecords(number, input.topic).set(0) }
            lagSeconds(number).set(0)
        }
        shown.subtract(gone)
    }

    private func lagRecords(_ number: Int32, _ topic: String) -> Gauge {
        metrics.gauge(
            "perennial_lag_records", help: "Committed records of an input that are not dealt with yet.",
            labels: ["worker": worker, "topic": topic, "partition": "\(number)"])
    }

    private func lagSeconds(_ number: Int32) -> Gauge {
        metrics.gauge(
            "perennial_lag_seconds", help: "Age of the last record that was dealt with; 0 at the end.",
            labels: ["worker": worker, "partition": "\(number)"])
    }
}
