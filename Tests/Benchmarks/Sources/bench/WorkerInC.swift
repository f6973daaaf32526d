// What no worker can avoid that processes exactly once and keeps its states on disk, done by a C loop without rules and engine.

import CLoops
import Glibc
import KafkaTestKit
import Log
import Runtime

/// - Parameters:
///   - recordsPerTransaction: as many as the worker had.
///   - settledPerTransaction: number of records that the worker writes once per transaction.
func runInC(
    _ worker: MeasuredWorker, _ bootstrap: String, _ prefix: String, run: String, _ stretch: Stretch, _ lives: Lives,
    recordsPerTransaction: Int, settledPerTransaction: Int
) throws -> RunFigures {
    let scratch = try ScratchDirectory("bench-worker")
    defer { withExtendedLifetime(scratch) {} }
    let definition = Rerun(worker, prefix: prefix, run: run).definition
    let memory = defaultMemory()
    var work = bench_worker_work()
    work.bootstrap = cString(bootstrap)
    work.group = cString(definition.group)
    work.input = cString(definition.events.topic)
    work.changelog = cString(definition.changelog)
    work.rules = cString(definition.rules ?? "")
    work.partitions = workerPartitions
    work.records = Int64(stretch.to)
    work.records_per_transaction = Int64(recordsPerTransaction)
    work.settled_per_transaction = Int64(settledPerTransaction)
    // A note with one topic: see Note.swift.
    work.note = Int64(36 + 10 + definition.events.topic.utf8.count + 33)
    work.directory = cString(scratch.path)
    work.block_bytes = Int64(memory.blockBytes)
    // In fixed shares: each store may fill one buffer while another is written to a file. Together that is twice what the
    // worker has, because C has no cache of entries.
    work.write_buffer_bytes = Int64(memory.bufferBytes / memory.stores)
    // The same as in Consumer.Configuration.readAhead.
    work.queued_kilobytes = Int64(memory.readAheadBytes / 1024 * 2 / 3)
    work.queued_records = Int64(memory.readAheadBytes / 3 / 400)
    setOutputs(&work, of: worker, definition)
    try setSteps(&work, of: worker, lives)
    work.plan = plan(lives)

    let meter = Meter(broker: stretch.broker)
    // It stays where it is until the process ends.
    work.context = Unmanaged.passRetained(MeteredLoop(meter, stretch)).toOpaque()
    work.committed = { context, records in
        guard let context else { return }
        let loop = Unmanaged<MeteredLoop>.fromOpaque(context).takeUnretainedValue()
        loop.meter.hasCommitted(Int(records), from: loop.stretch.from, to: loop.stretch.to)
    }
    let written = bench_worker(&work)
    guard written > 0 else { throw NotInTime("every record in the loop in C", limit: .zero) }
    var figures = RunFigures(try requireSpending(meter, within: .zero))
    figures["written"] = Double(written)
    return figures
}

private final class MeteredLoop {
    let meter: Meter
    let stretch: Stretch

    init(_ meter: Meter, _ stretch: Stretch) {
        self.meter = meter
        self.stretch = stretch
    }
}

/// Lives until the process ends.
private func cString(_ text: String) -> UnsafePointer<CChar> { UnsafePointer(strdup(text)) }

/// What a changelog record has besides a key and a value without timers: the key's space, the format, and the timers.
private let entryKeyBytes = 1
private func entryValueBytes(timers: Int) -> Int { 2 + 9 * timers }

private func entry(key: Int, value: Int, timers: Int) -> bench_worker_bytes {
    bench_worker_bytes(key: Int64(entryKeyBytes + key), value: Int64(entryValueBytes(timers: timers) + value))
}

private func setOutputs(_ work: inout bench_worker_work, of worker: MeasuredWorker, _ definition: WorkerDefinition) {
    func output(_ index: Int, key: Int, isElsewhere: Bool = false) -> bench_worker_output {
        bench_worker_output(
            topic: cString(definition.outputs[index].topic), schema: cString(definition.outputs[index].schema),
            key: Int64(key), is_elsewhere: isElsewhere ? 1 : 0)
    }
    let key = Notifications.key.count
    work.output_count = Int32(definition.outputs.count)
    switch worker {
    case .entitlements:
        work.outputs.0 = output(0, key: key)
        work.outputs.1 = output(1, key: key)
        // Records of accounts go to the partition of their token.
        work.outputs.2 = output(2, key: Notifications.token.utf8.count + 1 + key, isElsewhere: true)
    case .churn:
        work.outputs.0 = output(0, key: key)
        work.outputs.1 = output(1, key: key)
    }
}

/// As many records of as many bytes as the domain writes.
private func setSteps(_ work: inout bench_worker_work, of worker: MeasuredWorker, _ lives: Lives) throws {
    let told = try toldBySteps(of: worker, end: lives.end)
    let steps = UnsafeMutableBufferPointer<bench_worker_step>.allocate(capacity: told.count)
    for (index, told) in told.enumerated() {
        var step = bench_worker_step()
        let limit = Int(BENCH_WORKER_RECORDS)
        precondition(told.outputs.count <= limit, "a step has room for its records")
        step.count = Int32(told.outputs.count)
        withUnsafeMutableBytes(of: &step.outputs) { bytes in
            let outputs = bytes.bindMemory(to: Int32.self)
            for (place, one) in told.outputs.enumerated() { outputs[place] = Int32(one.output) }
        }
        withUnsafeMutableBytes(of: &step.values) { bytes in
            let values = bytes.bindMemory(to: Int64.self)
            for (place, one) in told.outputs.enumerated() { values[place] = Int64(one.bytes) }
        }
        step.state = told.state == 0 ? 0 : Int64(entryValueBytes(timers: told.timers) + told.state)
        steps.initializeElement(at: index, to: step)
    }
    work.steps = UnsafePointer(steps.baseAddress)
    guard worker == .churn else { return }
    var domain = ChurnWork()
    let made = try domain.renewal()
    work.settled = work.outputs.0
    work.settled.key = Int64(made.cellKey)
    work.settled_value = Int64(try domain.cellRecord())
    // The domain's own byte, which separates cells from subscriptions, is part of their keys.
    work.settled_state = entry(key: 1 + made.cellKey, value: made.cellState, timers: 0)
    work.overview = entry(key: 1, value: made.overview, timers: 1)
}

/// What a few subscriptions cause, at offsets with as many digits as most offsets of a run.
private func toldBySteps(of worker: MeasuredWorker, end: Int64) throws -> [StepOutputs] {
    let lives = Lives(of: 2, end: end)
    let truth = worker.truth(of: lives)
    var records = LifeRecords(lives)
    for n in 0..<lives.count {
        records.make(n)
        try truth.hear(records, n, offset: Int64(50_000 + n))
    }
    return truth.told
}

/// The index of the step of each record, by partition and offset.
private func plan(_ lives: Lives) -> UnsafePointer<UnsafePointer<UInt8>?> {
    let partitions = (0..<lives.subscriptions).map {
        Int(Partitioner.partition(of: Notifications.key(of: $0).span, count: workerPartitions))
    }
    var steps = Array(repeating: [UInt8](), count: Int(workerPartitions))
    for n in 0..<lives.count { steps[partitions[lives.subscription(n)]].append(UInt8(lives.step(n))) }
    let plan = UnsafeMutablePointer<UnsafePointer<UInt8>?>.allocate(capacity: steps.count)
    for (partition, steps) in steps.enumerated() {
        let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: max(1, steps.count))
        _ = copy.initialize(from: steps)
        plan[partition] = UnsafePointer(copy.baseAddress)
    }
    return UnsafePointer(plan)
}
