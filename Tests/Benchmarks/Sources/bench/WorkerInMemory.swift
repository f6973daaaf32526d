// The worker on one core, its log and its state in memory, beside the example's own work in a bare loop.

import CLoops
import JSON
import KafkaTestKit
import Log
import MemoryLog
import Platform
import Runtime
import Store

private let subscriptions = 1_000_000
/// 2.2 KB each, in memory.
private let records = 400_000
private let rounds = 5
/// The bare loop divided by the worker. A hundred thousand records a second of one core are promised where a loop that does all
/// of the work without an engine reaches 285,000.
private let reach = 0.35

func measureWorkerInMemory(_ report: inout Report) async throws {
    var (bare, worker): ([Double], [Double]) = ([], [])
    var peak = 0.0
    for round in 1...rounds {
        bare.append(try await measureRun(["worker-bare", "\(records)"])["cpu"] / Double(records))
        let figures = try await measureRun(["worker-memory", "\(subscriptions)", "\(records)"])
        worker.append(figures["cpu"] / Double(records))
        peak = max(peak, figures["peak"])
        printMessage("worker-memory \(round)/\(rounds)")
    }
    report.note(
        "CPU microseconds per record (getrusage of the process), median [min-max] of \(rounds) alternating runs; "
            + "records of 2.2 KB about \(subscriptions) subscriptions; the log is in the same \(mebibytes(peak)) at most"
    )
    report.judge(
        "worker-memory",
        "bare loop \(figures(bare)), worker \(figures(worker)): \(decimals(1e6 / median(worker))) records/s a core",
        ratio: median(bare) / median(worker), .atLeast(reach))
}

func mebibytes(_ bytes: Double) -> String { "\(Int(bytes / 1_048_576)) MiB" }

/// Runs `bench run …` for its figures.
func measureRun(_ arguments: [String]) async throws -> RunFigures {
    let result = try await run(try productPath("bench"), ["run"] + arguments, timeout: .seconds(600))
    guard result.code == 0, let line = result.standardOutput.split(separator: "\n").last,
        let figures = RunFigures(line: line)
    else {
        printMessage("bench: a run of \(arguments[0]) failed: \(result.standardError)")
        exitProcess(3)
    }
    return figures
}

/// Fills a topic; keyed as everything is.
private func fill(
    _ log: MemoryLog, _ topic: String, count: Int, _ add: (_ n: Int, _ outputs: OutputBatch) -> Void
) throws {
    let writer = try log.openWriter(WriterOptions(name: "bench", topics: [topic]))
    let outputs = OutputBatch()
    for n in 0..<count {
        add(n, outputs)
        if outputs.count == 1000 || n == count - 1 {
            _ = try writer.append(outputs, by: Deadline(after: .seconds(10)))
            outputs.removeAll()
        }
    }
}

/// A worker that knows all subscriptions, and gets a renewal of every so many.
func runInMemory(subscriptions: Int, records: Int) throws -> RunFigures {
    let processor = Rerun(prefix: "bench", run: "memory")
    let log = MemoryLog()
    // Nothing is compacted: with Kafka that is the broker's work.
    try log.create(
        processor.topics.map { NewTopic($0.name, partitions: workerPartitions) }, by: Deadline(after: .seconds(1)))
    var changelog = Changelog()
    try fill(log, processor.definition.changelog, count: subscriptions) { n, outputs in
        changelog.make(n)
        outputs.begin(topic: 0, partition: changelog.partition(of: workerPartitions), timestamp: 0)
        outputs.end(key: changelog.key.span, value: changelog.value.span)
    }
    try fillWithNotifications(log, processor, records: records, subscriptions: subscriptions)
    let meter = Meter()
    let worker = try RunningWorker(prefix: "bench", run: "memory", log, MemoryStores(), meter.hooks(records: records))
    let spending = try requireSpending(meter, within: .seconds(300))
    try worker.stop()
    return RunFigures(spending)
}

private func fillWithNotifications(_ log: MemoryLog, _ processor: Rerun, records: Int, subscriptions: Int) throws {
    var notifications = Notifications()
    try fill(log, processor.definition.events.topic, count: records) { n, outputs in
        notifications.make(n, of: scattered(n, of: subscriptions))
        outputs.begin(
            topic: 0, partition: notifications.partition(of: workerPartitions), timestamp: notifications.timestamp)
        outputs.headers(Notifications.headers)
        outputs.end(key: notifications.key.span, value: notifications.value.span)
    }
}

/// Far from the one before; every one once before one comes again.
func scattered(_ n: Int, of count: Int) -> Int { n % count * 611_953 % count }

/// What the example does with a record, without an engine around it: reading, and writing what it tells.
func runBare(records: Int) throws -> RunFigures {
    let processor = Rerun(prefix: "bench", run: "bare")
    let log = MemoryLog()
    try log.create(
        [NewTopic(processor.definition.events.topic, partitions: workerPartitions)], by: Deadline(after: .seconds(1)))
    try fillWithNotifications(log, processor, records: records, subscriptions: records)
    let topic = processor.definition.events.topic
    let reader = try log.openReader(ReaderOptions(name: "bench", group: "bench", topics: [topic]))
    try reader.read(
        from: Dictionary(
            uniqueKeysWithValues: (0..<workerPartitions).map { (TopicPartition(topic, $0), NextOffset(0)) }))
    let batch = RecordBatch()
    var json = JSONDocument()
    var (seen, written) = (0, 0)
    let meter = Meter()
    meter.start()
    while seen < records {
        try reader.poll(into: batch, limit: 500, wait: .seconds(1))
        for index in 0..<batch.count {
            if let value = batch[index].value { written += try tell(value, &json) }
        }
        seen += batch.count
    }
    meter.stop()
    guard written > 0 else { throw NotInTime("a word about any record", limit: .zero) }
    return RunFigures(try requireSpending(meter, within: .zero))
}

/// The bytes of Renewals' output for a first renewal.
private func tell(_ value: Span<UInt8>, _ json: inout JSONDocument) throws -> Int {
    try json.read(value)
    guard let type = json.member("notificationType", of: json.root).flatMap({ json.text($0.value) }),
        type == "DID_RENEW", let transaction = json.member("transaction", of: json.root)?.value,
        let product = json.member("productId", of: transaction).flatMap({ json.text($0.value) }),
        let bought = json.member("purchaseDate", of: transaction).flatMap({ json.integer($0.value) })
    else { return 0 }
    var told = JSONWriter()
    told.object { told in
        told.member("v", 1)
        told.member("productId", product)
        told.member("day", bought / 86_400_000)
        told.member("renewals", 1)
    }
    return told.bytes.count
}
