// The worker on a real Kafka, exactly once, compared with C loops over librdkafka.

import CLoops
import Glibc
import Kafka
import KafkaTestKit
import Log
import Platform
import Runtime

private let records = 150_000
/// Alternating runs of each side; the median counts.
private let rounds = 5
/// The C loop's CPU time divided by the worker's, for the same bytes in the same transactions.
private let reach = 0.6
private let churnReach = 0.5
/// The worker's CPU time divided by that of a consumer that only counts.
private let multiple = 10.0
/// Records per second of one core.
private let replayFloor = 60_000.0

/// An input on the broker of this run, and its names and dates.
struct WorkerInput: Sendable {
    let worker: MeasuredWorker
    let bootstrap: String
    let prefix: String
    /// When the twelfth periods end: so recent that nothing expires while a row is measured.
    let end = WallClock.milliseconds()

    init(_ name: String, of worker: MeasuredWorker = .entitlements) async throws {
        self.worker = worker
        bootstrap = try await requireKafka()
        prefix = "bench-\(name)-\(getpid())"
    }

    func processor(_ run: String) -> Rerun { Rerun(worker, prefix: prefix, run: run) }

    /// The topics of one run; the first run also makes those that all runs share.
    func create(run: String) async throws {
        let wanted = processor(run).topics
        try await administrate { admin in
            let topics = wanted.map { topic in
                Admin.NewTopic(
                    name: topic.name, partitions: topic.shape.partitions, replicationFactor: 1,
                    settings: topic.shape.isCompacted
                        ? [("cleanup.policy", "compact")]
                        // The records' timestamps are in the past: without this the broker would delete them at once.
                        : [("retention.ms", "-1")])
            }
            for fault in try admin.create(topics, by: Deadline(after: .seconds(20))).values {
                if let fault, fault.code != .topicAlreadyExists { throw fault }
            }
            // The broker answers before every partition has a leader.
            let deadline = Deadline(after: .seconds(20))
            while !deadline.hasPassed {
                let known = try admin.cluster(by: deadline).topics
                let isReady = wanted.allSatisfy { topic in
                    known.contains { $0.name == topic.name && $0.partitions.allSatisfy { $0.leader != nil } }
                }
                if isReady { return }
                pause(for: .milliseconds(20))
            }
        }
    }

    func delete(runs: [String]) async throws {
        let names = Set(runs.flatMap { processor($0).topics.map(\.name) })
        try await administrate { admin in
            _ = try admin.delete(topics: names.sorted(), by: Deadline(after: .seconds(20)))
        }
    }

    private func administrate(_ body: @escaping @Sendable (Admin) throws -> Void) async throws {
        let bootstrap = bootstrap
        try await onThread {
            let admin = try Admin(clientID: "bench", properties: ClientProperties(bootstrapServers: bootstrap))
            defer { admin.close(by: Deadline(after: .seconds(5))) }
            try body(admin)
        }
    }

    /// Appends records that `make` adds, a thousand at a time.
    func fill(_ topic: String, count: Int, _ make: @escaping @Sendable () -> (Int, OutputBatch) -> Void) async throws {
        let log = KafkaLog(ClientProperties(bootstrapServers: bootstrap))
        try await onThread {
            let writer = try log.openWriter(WriterOptions(name: "bench", topics: [topic]))
            defer { writer.close(by: Deadline(after: .seconds(5))) }
            let outputs = OutputBatch()
            let add = make()
            for n in 0..<count {
                add(n, outputs)
                if outputs.count == 10_000 || n == count - 1 {
                    _ = try writer.append(outputs, by: Deadline(after: .seconds(60)))
                    outputs.removeAll()
                }
            }
        }
    }

    /// - Parameter subscriptions: number of subscriptions; consecutive records are about distant ones.
    func fillWithNotifications(_ count: Int, about subscriptions: Int) async throws {
        let end = end
        try await fill(processor("").definition.events.topic, count: count) {
            var notifications = Notifications(end: end)
            return { n, outputs in
                notifications.make(n, of: scattered(n, of: subscriptions))
                outputs.begin(
                    topic: 0, partition: notifications.partition(of: workerPartitions),
                    timestamp: notifications.timestamp)
                outputs.headers(Notifications.headers)
                outputs.end(key: notifications.key.span, value: notifications.value.span)
            }
        }
    }

    /// Writes the changelog of a worker that knows this many subscriptions.
    func fillChangelog(run: String, subscriptions: Int) async throws {
        let (worker, end) = (worker, end)
        try await fill(processor(run).definition.changelog, count: subscriptions) {
            var changelog = Changelog(worker, end: end)
            return { n, outputs in
                changelog.make(n)
                outputs.begin(
                    topic: 0, partition: changelog.partition(of: workerPartitions), timestamp: WallClock.milliseconds())
                outputs.end(key: changelog.key.span, value: changelog.value.span)
            }
        }
    }
}

/// Average contents of a worker's transaction.
private struct Cycles {
    let records: Double
    /// Records of its first output.
    let told: Double

    init(_ figures: RunFigures, records: Int) {
        self.records = Double(records) / figures["commits"]
        told = figures["told"] / figures["commits"]
    }
}

/// CPU microseconds per record of runs on one input.
private struct Costs {
    var worker: [Double] = []
    var other: [Double] = []
    var recordsPerCommit: [Double] = []
    var settledPerCommit: [Double] = []
    var peak = 0.0
    var workerWall: [Double] = []
}

