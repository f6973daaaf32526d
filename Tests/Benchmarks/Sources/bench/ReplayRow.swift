// Replays that run beside a live worker, and the comparison of the two. These are whole processes of the product.

import Contract
import Glibc
import Kafka
import KafkaTestKit
import Log
import Platform
import Synchronization

/// An odd number, so that a subscription's second notification chooses another product than the first and is a change.
private var subscriptions: Int { isFull ? 1_000_001 : 200_001 }
/// Records that wait for a live worker at each measurement.
private let backlog = 100_000
private let rounds = 3
/// Records per second of the replay that runs beside it.
private let rate = 1_000
/// Records per second of one core.
private let replayFloor = 35_000.0
/// The live worker's time beside a replay, divided by its time alone.
private let slowdownCeiling = 1.1
private let diffCeilingBytes = 256.0 * 1024 * 1024

func measureReplay(_ report: inout Report) async throws {
    let stage = try await ReplayStage.make()
    printMessage("filling the input with \(subscriptions) notifications")
    try await stage.feed(subscriptions)
    let live = try stage.startLive()
    try await stage.waitUntilDealtWith(stage.group, live)
    _ = try await live.terminate(within: .seconds(60))
    printMessage("the live worker is at the end")
    try await measurePace(stage, &report)
    try await measureDiff(stage, &report)
    try await measureSlowdown(stage, &report)
    try await stage.remove()
}

private func measurePace(_ stage: ReplayStage, _ report: inout Report) async throws {
    let start = ContinuousClock.now
    let replay = try stage.startReplay("whole")
    let (ending, cpu, peak) = try await watch(replay)
    let seconds = start.duration(to: .now).fractionalSeconds
    guard ending == .exited(code: 0) else {
        throw NotInTime("a replay", limit: .zero, detail: "\(ending): \(replay.lastLines(10))")
    }
    report.note(
        "\(subscriptions) notifications of 2.2 KB, one of each subscription, in \(workerPartitions) partitions; from the start of "
            + "the process to its end: \(decimals(seconds)) s, resident at most \(mebibytes(Double(peak)))")
    let perSecond = Double(subscriptions) / cpu
    report.judge(
        "replay",
        "\(decimals(cpu * 1e6 / Double(subscriptions))) us a notification, \(decimals(perSecond))/s a core; against "
            + "\(decimals(replayFloor))/s", ratio: perSecond / replayFloor, .atLeast(1))
}

private func measureDiff(_ stage: ReplayStage, _ report: inout Report) async throws {
    let start = ContinuousClock.now
    let diff = try stage.startDiff("whole")
    let (ending, cpu, peak) = try await watch(diff)
    let seconds = start.duration(to: .now).fractionalSeconds
    // Exit code 0: no key differs, and this many were compared.
    guard ending == .exited(code: 0), diff.standardOutput.contains("\"same\":\(subscriptions)") else {
        throw NotInTime("a comparison", limit: .zero, detail: "\(ending): \(diff.lastLines(10))")
    }
    report.note(
        "diff of \(subscriptions) subscriptions and as many accounts: \(decimals(seconds)) s, \(decimals(cpu)) s of CPU time"
    )
    report.judge(
        "diff", "resident at most \(mebibytes(Double(peak))), of \(mebibytes(diffCeilingBytes))",
        ratio: Double(peak) / diffCeilingBytes, .atMost(1))
}

/// With and without a replay in turn; the first round warms up.
private func measureSlowdown(_ stage: ReplayStage, _ report: inout Report) async throws {
    var (alone, beside): ([Double], [Double]) = ([], [])
    for round in 0...rounds {
        try await stage.feed(backlog)
        let seconds = try await timeOfLive(stage)
        try await stage.feed(backlog)
        let both = try await timeBesideReplay(stage)
        if round > 0 {
            alone.append(seconds)
            beside.append(both)
        }
        printMessage("replay-beside \(round)/\(rounds)")
    }
    report.note(
        "a live worker of one thread deals with a backlog of \(backlog), beside a replay of \(rate) a second and alone, by the clock; "
            + "Kafka is on the same \(sysconf(Int32(_SC_NPROCESSORS_ONLN))) cores")
    report.judge(
        "replay-beside", "alone \(figures(alone)) s, beside \(figures(beside)) s",
        ratio: median(beside) / median(alone), .atMost(slowdownCeiling))
}

