// Processor time of workers, the read API and the broker, at two rates and at rest.

import Contract
import Glibc
import IngestTestKit
import Kafka
import KafkaTestKit
import Log
import Platform
import Sizing
import Synchronization

/// Records a second. At the first nearly every record has a commit of its own; at the second they share commits.
private let rates = [10, 300]
private let seconds = 20
/// Longer, because there is less to count.
private let restSeconds = 30
/// Until Java has compiled what the broker does often.
private let warmUp = 6000
private let subscriptions = 100_000

/// What all processes have spent, and done, up to a moment.
private struct Moment {
    let at: ContinuousClock.Instant
    let cpu: [String: Double]
    let commits: [WorkerName: Double]
    let records: Double
}

/// What happens in a second, between two moments.
private struct Pace {
    let cpu: [String: Double]
    let commits: [WorkerName: Double]
    let records: Double

    init(_ start: Moment, _ end: Moment) {
        let seconds = start.at.duration(to: end.at).fractionalSeconds
        cpu = end.cpu.merging(start.cpu) { ($0 - $1) / seconds }
        commits = end.commits.merging(start.commits) { ($0 - $1) / seconds }
        records = (end.records - start.records) / seconds
    }

    var allCommits: Double { commits.values.reduce(0, +) }
}

/// A part of the time for each commit, and a part for each record: the solution of two equations, one for each rate. In
/// microseconds.
struct Parts {
    let perCommit: Double
    let perRecord: Double

    /// - Parameter cpu: in cores, without the rest.
    init(
        _ slow: (cpu: Double, commits: Double, records: Double), _ fast: (cpu: Double, commits: Double, records: Double)
    ) {
        let determinant = slow.commits * fast.records - fast.commits * slow.records
        perCommit = (slow.cpu * fast.records - fast.cpu * slow.records) / determinant * 1e6
        perRecord = (slow.commits * fast.cpu - fast.commits * slow.cpu) / determinant * 1e6
    }
}

private final class SizedProcesses: Sendable {
    let workers: [WorkerName: (process: ChildProcess, admin: AdminReading)]
    let api: ChildProcess
    let broker: Int32
    private let sent = Atomic(0)

