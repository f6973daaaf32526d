// The workers on a real Kafka, exactly once and warm, against a C loop that does what no worker can avoid.

import Kafka
import KafkaTestKit
import Log
import Platform

/// Each has ten notifications.
private let subscriptions = 100_000
/// By then a process has touched the memory of its caches and buffers, and Java has compiled what the broker does often.
private let warmUp = 300_000
/// Alternating runs of each side; the median counts.
private var rounds: Int { chosenRounds ?? 3 }

private struct Promise {
    let must: Double
    let goal: Double

    var words: String { "against \(decimals(must)), goal \(decimals(goal))" }
}

/// What docs/operate/run-workers.md gives a worker of one thread with the default of `state.cache.bytes`: 576 MiB.
private let ceilingBytes = 603_979_776.0
/// The worker's CPU time divided by that of the C loop.
private let entitlementsReach = Promise(must: 1.6, goal: 1.25)
private let churnReach = Promise(must: 2.0, goal: 1.5)
/// Microseconds a notification of the worker `entitlements`. Before 2.4 librdkafka waits for the next timer by looking at the clock
/// again and again, which costs some milliseconds for each transaction.
private var mostCPU: Promise {
    let numbers = Librdkafka.version.split(separator: ".").compactMap { Int($0) }
    let isOld = numbers.lexicographicallyPrecedes([2, 4])
    return isOld ? Promise(must: 32, goal: 27) : Promise(must: 25, goal: 20)
}
/// Microseconds for a notification that is known already: nothing is told.
private let mostForRepetition = Promise(must: 8, goal: 5)
/// Microseconds of the broker a notification.
private let mostOfBroker = Promise(must: 15, goal: 10)

/// Figures of alternating runs, each for a notification.
private struct Costs {
    var worker: [Double] = []
    var workerBroker: [Double] = []
    var workerRate: [Double] = []
    var c: [Double] = []
    var cBroker: [Double] = []
    var recordsPerCommit: [Double] = []
    var settledPerCommit: [Double] = []
    var peak = 0.0
}

func measureWorkerOnKafka(_ report: inout Report) async throws {
    let costs = try await measure("worker-kafka", of: .entitlements, report)
    judge("worker-kafka", costs, entitlementsReach, &report)
    let cpu = mostCPU
    report.judge(
        "worker-kafka-cpu",
        "\(figures(costs.worker)) us a notification with librdkafka \(Librdkafka.version), \(cpu.words)",
        ratio: median(costs.worker) / cpu.must, .atMost(1))
}

func measureChurnOnKafka(_ report: inout Report) async throws {
    let costs = try await measure("churn-kafka", of: .churn, report)
    report.note("\(Int(median(costs.settledPerCommit))) cells in a transaction; C writes as many")
    judge("churn-kafka", costs, churnReach, &report)
}

private func judge(_ name: String, _ costs: Costs, _ reach: Promise, _ report: inout Report) {
    report.judge(
        name,
        "C \(figures(costs.c)) us a notification, worker \(figures(costs.worker)) us, \(figures(costs.workerRate)) a second by the clock; "
            + "goal \(decimals(reach.goal))", ratio: median(costs.worker) / median(costs.c), .atMost(reach.must))
    report.judge(
        "\(name)-size", "resident at most \(mebibytes(costs.peak)), of \(mebibytes(ceilingBytes))",
        ratio: costs.peak / ceilingBytes, .atMost(1))
    guard !costs.workerBroker.isEmpty else {
        return report.note("the CPU time of the broker is not known: it is not a process of this run (set KAFKA_HOME)")
    }
    report.judge(
        "\(name)-broker",
        "\(figures(costs.workerBroker)) us of the broker's CPU time a notification, with C \(figures(costs.cBroker)); "
            + mostOfBroker.words, ratio: median(costs.workerBroker) / mostOfBroker.must, .atMost(1))
}

/// Repetitions alone: the worker reads them, and finds that it knows them.
func measureWorkerRepeated(_ report: inout Report) async throws {
    let stage = try await Stage.make("worker-repeated", of: .entitlements, .repeated)
    var (cpu, perCommit): ([Double], [Double]) = ([], [])
    for round in 1...rounds {
        let run = try await stage.runWorker("worker-\(round)")
        cpu.append(run.figures["cpu"] / run.figures["records"])
        perCommit.append(run.figures["records"] / run.figures["commits"])
        printMessage("worker-repeated \(round)/\(rounds)")
    }
    await stage.close()
    report.note(
        "CPU microseconds per notification (getrusage of the process), median [min-max] of \(rounds) runs; \(stage.lives.count) "
            + "notifications that are known, \(Int(median(perCommit))) a transaction; measured from the \(warmUp)th on")
    report.judge(
        "worker-repeated", "\(figures(cpu)) us, \(mostForRepetition.words)",
        ratio: median(cpu) / mostForRepetition.must, .atMost(1))
}

