// What a worker asks of Kafka, done by a C loop that computes nothing: as many records, of as many bytes.

import CLoops
import Glibc
import KafkaTestKit
import Runtime

/// - Parameter settledPerTransaction: number of records that the worker writes once per transaction, as counted in its run.
func runInC(
    _ worker: MeasuredWorker, _ bootstrap: String, _ prefix: String, run: String, records: Int,
    recordsPerTransaction: Int, settledPerTransaction: Int
) throws -> RunFigures {
    let definition = Rerun(worker, prefix: prefix, run: run).definition
    var transactions: Int64 = 0
    var work = bench_worker_work()
    try setSizes(&work, of: worker, definition)
    work.bootstrap = cString(bootstrap)
    work.group = cString(definition.group)
    work.input = cString(definition.events.topic)
    work.changelog = cString(definition.changelog)
    work.rules = cString(definition.rules ?? "")
    work.partitions = workerPartitions
    work.records = Int64(records)
    work.records_per_transaction = Int64(recordsPerTransaction)
    work.settled_per_transaction = Int64(settledPerTransaction)
    // The fixed part of a note, and one topic with its offset.
    work.note = Int64(36 + 10 + definition.events.topic.utf8.count)
    let spent = bench_worker(&work, &transactions)
    guard spent > 0 else { throw NotInTime("every record in the loop in C", limit: .seconds(300)) }
    var figures = RunFigures(Spending(cpuMicroseconds: Double(spent)))
    figures["commits"] = Double(transactions)
    return figures
}

/// Lives until the process ends.
private func cString(_ text: String) -> UnsafePointer<CChar> { UnsafePointer(strdup(text)) }

/// What a changelog record has besides a key and a value without timers: the key's space, the format, and the timers.
private let entryKeyBytes = 1
private func entryValueBytes(timers: Int) -> Int { 2 + 9 * timers }

/// As many bytes as the worker writes for a renewal.
private func setSizes(
    _ work: inout bench_worker_work, of worker: MeasuredWorker, _ definition: WorkerDefinition
) throws {
    func output(_ index: Int, key: Int, value: Int, isElsewhere: Bool = false) -> bench_worker_output {
        bench_worker_output(
            topic: cString(definition.outputs[index].topic), schema: cString(definition.outputs[index].schema),
            key: Int64(key), value: Int64(value), is_elsewhere: isElsewhere ? 1 : 0)
    }
    func entry(key: Int, value: Int, timers: Int) -> bench_worker_bytes {
        bench_worker_bytes(
            key: Int64(entryKeyBytes + key), value: Int64(entryValueBytes(timers: timers) + value))
    }
    let key = Notifications.key.count
    switch worker {
    case .entitlements:
        var domain = DomainWork()
        let made = try domain.renewal()
        work.output_count = 3
        work.outputs.0 = output(0, key: key, value: made.entitlement)
        work.outputs.1 = output(1, key: key, value: made.event)
        // Records of accounts go to the partition of their token.
        work.outputs.2 = output(
            2, key: Notifications.token.utf8.count + 1 + key, value: made.account, isElsewhere: true)
        work.state = entry(key: key, value: made.state, timers: 1)
    case .churn:
        var domain = ChurnWork()
        let made = try domain.renewal()
        work.output_count = 1
        work.outputs.0 = output(1, key: key, value: made.event)
        work.settled = output(0, key: made.cellKey, value: try domain.cellRecord())
        // The domain's own byte, which separates cells from subscriptions, is part of their keys.
        work.settled_state = entry(key: 1 + made.cellKey, value: made.cellState, timers: 0)
        work.overview = entry(key: 1, value: made.overview, timers: 1)
        work.state = entry(key: key, value: made.state, timers: 1)
    }
}