    init(_ stage: SizingStage, _ names: Names, _ scratch: ScratchDirectory) async throws {
        let apps = try scratch.write(
            #"[{"bundleId":"com.example.subscriptions","appAppleId":1234567890,"#
                + #""entitlements":{"premium":["pro.monthly.one","pro.monthly.two"]}}]"#, to: "apps.json")
        let common = ["--apps", apps, "--state.directory", scratch.path]
        var workers: [WorkerName: (process: ChildProcess, admin: AdminReading)] = [:]
        for worker in WorkerName.allCases {
            let process = try stage.start(
                worker.rawValue, names,
                common + ["--worker.slot", "0"] + (worker == .consumption ? ["--consumption.send", "false"] : []))
            workers[worker] = (process, try await AdminReading(process))
        }
        self.workers = workers
        api = try stage.start("api", names, common + ["--api.listen", "127.0.0.1:0", "--environment", "production"])
        guard let broker = stage.cluster.broker.current?.processID else { throw NotInTime("a broker", limit: .zero) }
        self.broker = broker
        let admins = workers.values.map(\.admin) + [try await AdminReading(api)]
        for admin in admins {
            try await waitUntil("all processes are ready", within: .seconds(120)) { try await admin.isReady() }
        }
    }

    func add(_ records: Int) { sent.wrappingAdd(records, ordering: .relaxed) }

    func now() async throws -> Moment {
        var commits: [WorkerName: Double] = [:]
        for (worker, one) in workers { commits[worker] = try await one.admin.sum("perennial_commits_total") }
        var cpu = ["api": try threadSeconds(api.processID), "broker": try threadSeconds(broker)]
        for (worker, one) in workers { cpu[worker.rawValue] = try threadSeconds(one.process.processID) }
        return Moment(at: .now, cpu: cpu, commits: commits, records: Double(sent.load(ordering: .relaxed)))
    }

    func stop() async throws {
        for process in workers.values.map(\.process) + [api] { _ = try await process.terminate(within: .seconds(60)) }
    }
}

/// Sends renewals one by one, as ingest does, and counts them.
private func send(_ count: Int, from first: Int, perSecond: Int, _ stage: SizingStage, _ names: Names) async throws {
    let bootstrap = stage.bootstrap
    try await onThread {
        var options = Producer.Configuration(
            clientID: "bench", properties: ClientProperties(bootstrapServers: bootstrap))
        options.lingerMilliseconds = 20
        let producer = try Producer(options) { _ in }
        defer { producer.close(by: Deadline(after: .seconds(10))) }
        let topic = try producer.topic(names.topic(.notifications))
        _ = try producer.partitionCounts(by: Deadline(after: .seconds(10)))
        var notifications = Notifications(end: WallClock.milliseconds())
        let headers = [
            RecordHeader("id", "6a1d2a57-5c64-4b1f-9c1c-0e4a3b8d7f21"),
            RecordHeader("schema", "notification/1"), RecordHeader("app", "perennial/0.2.0"),
        ]
        let start = ContinuousClock.now
        for n in 0..<count {
            notifications.make(first + n, of: scattered(first + n, of: subscriptions))
            try producer.send(
                to: topic, partition: notifications.partition(of: workerPartitions), key: notifications.key.span,
                value: notifications.value.span, headers: headers, timestamp: WallClock.milliseconds())
            producer.poll()
            let due = start.advanced(by: .seconds(1) * (n + 1) / perSecond)
            let left = ContinuousClock.now.duration(to: due)
            if left > .zero { usleep(UInt32(left.fractionalSeconds * 1e6)) }
        }
        try producer.flush(by: Deadline(after: .seconds(10)))
    }
}

func measureSizedWorkers(_ stage: SizingStage, _ figures: inout SizingFigures, _ report: Report) async throws {
    let names = stage.names("work")
    try await stage.createTopics(names)
    let scratch = try ScratchDirectory("bench-size-work")
    defer { withExtendedLifetime(scratch) {} }
    let processes = try await SizedProcesses(stage, names, scratch)
    try await send(warmUp, from: 0, perSecond: rates[1], stage, names)
    var sent = warmUp
    var paces: [Pace] = []
    // The faster one comes first: what Java has still to compile then weighs less.
    for rate in rates.reversed() {
        // What waits from before is done by then.
        try await Task.sleep(for: .seconds(3))
        let start = try await processes.now()
        try await send(rate * seconds, from: sent, perSecond: rate, stage, names)
        sent += rate * seconds
        processes.add(rate * seconds)
        paces.append(Pace(start, try await processes.now()))
        printMessage("sizing: \(rate) a second")
    }
    // The rest of processes that have worked: one that was just started still warms up.
    try await Task.sleep(for: .seconds(5))
    let start = try await processes.now()
    try await Task.sleep(for: .seconds(restSeconds))
    let rest = Pace(start, try await processes.now())
    try await processes.stop()
    read(paces[1], paces[0], rest, &figures, report)
}

private func read(_ slow: Pace, _ fast: Pace, _ rest: Pace, _ figures: inout SizingFigures, _ report: Report) {
    for worker in WorkerName.allCases {
        let (name, atRest) = (worker.rawValue, rest.cpu[worker.rawValue] ?? .nan)
        func side(_ pace: Pace) -> (cpu: Double, commits: Double, records: Double) {
            ((pace.cpu[name] ?? .nan) - atRest, pace.commits[worker] ?? .nan, pace.records)
        }
        let (low, high) = (side(slow), side(fast))
        let parts = Parts(low, high)
        report.note(
            "\(name): \(short(low.records)) a second in \(short(low.commits)) commits \(short(low.cpu)) cores, "
                + "\(short(high.records)) in \(short(high.commits)) \(short(high.cpu)) cores, at rest \(short(atRest)): "
                + "\(short(parts.perCommit)) us a commit, \(short(parts.perRecord)) us a record")
        switch worker {
        case .entitlements:
            (figures[.entitlementsRest], figures[.entitlementsPerCommit], figures[.entitlementsPerRecord]) = (
                atRest, parts.perCommit, parts.perRecord
            )
        case .churn:
            (figures[.churnRest], figures[.churnPerCommit], figures[.churnPerRecord]) = (
                atRest, parts.perCommit, parts.perRecord
            )
        case .consumption:
            (figures[.consumptionRest], figures[.consumptionPerCommit], figures[.consumptionPerRecord]) = (
                atRest, parts.perCommit, parts.perRecord
            )
        }
    }
    figures[.commitsASecond] = max(fast.commits.values.max() ?? .nan, slow.commits.values.max() ?? .nan)
    func work(_ pace: Pace, _ name: String) -> Double { (pace.cpu[name] ?? .nan) - (rest.cpu[name] ?? .nan) }
    // The read API sees records when they are committed: it has something to do with each commit.
    let api = Parts(
        (work(slow, "api"), slow.allCommits, slow.records), (work(fast, "api"), fast.allCommits, fast.records))
    figures[.apiRest] = rest.cpu["api"] ?? .nan
    figures[.apiPerCommit] = api.perCommit
    figures[.apiPerNotification] = api.perRecord
    figures[.brokerRest] = rest.cpu["broker"] ?? .nan
    // Commits are nearly all of its work. What a notification alone costs shows where nothing is committed: see `measureSizedIngest`.
    figures[.brokerPerCommit] = [slow, fast].reduce(0) { sum, pace in
        let records = pace.records * figures[.brokerPerNotification] / 1e6
        return sum + (work(pace, "broker") - records) / pace.allCommits * 1e6 / 2
    }
    report.note(
        "broker: \(short(work(slow, "broker"))) and \(short(work(fast, "broker"))) cores, \(short(slow.allCommits)) and "
            + "\(short(fast.allCommits)) commits; api: \(short(work(slow, "api"))) and \(short(work(fast, "api"))) cores"
    )
}
