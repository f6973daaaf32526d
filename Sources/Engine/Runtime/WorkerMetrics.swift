// The metrics of a worker.

internal import Platform
import Synchronization
public import Telemetry

/// The instruments of one worker, shared by all of its threads.
public final class WorkerMetrics: Sendable {
    let records: Counter
    let produced: Counter
    let ticks: Counter
    let unknown: Counter
    let rerouted: Counter
    let timersFired: Counter
    let timerLateness: Histogram
    let commits: Counter
    let commitSeconds: Histogram
    let cycleRecords: Histogram
    let fenced: Counter
    let revokeSeconds: Histogram
    let restoredRecords: Counter
    let restoreSeconds: Histogram
    let restoreRemaining: Gauge
    let wipes: Counter
    let gaps: Counter
    let replacedWriters: Counter
    let pollGap: Histogram
    private let metrics: Metrics
    private let worker: String

    /// Why a transaction was aborted.
    enum AbortCause: String, CaseIterable { case generation, delivery, fenced, silence, lost, other }

    /// Kinds of changes of the assignment.
    enum Rebalance: String, CaseIterable { case assigned, revoked, lost }

    public convenience init(_ metrics: Metrics, _ definition: WorkerDefinition) {
        self.init(
            metrics, worker: definition.name, reasons: definition.failureReasons,
            hasTables: !definition.tables.isEmpty)
    }

