import Log
import Store
import Telemetry

@testable import Runtime

/// A partition's task on the bench: a test passes records to it, and sees what a commit would make visible.
final class TaskBench {
    struct Sent: Equatable {
        var topic: Int
        var partition: Int32
        var timestamp: Int64
        var key: String?
        var value: String?
        var headers: [RecordHeader]

        func header(_ name: String) -> String? {
            headers.last { $0.name == name }?.value.map { String(decoding: $0, as: UTF8.self) }
        }
    }

    let processor: Script
    let disk = MemoryDisk()
    let metrics = Metrics()
    let crashes: CrashPlan?
    private(set) var store: any PartitionStore
    private(set) var task: PartitionTask
    /// In the order of commits.
    private(set) var committed: [Sent] = []
    private(set) var commits = 0
    /// If false, a test writes the store when it wants to.
    var writesStoreAtCommit = true
    let outputs = OutputBatch()
    private let batch = RecordBatch()
    private let records = HeldRecords()
    private let counts: WorkerCounts
    private var offsets: [Int64] = [0, 0]
    private var changelogEnd: Int64 = 0

    init(_ processor: Script = Script(), crashes: CrashPlan? = nil) throws {
        self.processor = processor
        self.crashes = crashes
        counts = WorkerCounts(WorkerMetrics(metrics, worker: "script"))
        store = try MemoryStores(disk: disk).open(0)
        task = Self.makeTask(processor, store, outputs, counts, crashes)
    }

    private static func makeTask(
        _ processor: Script, _ store: any PartitionStore, _ outputs: OutputBatch, _ counts: WorkerCounts,
        _ crashes: CrashPlan?
    ) -> PartitionTask {
        let note = (try? store.note()).flatMap { $0 }.flatMap { Note(decoding: $0) } ?? Note(format: 1)
        let next = processor.definition.inputs.map { note.positions[$0.topic] ?? NextOffset(0) }
        return PartitionTask(
            processor, partition: 0, store: store, note: note, next: next, outputs: outputs,
            inner: InnerOutputs(
                changelog: Script.changelog, deadLetters: Script.deadLetters, tables: [-1, Script.rows]),
            changes: StoreChanges(), cacheBytes: 1000, counts: counts, crashes: crashes, newLife: { 7 })
    }

    // MARK: Records

    /// The next record of the events, or of the rows.
    func handle(
        _ value: String?, topic: Int = 0, key: String? = "k", at timestamp: Int64,
        headers: [RecordHeader]? = nil
    ) throws -> PartitionTask.Outcome {
        offsets[topic] += 1
        return try handle(
            HeldRecords.Record(
                topic: topic, offset: offsets[topic] - 1, timestamp: timestamp, key: key.map { Array($0.utf8) },
                value: value.map { Array($0.utf8) },
                headers: headers ?? (topic == 0 ? [RecordHeader("type", "word")] : [])))
    }

    func handle(_ record: HeldRecords.Record) throws -> PartitionTask.Outcome {
        records.lend(record, into: batch)
        return try again()
    }

    /// The same record again.
    func again() throws -> PartitionTask.Outcome {
        let (task, batch) = (task, batch)
        return try task.handle(batch[0])
    }

    /// Processes the record, with commits wherever the task wants one; then commits.
    func run(_ value: String?, topic: Int = 0, key: String? = "k", at timestamp: Int64) throws {
        var outcome = try handle(value, topic: topic, key: key, at: timestamp)
        while outcome == .commitFirst {
            try commit()
            outcome = try again()
        }
        try commit()
    }

    // MARK: Cycles

    func commit() throws {
        let sent = try settled()
        changelogEnd += Int64(sent.count { $0.topic == Script.changelog }) + 1
        committed += sent
        outputs.removeAll()
        task.committed(changelogEnd: NextOffset(changelogEnd), at: 0, elapsed: .zero)
        if writesStoreAtCommit { try task.writeStore() }
        counts.publish()
        commits += 1
    }

    /// What a commit would make visible. A commit or a roll-back must follow.
    func settled() throws -> [Sent] {
        try task.addChangelog(timestamp: 0)
        return pending
    }

    /// Appended but not committed.
    var pending: [Sent] {
        outputs.records.indices.map { index in
            let record = outputs.records[index]
            let (key, value) = outputs.withRecord(index) { key, value in
                (
                    key.baseAddress.map { _ in String(decoding: key, as: UTF8.self) },
                    value.baseAddress.map { _ in String(decoding: value, as: UTF8.self) }
                )
            }
            var headers: [RecordHeader] = []
            outputs.forEachHeader(index) { name, value in
                headers.append(
                    RecordHeader(
                        String(decoding: name, as: UTF8.self), value.baseAddress == nil ? nil : [UInt8](value)))
            }
            return Sent(
                topic: Int(record.topic), partition: record.partition, timestamp: record.timestamp, key: key,
                value: value, headers: headers)
        }
    }

    func rollBack() {
        outputs.removeAll()
        task.rollBack()
    }

    /// The process ends, and another continues with the store: what was written to it had been flushed.
    func restart() throws {
        outputs.removeAll()
        disk.crash { $0 }
        store = try MemoryStores(disk: disk).open(0)
        task = Self.makeTask(processor, store, outputs, counts, crashes)
        offsets = task.next.map(\.value)
    }

    // MARK: State of the bench

    var told: [String] { committed.filter { $0.topic == Script.told }.compactMap(\.value) }
    var ids: [String] { committed.filter { $0.topic == Script.told }.compactMap { $0.header("id") } }
    /// Key and value of each settled output.
    var cells: [String] {
        committed.filter { $0.topic == Script.cells }.map { "\($0.key ?? "")\($0.value.map { " \($0)" } ?? "")" }
    }
    var letters: [Sent] { committed.filter { $0.topic == Script.deadLetters } }

    func value(_ key: String) throws -> String? {
        let key = Array(key.utf8)
        return try task.turn.cache.entry(key.span).value.map { String(decoding: $0, as: UTF8.self) }
    }

    func timer(_ key: String, _ kind: UInt8 = 1) throws -> Int64? {
        let key = Array(key.utf8)
        return try task.turn.cache.entry(key.span).timer(kind)?.due
    }

    func storedTimers() throws -> [TimerEntry] { try store.timers(after: nil, dueBy: .max, limit: .max) }

    func metric(_ line: String) -> String? { reading(line, of: metrics) }
}

/// The value of the series whose name and labels these are.
func reading(_ series: String, of metrics: Metrics) -> String? {
    let lines = String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n")
    return lines.first { $0.hasPrefix(series + " ") }.map { String($0.dropFirst(series.count + 1)) }
}

/// Crash notes whose content a test sets.
final class CrashPlan: CrashNoting {
    /// The number of traps, and where they happened: at the record that was worked on when `traps` was set.
    var traps = 0
    private(set) var place: (topic: Int, offset: Int64)?
    private(set) var isIdle = true
    var poison: (topic: Int, offset: Int64)?

    func working(topic: Int, offset: Int64) {
        place = (topic, offset)
        isIdle = false
    }
    func idle() { isIdle = true }
    func isPoison(topic: Int, offset: Int64, limit: Int) -> Bool {
        guard let poison else { return false }
        return poison == (topic, offset) && traps >= limit
    }
}