/// Each time the replay continues where it had stopped.
private func timeBesideReplay(_ stage: ReplayStage) async throws -> Double {
    let name = stage.shadow("slow")
    let start = try await stage.position(of: name)
    let replay = try stage.startReplay("slow", ["--rate", "\(rate)"])
    try await waitUntil("the replay works", within: .seconds(60)) { try await stage.position(of: name) > start }
    let before = try await stage.position(of: name)
    let seconds = try await timeOfLive(stage)
    let replayed = try await stage.position(of: name) - before
    // A replay that stands still, or has reached its end, would not slow the live worker.
    guard Double(replayed) > 0.7 * seconds * Double(rate) else {
        throw NotInTime("a replay at work", limit: .zero, detail: replay.lastLines(10))
    }
    _ = try await replay.terminate(within: .seconds(60))
    return seconds
}

/// Time from the first commit to the last.
private func timeOfLive(_ stage: ReplayStage) async throws -> Double {
    let before = try await stage.position(of: stage.group)
    let live = try stage.startLive()
    try await waitUntil("the live worker works", within: .seconds(60)) {
        try await stage.position(of: stage.group) > before
    }
    let (start, first) = (ContinuousClock.now, try await stage.position(of: stage.group))
    try await stage.waitUntilDealtWith(stage.group, live)
    let seconds = start.duration(to: .now).fractionalSeconds
    let done = try await stage.position(of: stage.group) - first
    _ = try await live.terminate(within: .seconds(60))
    return seconds * Double(backlog) / Double(done)
}

/// CPU time and memory of a process until it ended. /proc has nothing of a process that has ended, so the last sample is at most
/// 10 ms old.
private func watch(_ child: ChildProcess) async throws -> (ending: ProcessEnding, cpu: Double, peak: Int) {
    var (cpu, peak) = (0.0, 0)
    while child.isRunning {
        if let seconds = try? cpuSeconds(child.processID), let bytes = try? child.peakMemoryBytes() {
            (cpu, peak) = (seconds, bytes)
        }
        try await Task.sleep(for: .milliseconds(10))
    }
    return (try await child.wait(), cpu, peak)
}

/// A separate installation on the broker of the benchmarks.
private final class ReplayStage: Sendable {
    private let input: WorkerInput
    private let scratch: ScratchDirectory
    private let settings: [String]
    private let apps: String
    private let fed = Mutex(0)
    let group: String

    static func make() async throws -> ReplayStage {
        let stage = try ReplayStage(try await WorkerInput("replay"))
        let made = try await run(
            try productPath("perennial"),
            ["topics", "apply", "--topics.replication.factor", "1", "--topics.min.insync.replicas", "1"]
                + stage.settings,
            environment: .only([:]))
        guard made.code == 0 else { throw NotInTime("topics", limit: .zero, detail: made.words) }
        return stage
    }

    private init(_ input: WorkerInput) throws {
        self.input = input
        scratch = try ScratchDirectory("bench-replay")
        settings = [
            "--kafka.bootstrap.servers", input.bootstrap, "--topic.prefix", input.prefix, "--partitions",
            "\(workerPartitions)",
        ]
        group = "\(input.prefix).production.entitlements"
        let text =
            #"[{"bundleId":"com.example.subscriptions","appAppleId":1234567890,"#
            + #""entitlements":{"premium":["pro.monthly.one","pro.monthly.two"]}}]"#
        apps = try scratch.write(text, to: "apps.json")
    }

