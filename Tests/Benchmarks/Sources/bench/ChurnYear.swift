// A year of renewals, from the first purchase on: how many cells it makes, how much CPU time it takes, and how much memory is
// resident.

import KafkaTestKit
import Log
import Platform
import Runtime

/// With `PERENNIAL_BENCH_FULL=1` the promised number; otherwise a twentieth of it.
private var subscriptions: Int { isFull ? 1_000_000 : 50_000 }
/// Resident memory in bytes, with the default cache.
private let ceilingBytes = 1_073_741_824.0
private let limit: Duration = .seconds(7200)

func measureChurnYear(_ report: inout Report) async throws {
    let records = Double(subscriptions * Notifications.periods)
    let churn = try await measureRun(["worker-year", "churn", "\(subscriptions)"], within: limit)
    let entitlements = try await measureRun(["worker-year", "entitlements", "\(subscriptions)"], within: limit)
    report.note(
        "\(subscriptions) subscriptions, each bought and renewed eleven times, in one partition; RocksDB with a cache of 256 MiB; "
            + "CPU microseconds per record: \(decimals(churn["cpu"] / records)), \(decimals(records / churn["cpu"] * 1e6)) records/s a core; "
            + "entitlements \(decimals(entitlements["cpu"] / records)), ratio \(decimals(entitlements["cpu"] / churn["cpu"]))"
    )
    report.note("\(Int(churn["events"])) events, \(Int(churn["cells"])) cells at the end")
    report.judge(
        "churn-year", "resident at most \(mebibytes(churn["peak"])), of \(mebibytes(ceilingBytes))",
        ratio: churn["peak"] / ceilingBytes, .atMost(1))
}

func runYear(_ measured: MeasuredWorker, subscriptions: Int) throws -> RunFigures {
    let scratch = try ScratchDirectory("bench-worker")
    defer { withExtendedLifetime(scratch) {} }
    let meter = Meter()
    let told = OutputCount(keyedTopic: measured == .churn ? 0 : nil)
    let worker = try RunningWorker(
        measured, prefix: "bench", run: "year",
        MadeLog(changelog: nil, subscriptions: 0, input: .year(subscriptions)), try openStores(scratch.path),
        told.hooks(meter.hooks(records: subscriptions * Notifications.periods)))
    let spending = try requireSpending(meter, within: limit)
    try worker.stop()
    var figures = RunFigures(spending)
    figures["cells"] = Double(told.keys)
    figures["events"] = Double(told.count(of: 1))
    return figures
}