    /// Creates every counter at the start: if a counter appeared with its first count, nobody would see it rise.
    ///
    /// - Parameter reasons: the reasons for which the worker's processor rejects records.
    public init(_ metrics: Metrics, worker: String, reasons: [String] = [], hasTables: Bool = false) {
        self.metrics = metrics
        self.worker = worker
        func counter(_ name: String, _ help: String) -> Counter {
            metrics.counter("perennial_\(name)_total", help: help, labels: ["worker": worker])
        }
        func gauge(_ name: String, _ help: String) -> Gauge {
            metrics.gauge("perennial_\(name)", help: help, labels: ["worker": worker])
        }
        func seconds(_ name: String, _ help: String) -> Histogram {
            metrics.histogram(
                "perennial_\(name)_seconds", help: help, bounds: Histogram.latencySeconds, labels: ["worker": worker])
        }
        records = counter("records_consumed", "Records processed, including those of aborted transactions.")
        produced = counter("records_produced", "Records written, including the changelog and aborted transactions.")
        ticks = counter("ticks_consumed", "Ticks read.")
        unknown = counter("records_skipped", "Records skipped because this build does not know their type.")
        rerouted = counter(
            "records_rerouted",
            "Rows of a table found in the wrong partition and sent to the right one; a replay skips them."
        )
        timersFired = counter("timers_fired", "Timers that fired.")
        timerLateness = seconds(
            "timer_lateness", "Seconds from the due time of a timer to the timestamp of the record that made it fire.")
        commits = counter("commits", "Transactions committed.")
        commitSeconds = seconds("commit", "Seconds from the end of a cycle's processing to its commit.")
        cycleRecords = metrics.histogram(
            "perennial_cycle_records", help: "Records per committed transaction.",
            bounds: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000], labels: ["worker": worker])
        fenced = counter("fenced", "Sessions fenced by a newer one with the same identity.")
        revokeSeconds = seconds(
            "revoke", "Seconds from the notice of a revocation until the partitions were given up.")
        restoredRecords = counter("restore_records", "Records read from the changelog into a local store.")
        restoreSeconds = seconds("restore", "Seconds from the assignment of a partition until its records can be read.")
        restoreRemaining = gauge(
            "restore_records_remaining", "Changelog records still to be read before all partitions are restored.")
        gaps = counter(
            "input_gaps",
            "Partitions paused because records of an input were deleted before they were read.")
        wipes = counter(
            "store_wipes", "Unusable local stores that were deleted; they are restored from the changelog.")
        replacedWriters = counter(
            "producers_replaced", "Transactional producers replaced because a request may have been sent twice.")
        pollGap = seconds("poll_gap", "Seconds between two polls for records.")
        for cause in AbortCause.allCases { _ = aborts(cause) }
        for kind in Rebalance.allCases { _ = rebalances(kind) }
        for reason in ProcessFailure.reasonsOfEngine + reasons {
            for isTable in hasTables ? [false, true] : [false] { _ = letters(reason, isTable: isTable) }
        }
    }

    func abort(_ cause: AbortCause) { aborts(cause).add() }
    func letter(_ reason: String, isTable: Bool) { letters(reason, isTable: isTable).add() }
    func rebalance(_ kind: Rebalance) { rebalances(kind).add() }

    private func aborts(_ cause: AbortCause) -> Counter {
        metrics.counter(
            "perennial_aborts_total", help: "Transactions aborted; their records are read again.",
            labels: ["worker": worker, "cause": cause.rawValue])
    }

    private func letters(_ reason: String, isTable: Bool) -> Counter {
        metrics.counter(
            "perennial_dead_letters_total",
            help: "Records that could not be processed and were written to the dead letters.",
            labels: ["worker": worker, "code": reason, "input": isTable ? "table" : "events"])
    }

    private func rebalances(_ kind: Rebalance) -> Counter {
        metrics.counter(
            "perennial_rebalances_total", help: "Times that partitions were assigned, revoked or lost.",
            labels: ["worker": worker, "kind": kind.rawValue])
    }

    /// Called rarely, because it looks at every store.
    func sizes(_ thread: Int, stores: Int, unstored: Int, cached: Int) {
        func set(_ name: String, _ help: String, _ bytes: Int) {
            metrics.gauge("perennial_\(name)", help: help, labels: ["worker": worker, "thread": "\(thread)"])
                .set(Double(bytes))
        }
        set("store_bytes", "Approximate bytes of the local stores on disk.", stores)
        set("overlay_bytes", "Bytes of changed state in memory that the local store does not have yet.", unstored)
        set("state_cache_bytes", "Bytes of state entries in memory.", cached)
    }

    func leftAlone(_ thread: Int, _ count: Int) {
        metrics.gauge(
            "perennial_partitions_left_alone",
            help:
                "Partitions that are ignored because their topic has more partitions than the setting, or their inputs "
                + "have different owners.",
            labels: ["worker": worker, "thread": "\(thread)"]
        ).set(Double(count))
    }

    func partitions(_ thread: Int, in stage: TaskStage, _ count: Int) {
        metrics.gauge(
            "perennial_task_state", help: "Partitions by their stage in the worker.",
            labels: ["worker": worker, "thread": "\(thread)", "state": "\(stage)"]
        ).set(Double(count))
    }
}

/// Counts of one thread between two commits; added to the metrics once per cycle.
final class WorkerCounts {
    var records: UInt64 = 0
    var ticks: UInt64 = 0
    var unknown: UInt64 = 0
    var rerouted: UInt64 = 0
    var timersFired: UInt64 = 0
    private let metrics: WorkerMetrics

    init(_ metrics: WorkerMetrics) { self.metrics = metrics }

    func letter(_ reason: String, isTable: Bool) { metrics.letter(reason, isTable: isTable) }

    func fired(due: Int64, by moment: Int64) {
        timersFired += 1
        // In floating point: a timer that was set before the first event may be due as early as the integers allow.
        metrics.timerLateness.observe((Double(moment) - Double(due)) / 1000)
    }

    func publish() {
        metrics.records.add(records)
        metrics.ticks.add(ticks)
        metrics.unknown.add(unknown)
        metrics.rerouted.add(rerouted)
        metrics.timersFired.add(timersFired)
        (records, ticks, unknown, rerouted, timersFired) = (0, 0, 0, 0, 0)
    }
}
