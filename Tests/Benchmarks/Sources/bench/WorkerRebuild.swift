// A worker whose disk is lost, rebuilt from Kafka.

import KafkaTestKit
import Platform
import Runtime

private let records = 1_000_000
private let valueBytes = Changelog(.entitlements).value.count
private let rounds = 5
/// Records per second.
private let floor = 100_000.0
/// Resident memory in bytes: the default cache, and what a process needs besides.
private let ceilingBytes = 373_293_056.0

func measureWorkerRebuild(_ report: inout Report) async throws {
    let input = try await WorkerInput("worker-rebuild")
    try await input.create(run: "lost")
    printMessage("filling the changelog with \(records) records of \(valueBytes) bytes")
    try await input.fillChangelog(run: "lost", subscriptions: records)
    let changelog = input.processor("lost").definition.changelog
    var (count, cpu, rates): ([Double], [Double], [Double]) = ([], [], [])
    var peak = 0.0
    for round in 0...rounds {
        let counted = try await measureLoop(["worker-count-c", input.bootstrap, changelog, "\(records)"])
        let figures = try await measureRun(["worker-restore", input.bootstrap, input.prefix, "lost"])
        if round > 0 {
            count.append(counted / Double(records))
            cpu.append(figures["cpu"] / Double(records))
            rates.append(Double(records) / figures["wall"] * 1e6)
            peak = max(peak, figures["peak"])
        }
        printMessage("worker-rebuild \(round)/\(rounds)")
    }
    try await input.delete(runs: ["lost"])
    report.note(
        "CPU microseconds per record (getrusage of the process), median [min-max] of \(rounds) alternating runs; "
            + "\(records) records of \(valueBytes) bytes, \(workerPartitions) partitions; resident at most \(mebibytes(peak))"
    )
    report.judge(
        "worker-rebuild",
        "counting in C \(figures(count)), worker \(figures(cpu)); \(figures(rates)) records/s by the clock, against \(decimals(floor))/s",
        ratio: median(rates) / floor, .atLeast(1))
    report.judge(
        "worker-rebuild-size", "resident at most \(mebibytes(peak)), of \(mebibytes(ceilingBytes))",
        ratio: peak / ceilingBytes, .atMost(1))
}