    func remove() async throws {
        let (bootstrap, prefix) = (input.bootstrap, input.prefix)
        try await blocking {
            let admin = try Admin(clientID: "bench", properties: ClientProperties(bootstrapServers: bootstrap))
            defer { admin.close(by: Deadline(after: .seconds(5))) }
            let deadline = Deadline(after: .seconds(20))
            let mine = try admin.cluster(by: deadline).topics.map(\.name).filter { $0.hasPrefix("\(prefix).") }
            _ = try admin.delete(topics: mine, by: deadline)
        }
    }

    func shadow(_ name: String) -> String { "\(group).replay-\(name)" }

    /// Changes of one subscription after the other.
    func feed(_ count: Int) async throws {
        let (first, end) = (fed.withLock { $0 }, input.end)
        fed.withLock { $0 += count }
        try await input.fill(partitions[0].topic, count: count) {
            var news = Notifications(.change, end: end)
            return { n, outputs in
                news.make(first + n, of: scattered(first + n, of: subscriptions))
                outputs.begin(
                    topic: 0, partition: news.partition(of: workerPartitions), timestamp: news.timestamp)
                outputs.headers(Notifications.headers)
                outputs.end(key: news.key.span, value: news.value.span)
            }
        }
    }

    private var common: [String] {
        settings + ["--apps", apps, "--state.directory", scratch.path, "--worker.slot", "0"]
    }

    func startLive() throws -> ChildProcess {
        try ChildProcess(
            try productPath("perennial"), ["entitlements", "--admin.listen", "127.0.0.1:0"] + common,
            environment: .only([:]))
    }

    func startReplay(_ name: String, _ options: [String] = []) throws -> ChildProcess {
        try ChildProcess(
            try productPath("perennial"), ["replay", "entitlements", "--name", name] + options + common,
            environment: .only([:]))
    }

    func startDiff(_ name: String) throws -> ChildProcess {
        try ChildProcess(
            try productPath("perennial"),
            ["diff", "entitlements", "--name", name, "--format", "json", "--scratch", scratch.path] + settings,
            environment: .only([:]))
    }

    private var partitions: [TopicPartition] {
        (0..<workerPartitions).map { TopicPartition("\(input.prefix).production.notifications", $0) }
    }

    /// How many offsets of the input a group has committed.
    func position(of group: String) async throws -> Int64 {
        try await positions(of: group).values.reduce(0) { $0 + $1.value }
    }

    private func positions(of group: String) async throws -> [TopicPartition: NextOffset] {
        let (bootstrap, partitions) = (input.bootstrap, partitions)
        return try await blocking {
            let admin = try Admin(clientID: "bench", properties: ClientProperties(bootstrapServers: bootstrap))
            defer { admin.close(by: Deadline(after: .seconds(5))) }
            let all = (try? admin.currentOffsets(ofGroup: group, by: Deadline(after: .seconds(10)))) ?? [:]
            return all.filter { partitions.contains($0.key) }
        }
    }

    func waitUntilDealtWith(_ group: String, _ worker: ChildProcess) async throws {
        let (bootstrap, partitions) = (input.bootstrap, partitions)
        let ends = try await blocking {
            let reader = try KafkaLog(ClientProperties(bootstrapServers: bootstrap)).openReader(
                ReaderOptions(name: "bench", group: "bench", topics: [partitions[0].topic]))
            defer { reader.close(by: Deadline(after: .seconds(5))) }
            return try reader.ends(.committed, of: partitions, by: Deadline(after: .seconds(10)))
        }
        try await waitUntil("\(group) is at the end", within: .seconds(600)) {
            guard worker.isRunning else {
                throw NotInTime("a worker that runs", limit: .zero, detail: worker.lastLines(10))
            }
            let positions = try await positions(of: group)
            return partitions.allSatisfy { positions[$0] == ends[$0] }
        }
    }
}
