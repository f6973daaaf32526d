// A worker with many subscriptions on disk: how much memory is resident, and how fast it is with frequent and with rare keys.

import KafkaTestKit
import Log
import Platform
import RocksStore
import Runtime
import Store

/// With `PERENNIAL_BENCH_FULL=1` the promised number; otherwise a tenth, which takes two minutes less.
private var subscriptions: Int { isFull ? 5_000_000 : 500_000 }
private let records = 300_000
/// Resident memory in bytes: the default cache, and what a process needs besides.
private let ceilingBytes = 373_293_056.0
/// This few keys fit into the cache, and each comes a dozen times.
private let hotKeys = 50_000
/// Records per second of one core.
private let hotFloor = 60_000.0
private let coldFloor = 30_000.0

/// Whether everything has its promised size.
var isFull: Bool { environmentVariables().contains { $0.name == "PERENNIAL_BENCH_FULL" && $0.value == "1" } }

func measureWorkerSize(_ report: inout Report) async throws {
    let figures = try await measureRun(["worker-size", "\(subscriptions)"])
    report.note(
        "\(subscriptions) subscriptions in RocksDB, filled from the changelog at \(decimals(figures["restored"])) records/s; "
            + "cache of 256 MiB; CPU time of the process")
    let memory = defaultMemory(partitions: 1)
    report.note(
        "resident at the end \(mebibytes(figures["resident"])): \(mebibytes(figures["files"])) of files such as the program, "
            + "\(mebibytes(figures["blocks"])) of blocks, \(mebibytes(figures["buffers"])) of write buffers; planned: entries \(mebibytes(Double(memory.entryBytes))), blocks \(mebibytes(Double(memory.blockBytes))), "
            + "write buffers \(mebibytes(Double(memory.bufferBytes)))")
    report.judge(
        "worker-size", "resident at most \(mebibytes(figures["peak"])), of \(mebibytes(ceilingBytes))",
        ratio: figures["peak"] / ceilingBytes, .atMost(1))
    for (name, rate, floor, what) in [
        ("worker-hot", figures["hot"], hotFloor, "\(hotKeys) keys"),
        ("worker-cold", figures["cold"], coldFloor, "all keys alike"),
    ] {
        report.judge(
            name, "\(what): \(decimals(rate)) records/s a core, against \(decimals(floor))/s", ratio: rate / floor,
            .atLeast(1))
    }
}

/// Restores, then works on few keys, then on all keys.
func runSize(subscriptions: Int) throws -> RunFigures {
    let scratch = try ScratchDirectory("bench-worker")
    defer { withExtendedLifetime(scratch) {} }
    let choice = MadeLog.Choice(min(hotKeys, subscriptions))
    let log = MadeLog(
        changelog: Changelog(.entitlements, end: madeEnd), subscriptions: subscriptions, input: .changes(choice))
    // All of them are in one partition.
    let memory = defaultMemory(partitions: 1)
    let cache = makeCache(memory)
    let (restoring, hot, cold) = (Meter(), Meter(), Meter())
    let restore = restoring.hooks(restoring: 1)
    let hooks = SessionHooks(
        polled: restore.polled,
        resumed: restore.resumed,
        committed: { positions in
            let next = positions.values.first?.value ?? 0
            // Each stretch ends at a commit, where the next one begins; the first one only fills the caches.
            if next >= records { hot.start() }
            if next >= 2 * records {
                hot.stop()
                choice.value = subscriptions
                cold.start()
            }
            if next >= 3 * records { cold.stop() }
        })
    let worker = try RunningWorker(
        .entitlements, prefix: "bench", run: "size", log, try RocksStores(directory: scratch.path, cache: cache), hooks
    ) { $0.memory = memory }
    let last = try requireSpending(cold, within: .seconds(600))
    let restored = try requireSpending(restoring, within: .zero)
    var figures = RunFigures(last)
    figures["restored"] = Double(subscriptions) / restored.wallMicroseconds * 1e6
    // A stretch is slightly longer than stated: by at most one transaction of thirty.
    figures["hot"] = Double(records) / (try requireSpending(hot, within: .zero)).cpuMicroseconds * 1e6
    figures["cold"] = Double(records) / last.cpuMicroseconds * 1e6
    figures["resident"] = RunFigures.residentBytes
    figures["files"] = RunFigures.residentFileBytes
    figures["blocks"] = Double(cache.blockBytes)
    figures["buffers"] = Double(cache.bufferBytes)
    try worker.stop()
    return figures
}