private func measure(_ name: String, of worker: MeasuredWorker, _ report: Report) async throws -> Costs {
    let stage = try await Stage.make(name, of: worker, .mix)
    var costs = Costs()
    for round in 1...rounds {
        try await stage.measure("\(round)", &costs)
        printMessage("\(name) \(round)/\(rounds)")
    }
    await stage.close()
    report.note(
        "CPU microseconds per notification (getrusage of the process), median [min-max] of \(rounds) alternating runs; "
            + "\(stage.lives.count) notifications of \(subscriptions) subscriptions of 12 periods and more, in the mix: "
            + "\(MixKind.words); measured from the \(warmUp)th on")
    report.note(
        "\(Int(median(costs.recordsPerCommit))) notifications a transaction, resident at most \(mebibytes(costs.peak)); "
            + "every output of every run was read again, and is what the domain alone makes of the notifications")
    return costs
}

/// A broker with the notifications of some lives.
private struct Stage {
    let broker: MeasuredBroker
    let input: WorkerInput
    let lives: Lives
    /// What the worker must write.
    let truth: OutputSums

    static func make(_ name: String, of worker: MeasuredWorker, _ choice: Lives.Choice) async throws -> Stage {
        let broker = try await MeasuredBroker.start()
        // Kafka refuses records of the future, and the lives take half a year.
        let end = WallClock.milliseconds() - 7 * period
        let input = WorkerInput(name, of: worker, on: broker.bootstrap, end: end)
        let lives = Lives(choice, of: subscriptions, end: end)
        try await input.createShared()
        printMessage("filling the input with \(lives.count) notifications")
        return Stage(broker: broker, input: input, lives: lives, truth: try await input.fill(with: lives))
    }

    func close() async {
        // The row has its figures by now. On a broker of somebody else the topics would stay, so he is told.
        do { try await input.deleteShared() } catch { printMessage("bench: topics are not deleted: \(error)") }
        await broker.close()
    }

    /// One run of the worker, then one of the C loop with transactions of as many notifications.
    func measure(_ round: String, _ costs: inout Costs) async throws {
        let (figures, settled) = try await runWorker("worker-\(round)")
        let perCommit = figures["records"] / figures["commits"]
        let settledPerCommit = Double(settled) / figures["all-commits"]
        let c = try await runC("c-\(round)", perCommit: perCommit, settledPerCommit: settledPerCommit)
        costs.worker.append(figures["cpu"] / figures["records"])
        costs.workerRate.append(figures["records"] / figures["wall"] * 1e6)
        costs.c.append(c["cpu"] / c["records"])
        if broker.processID != nil {
            costs.workerBroker.append(figures["broker"] / figures["records"])
            costs.cBroker.append(c["broker"] / c["records"])
        }
        costs.recordsPerCommit.append(perCommit)
        costs.settledPerCommit.append(settledPerCommit)
        costs.peak = max(costs.peak, figures["peak"])
    }

    /// - Returns: also the number of records that were written once per commit.
    func runWorker(_ run: String) async throws -> (figures: RunFigures, settled: Int) {
        try await input.create(run: run)
        try await input.fillChangelog(run: run, subscriptions: lives.subscriptions)
        let figures = try await measureRun(["worker-on-kafka"] + arguments(run))
        let settled = try await check(run)
        try await input.delete(run: run)
        return (figures, settled)
    }

    private func runC(_ run: String, perCommit: Double, settledPerCommit: Double) async throws -> RunFigures {
        try await input.create(run: run)
        let figures = try await measureRun(
            ["worker-in-c"] + arguments(run) + [
                "\(lives.subscriptions)", "\(lives.end)", "\(Int(perCommit.rounded()))",
                "\(Int(settledPerCommit.rounded()))",
            ])
        let wanted = truth.indices.filter { $0 != input.worker.settledOutput }.reduce(0) { $0 + truth[$1].records }
        guard figures["written"] == Double(wanted) else {
            throw NotInTime("as many outputs in C", limit: .zero, detail: "\(figures["written"]) of \(wanted)")
        }
        try await input.delete(run: run)
        return figures
    }

    private func arguments(_ run: String) -> [String] {
        [
            input.worker.rawValue, input.bootstrap, input.prefix, run, "\(warmUp)", "\(lives.count)",
            "\(broker.processID ?? 0)",
        ]
    }

    /// Everything that the run has committed is what the domain makes of the notifications, once.
    private func check(_ run: String) async throws -> Int {
        let (worker, bootstrap, definition) = (input.worker, input.bootstrap, input.processor(run).definition)
        let (sums, settled) = try await blocking {
            try readOutputs(worker, definition, KafkaLog(ClientProperties(bootstrapServers: bootstrap)))
        }
        guard sums == truth else {
            throw NotInTime("the outputs that the domain makes", limit: .zero, detail: "\(truth)\nbut \(sums)")
        }
        return settled
    }
}
