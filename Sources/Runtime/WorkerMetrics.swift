// What a worker tells the outside about itself.

internal import Platform
import Synchronization
public import Telemetry

/// The instruments of one worker; all of its threads add to them.
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

    /// Why a cycle was taken back.
    enum AbortCause: String, CaseIterable { case generation, delivery, fenced, silence, lost, other }

    /// Times that partitions came or went.
    enum Rebalance: String, CaseIterable { case assigned, revoked, lost }

    public convenience init(_ metrics: Metrics, _ definition: WorkerDefinition) {
        self.init(
            metrics, worker: definition.name, reasons: definition.failureReasons,
            hasTables: !definition.tables.isEmpty)
    }

    /// Every counter is there from the start: of one that is born with its first count nobody sees it rise.
    ///
    /// - Parameter reasons: for which the worker's processor gives up records.
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
        records = counter("records_consumed", "Records that were dealt with, those of cycles taken back included.")
        produced = counter("records_produced", "Records handed to the log, changelog and cycles taken back included.")
        ticks = counter("ticks_consumed", "Ticks among the records.")
        unknown = counter("records_skipped", "Records of a type that this build does not know.")
        rerouted = counter(
            "records_rerouted",
            "Rows of a table that stood in the wrong partition and were sent on; a replay leaves that to the live worker."
        )
        timersFired = counter("timers_fired", "Timers whose time came.")
        timerLateness = seconds(
            "timer_lateness", "From the due time of a timer to the timestamp of the record that made it fire.")
        commits = counter("commits", "Cycles that were committed.")
        commitSeconds = seconds("commit", "From the end of a cycle's work to its commit.")
        cycleRecords = metrics.histogram(
            "perennial_cycle_records", help: "Records of a committed cycle.",
            bounds: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000], labels: ["worker": worker])
        fenced = counter("fenced", "Sessions that ended because a younger one had the same identity.")
        revokeSeconds = seconds(
            "revoke", "From the news that partitions go to others to the moment they were given back.")
        restoredRecords = counter("restore_records", "Records read from the changelog into a local store.")
        restoreSeconds = seconds("restore", "From the assignment of a partition to its first record.")
        restoreRemaining = gauge(
            "restore_records_remaining", "Of the changelog, before all partitions can be worked on.")
        gaps = counter(
            "input_gaps",
            "Partitions that were paused because records of an input were deleted before they were read.")
        wipes = counter(
            "store_wipes", "Local stores that were of no use and removed; they are restored from the changelog.")
        replacedWriters = counter(
            "producers_replaced", "Transactional producers replaced because a request may have been sent twice.")
        pollGap = seconds("poll_gap", "Between two looks for records.")
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
            "perennial_aborts_total", help: "Cycles that were taken back, and read again.",
            labels: ["worker": worker, "cause": cause.rawValue])
    }

    private func letters(_ reason: String, isTable: Bool) -> Counter {
        metrics.counter(
            "perennial_dead_letters_total", help: "Records that could not be processed and went to the dead letters.",
            labels: ["worker": worker, "code": reason, "input": isTable ? "table" : "events"])
    }

    private func rebalances(_ kind: Rebalance) -> Counter {
        metrics.counter(
            "perennial_rebalances_total", help: "Times that partitions came or went.",
            labels: ["worker": worker, "kind": kind.rawValue])
    }

    /// Seldom enough to look at every store.
    func sizes(_ thread: Int, stores: Int, unstored: Int, cached: Int) {
        func set(_ name: String, _ help: String, _ bytes: Int) {
            metrics.gauge("perennial_\(name)", help: help, labels: ["worker": worker, "thread": "\(thread)"])
                .set(Double(bytes))
        }
        set("store_bytes", "Local stores on disk, about.", stores)
        set("overlay_bytes", "Changed state in memory that the local store does not have yet.", unstored)
        set("state_cache_bytes", "Entries of the state in memory.", cached)
    }

    func leftAlone(_ thread: Int, _ count: Int) {
        metrics.gauge(
            "perennial_partitions_left_alone",
            help:
                "Partitions of topics that have grown beyond the setting, and partitions whose inputs have different owners.",
            labels: ["worker": worker, "thread": "\(thread)"]
        ).set(Double(count))
    }

    func partitions(_ thread: Int, in stage: TaskStage, _ count: Int) {
        metrics.gauge(
            "perennial_task_state", help: "Partitions by what the worker does with them.",
            labels: ["worker": worker, "thread": "\(thread)", "state": "\(stage)"]
        ).set(Double(count))
    }
}

/// What one thread counts between two commits; added to the metrics once a cycle.
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
        // In floating point: a timer that was set before the first event may lie as far back as the numbers go.
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
