import Follow
import KafkaTestKit
import Log
import MemoryLog
import Platform
import Synchronization
import Telemetry

var soon: Deadline { Deadline(after: patience) }

/// Moves only when the test says so.
final class TestTime: Sendable {
    private let state = Mutex<(wall: Int64, elapsed: Duration)>((1_772_323_200_000, .zero))

    var elapsed: Duration { state.withLock { $0.elapsed } }
    func advance(by duration: Duration) {
        state.withLock { state in
            state.wall += duration.wholeMilliseconds
            state.elapsed += duration
        }
    }

    var asItIs: FollowTime {
        FollowTime(wall: { self.state.withLock { $0.wall } }, elapsed: { self.elapsed })
    }
}

/// The storage of all sinks. Only the lasting part survives the death of the process.
final class Disk {
    struct Copy: Equatable {
        /// The values by topic, in the order of arrival.
        var values: [[String]]
        var places: [KeptPlace]
    }

    private(set) var copies: [Int32: Copy] = [:]
    /// The part that survives the process.
    private var lasting: [Int32: Copy] = [:]
    /// The errors of the next calls.
    var writeFault: SinkFault?
    var openFault: SinkFault?
    var beginFault: SinkFault?
    /// A fault that was found in a copy; it lasts until the copy is opened again.
    var readFault: SinkFault?

    func write(_ copy: Copy?, _ partition: Int32, isLasting: Bool = true) {
        copies[partition] = copy
        if isLasting { lasting[partition] = copy }
    }
    func crash() { copies = lasting }
    func values(_ partition: Int32, topic: Int = 0) -> [String] { copies[partition]?.values[topic] ?? [] }
    func next(_ partition: Int32, topic: Int = 0) -> Int64? { copies[partition]?.places[topic].next?.value }
}

/// Keeps values in order, so that a missing value and a duplicate both show.
final class KeptSink: PartitionSink {
    static let recordBytes = 100

    private let disk: Disk
    private let partition: Int32
    private let topics: Int
    /// The greatest schema version that it reads.
    private let version: Int
    private var taken: [[String]]
    private(set) var calls: [String] = []
    private(set) var places: [KeptPlace] = []

    init(_ disk: Disk, _ partition: Int32, topics: Int, version: Int) {
        self.disk = disk
        self.partition = partition
        self.topics = topics
        self.version = version
        taken = Array(repeating: [], count: topics)
    }

    private func throwOnce(_ path: ReferenceWritableKeyPath<Disk, SinkFault?>) throws(SinkFault) {
        guard let fault = disk[keyPath: path].take() else { return }
        throw fault
    }
    private func forget() { taken = Array(repeating: [], count: topics) }

    func open() throws(SinkFault) -> SinkContents {
        calls.append("open")
        try throwOnce(\.openFault)
        disk.readFault = nil
        return disk.copies[partition].map { .places($0.places) } ?? .nothing
    }
    func begin() throws(SinkFault) {
        calls.append("begin")
        try throwOnce(\.beginFault)
    }
    func take(_ record: borrowing RecordView) -> String? {
        switch RecordKind("row", version: version).meaning(of: record, upgrade: "this test") {
        case .newer(let words): return words
        default: break
        }
        taken[record.topic].append(record.copyOfValue().map { String(decoding: $0, as: UTF8.self) } ?? "<null>")
        return nil
    }
    var heldBytes: Int { taken.reduce(0) { $0 + $1.count } * Self.recordBytes }
    func write(_ places: [KeptPlace], isLasting: Bool) throws(SinkFault) {
        calls.append("write")
        try throwOnce(\.writeFault)
        var copy = disk.copies[partition] ?? Disk.Copy(values: Array(repeating: [], count: topics), places: [])
        for topic in taken.indices { copy.values[topic] += taken[topic] }
        copy.places = places
        disk.write(copy, partition, isLasting: isLasting)
        forget()
    }
    func move(to places: [KeptPlace]) { self.places = places }
    func confirm() { calls.append("confirm") }
    var fault: SinkFault? { disk.readFault }
    func close() throws(SinkFault) {
        calls.append("close")
        forget()
    }
    func wipe() throws(SinkFault) {
        try close()
        calls.append("wipe")
        disk.write(nil, partition)
    }
}

/// Topics and a follower that the test's own thread moves: nothing happens by itself.
final class Rig {
    static let group = "followers"

    let memory: MemoryLog
    let topics: [FollowOptions.Topic]
    let disk: Disk
    let time: TestTime
    let metrics = Metrics()
    let readiness = Readiness(silenceLimit: .seconds(60))
    let follower: TopicFollower<KeptSink>
    private let lines = Lines()
    private(set) var sinksMade: [Int32] = []

    /// - Parameter follows: nil: every partition is followed.
    init(
        _ topics: [FollowOptions.Topic] = [.init("rows", isCompacted: false)],
        memory: MemoryLog = MemoryLog(clock: .manual()), log: (any RecordLog)? = nil, disk: Disk = Disk(),
        time: TestTime = TestTime(), partitions: Int32 = 1, version: Int = 1, makesTopics: Bool = true,
        follows: Set<Int32>? = nil
    ) throws {
        self.memory = memory
        self.topics = topics
        self.disk = disk
        self.time = time
        if makesTopics {
            try memory.create(
                topics.map { NewTopic($0.name, partitions: partitions, isCompacted: $0.isCompacted) }, by: soon)
        }
        let counts = FollowCounts(
            remaining: metrics.gauge("perennial_test_remaining", help: "Read."),
            paused: metrics.gauge("perennial_test_paused", help: "Waiting."),
            wipes: metrics.counter("perennial_test_wipes_total", help: "Wiped."))
        var made: (Int32) -> Void = { _ in }
        let lines = lines
        follower = TopicFollower(
            FollowOptions(name: "test", group: Self.group, topics: topics, partitions: partitions), log: log ?? memory,
            time: time.asItIs, readiness: readiness, counts: counts, logger: Logger { lines.append($0) }
        ) { partition in
            made(partition)
            return KeptSink(disk, partition, topics: topics.count, version: version)
        }
        made = { [unowned self] in sinksMade.append($0) }
        follower.follow(partitions: follows ?? Set(0..<partitions))
    }

    private final class Lines: Sendable {
        private let text = Mutex("")
        var all: String { text.withLock { $0 } }
        func append(_ line: [UInt8]) { text.withLock { $0 += String(decoding: line, as: UTF8.self) } }
    }
    var logged: String { lines.all }
    var trouble: String? { readiness.trouble(at: time.elapsed) }

    /// A second passes in each step.
    func settle(steps: Int = 10) {
        for _ in 0..<steps {
            _ = follower.step()
            time.advance(by: .seconds(1))
        }
    }

    func metric(_ name: String) -> Double? {
        String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n")
            .first { $0.hasPrefix("perennial_test_\(name) ") }.flatMap { Double($0.split(separator: " ").last ?? "") }
    }

    /// Every record has a key of its own, so a compacted topic loses nothing.
    func write(
        _ values: [String], topic: Int = 0, partition: Int32 = 0, timestamp: Int64 = 1000, schema: String = "row/1"
    ) throws {
        let batch = OutputBatch()
        for value in values {
            batch.append(
                topic: topic, partition: partition, timestamp: timestamp, key: Array(value.utf8),
                value: Array(value.utf8), headers: [RecordHeader("schema", schema)])
        }
        let writer = try memory.openWriter(WriterOptions(name: "test", topics: topics.map(\.name)))
        _ = try writer.append(batch, by: soon)
    }
}

func numbers(_ range: Range<Int>) -> [String] { range.map { "\($0)" } }