private func measureOnKafka(
    _ name: String, of worker: MeasuredWorker = .entitlements, isReplay: Bool = false,
    beside other: (WorkerInput, _ round: Int, Cycles) async throws -> Double
) async throws -> Costs {
    let input = try await WorkerInput(name, of: worker)
    try await input.create(run: "fill")
    printMessage("filling the input with \(records) notifications")
    try await input.fillWithNotifications(records, about: records)
    var costs = Costs()
    var runs = ["fill"]
    // The first round warms the broker's caches.
    for round in 0...rounds {
        runs += ["w\(round)", "c\(round)"]
        try await input.create(run: "w\(round)")
        try await input.fillChangelog(run: "w\(round)", subscriptions: records)
        let figures = try await measureRun(
            ["worker-on-kafka", worker.rawValue, input.bootstrap, input.prefix, "w\(round)", "\(records)"]
                + (isReplay ? ["replay"] : []))
        let cycles = Cycles(figures, records: records)
        // A C loop writes one output of each kind.
        guard figures["events"] == Double(records) else { throw NotInTime("an event for each record", limit: .zero) }
        let besides = try await other(input, round, cycles)
        if round > 0 {
            costs.worker.append(figures["cpu"] / Double(records))
            costs.workerWall.append(Double(records) / figures["wall"] * 1e6)
            costs.recordsPerCommit.append(cycles.records)
            costs.settledPerCommit.append(cycles.told)
            costs.peak = max(costs.peak, figures["peak"])
            costs.other.append(besides)
        }
        printMessage("\(name) \(round)/\(rounds)")
    }
    try await input.delete(runs: runs)
    return costs
}

private func countInC(_ input: WorkerInput) async throws -> Double {
    try await measureLoop(
        ["worker-count-c", input.bootstrap, input.processor("").definition.events.topic, "\(records)"])
        / Double(records)
}

private func conditions(_ costs: Costs) -> String {
    "CPU microseconds per record (getrusage of the process), median [min-max] of \(rounds) alternating runs; "
        + "renewals of 2.2 KB about subscriptions of 12 periods, \(Int(median(costs.recordsPerCommit))) a transaction, state on disk; "
        + "resident at most \(mebibytes(costs.peak))"
}

/// The same bytes in transactions of as many records, with as many cells if the worker writes cells.
private func writeInC(_ input: WorkerInput, _ round: Int, _ cycles: Cycles) async throws -> Double {
    try await input.create(run: "c\(round)")
    let settled = input.worker == .churn ? cycles.told : 0
    return try await measureRun(
        [
            "worker-in-c", input.worker.rawValue, input.bootstrap, input.prefix, "c\(round)", "\(records)",
            "\(Int(cycles.records.rounded()))", "\(Int(settled.rounded()))",
        ])["cpu"] / Double(records)
}

func measureChurnOnKafka(_ report: inout Report) async throws {
    let costs = try await measureOnKafka("churn-kafka", of: .churn, beside: writeInC)
    report.note(conditions(costs))
    report.note(
        "\(Int(median(costs.settledPerCommit))) cells written per transaction; C writes as many, and an event per record, "
            + "of the sizes that the domain makes of one of these renewals")
    try await noteLimit(&report, of: .churn, costs)
    report.judge(
        "churn-kafka", "C \(figures(costs.other)), worker \(figures(costs.worker))",
        ratio: median(costs.other) / median(costs.worker), .atLeast(churnReach))
}

/// How near to the C loop a worker on disk can come that has neither an engine nor a domain.
private func noteLimit(_ report: inout Report, of worker: MeasuredWorker, _ costs: Costs) async throws {
    var limit: [Double] = []
    for _ in 1...rounds {
        limit.append(try await measureRun(["worker-limit", worker.rawValue, "\(records)"])["cpu"] / Double(records))
    }
    let both = median(costs.other) + median(limit)
    report.note(
        "to read the notifications, and their states from RocksDB and back, takes a loop of its own \(figures(limit)); "
            + "what does that and what C does, and nothing else, is at \(decimals(median(costs.other) / both)) of C")
}

func measureWorkerOnKafka(_ report: inout Report) async throws {
    let costs = try await measureOnKafka("worker-kafka", beside: writeInC)
    report.note(conditions(costs))
    try await noteLimit(&report, of: .entitlements, costs)
    report.judge(
        "worker-kafka", "C \(figures(costs.other)), worker \(figures(costs.worker))",
        ratio: median(costs.other) / median(costs.worker), .atLeast(reach))
}

func measureWorkerCount(_ report: inout Report) async throws {
    let costs = try await measureOnKafka("worker-count") { input, _, _ in try await countInC(input) }
    report.note(conditions(costs))
    report.judge(
        "worker-count", "C \(figures(costs.other)), worker \(figures(costs.worker))",
        ratio: median(costs.worker) / median(costs.other), .atMost(multiple))
}

/// Transactions of a second, and queues that do not run empty.
func measureWorkerReplay(_ report: inout Report) async throws {
    let costs = try await measureOnKafka("worker-replay", isReplay: true) { input, _, _ in try await countInC(input) }
    report.note(conditions(costs))
    report.judge(
        "worker-replay",
        "counting in C \(figures(costs.other)), worker \(figures(costs.worker)), "
            + "\(decimals(1e6 / median(costs.worker))) records/s a core (\(decimals(median(costs.workerWall)))/s by the clock); "
            + "against \(decimals(replayFloor))/s",
        ratio: 1e6 / median(costs.worker) / replayFloor, .atLeast(1))
}
