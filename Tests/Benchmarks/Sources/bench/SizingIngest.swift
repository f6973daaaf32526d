// Processor time and memory of ingest, what a disk takes, and what refund requests and questions cost.

import Contract
import Glibc
import IngestTestKit
import KafkaTestKit
import Log
import Platform
import Runtime
import Sizing

private let rates = [10.0, 200]
private let seconds = 20.0
private let restSeconds = 25
private let connections = 32
/// Ingest collects records for 20 ms.
private let batchesASecond = 50.0

// MARK: Ingest

/// Cores of ingest and of the broker.
private struct IngestPace {
    let ingest: Double
    let broker: Double
    let records: Double

    var batches: Double { min(records, batchesASecond) }
}

private struct MeasuredIngest {
    let slow: IngestPace
    let fast: IngestPace
    let rest: IngestPace
    let peakBytes: Double
}

func measureSizedIngest(_ stage: SizingStage, _ figures: inout SizingFigures, _ report: Report) async throws {
    // No body is posted twice: ingest would find its chain, and the broker its words, in no other order than Apple's.
    let fixture = try NotificationFixture(count: 6_500)
    var measured: [MeasuredIngest] = []
    for archives in [true, false] {
        measured.append(try await measure(stage, fixture, archives))
        printMessage("sizing: ingest \(archives ? "with" : "without") the archive")
    }
    let (with, without) = (measured[0], measured[1])
    func parts(_ one: MeasuredIngest) -> Parts {
        Parts(
            (one.slow.ingest - one.rest.ingest, one.slow.batches, one.slow.records),
            (one.fast.ingest - one.rest.ingest, one.fast.batches, one.fast.records))
    }
    let archiving = parts(with)
    figures[.ingestRest] = with.rest.ingest
    figures[.ingestPerBatch] = archiving.perCommit
    figures[.ingestPerArchivedNotification] = archiving.perRecord
    figures[.ingestPerNotification] =
        (without.fast.ingest - without.rest.ingest) / without.fast.records * 1e6
        - archiving.perCommit * without.fast.batches / without.fast.records
    figures[.brokerPerNotification] =
        (without.fast.broker - without.slow.broker) / (without.fast.records - without.slow.records) * 1e6
    figures[.brokerPerArchivedNotification] =
        ((with.fast.broker - with.rest.broker) - (without.fast.broker - without.rest.broker)) / with.fast.records * 1e6
    figures[.ingestMemory] = with.peakBytes
    let signed = try TopicOnDisk(stage.names("ingest-true").topic(.signed), in: stage.cluster.broker.dataDirectory)
    figures[.signedBytes] = signed.bytesPerRecord
    report.note(
        "ingest: bodies of \(fixture.averageBytes) bytes over \(connections) kept TLS connections; \(short(with.slow.records)) and "
            + "\(short(with.fast.records)) a second take \(short(with.slow.ingest)) and \(short(with.fast.ingest)) cores, without the "
            + "archive \(short(without.fast.ingest)), at rest \(short(with.rest.ingest))")
}

private func measure(_ stage: SizingStage, _ fixture: NotificationFixture, _ archives: Bool) async throws
    -> MeasuredIngest
{
    let names = stage.names("ingest-\(archives)")
    let ingest = try await IngestProcess.start(
        stage.program, bootstrap: stage.bootstrap, prefix: "\(names.prefix)", roots: fixture.rootPEM,
        apps: fixture.appsFile,
        settings: [
            "--archive.signed.payloads", "\(archives)", "--tick.interval.ms", "3600000", "--ingest.trusted.proxies",
            "127.0.0.1",
        ])
    let bodies = fixture.bodies
    let (process, broker) = (ingest.process.processID, stage.cluster.broker.current?.processID ?? 0)
    func pace(_ work: () async throws -> Double) async throws -> IngestPace {
        let (start, own, brokers) = (ContinuousClock.now, try threadSeconds(process), try threadSeconds(broker))
        let records = try await work()
        let length = start.duration(to: .now).fractionalSeconds
        return IngestPace(
            ingest: (try threadSeconds(process) - own) / length, broker: (try threadSeconds(broker) - brokers) / length,
            records: records / length)
    }
    var next = 0
    func post(_ rate: Double, _ seconds: Double) async throws -> Double {
        var load = Load(ingest.url, authorityFile: ingest.authorityFile, bodies: bodies, .seconds(seconds))
        (load.connectionCount, load.connectsFirst, load.rate, load.firstBody) = (connections, true, rate, next)
        let outcome = try await blocking { [load] in try load.run() }
        // A busy machine holds some posts back; the rate is that of the answers.
        let isAccepted = outcome.answered(200) == outcome.answered && outcome.broken + outcome.timedOut == 0
        guard isAccepted, outcome.answered(200) > 0 else {
            throw NotInTime("answers of 200", limit: .zero, detail: "\(outcome)")
        }
        next += outcome.answered(200)
        return Double(outcome.answered(200))
    }
    // Chains, memory, connections to the brokers.
    _ = try await post(rates[1], 10)
    let slow = try await pace { try await post(rates[0], seconds) }
    let fast = try await pace { try await post(rates[1], seconds) }
    try await Task.sleep(for: .seconds(5))
    let rest = try await pace {
        try await Task.sleep(for: .seconds(restSeconds))
        return 0
    }
    let peak = Double(try ingest.peakMemoryBytes())
    _ = try await ingest.process.terminate(within: .seconds(30))
    return MeasuredIngest(slow: slow, fast: fast, rest: rest, peakBytes: peak)
}

// MARK: Disk

private let storedSubscriptions = 200_000

/// What the state of so many subscriptions takes on the disk of a worker that has restored it and was stopped.
func measureDisk(_ figures: inout SizingFigures) async throws {
    let input = try await WorkerInput("size-disk")
    try await input.create(run: "disk")
    try await input.fillChangelog(run: "disk", subscriptions: storedSubscriptions)
    let scratch = try ScratchDirectory("bench-size-disk")
    defer { withExtendedLifetime(scratch) {} }
    let worker = try WorkerProcess(input, run: "disk", state: scratch.path)
    try await waitUntil("the partitions are restored", within: .seconds(120)) {
        !worker.events("resumed").isEmpty
    }
    let all = Set(0..<workerPartitions)
    _ = try await worker.moments("resumed", of: all)
    _ = try await worker.child.terminate(within: .seconds(60))
    let size = try await run("du", ["-s", "--block-size=1", scratch.path])
    guard let bytes = Double(size.standardOutput.prefix { $0.isNumber }) else {
        throw NotInTime("the size of \(scratch.path)", limit: .zero, detail: size.words)
    }
    guard let folder = try await SharedKafka.cluster()?.broker.dataDirectory else {
        throw NotInTime("a broker of this process: unset KAFKA_BOOTSTRAP_SERVERS", limit: .zero)
    }
    let changelog = try TopicOnDisk(input.processor("disk").definition.changelog, in: folder)
    let records = changelog.records.filter { $0.key != [0] }
    figures[.diskPerStateByte] = bytes / Double(records.reduce(0) { $0 + $1.bytes })
    try await input.delete(runs: ["disk"])
}

// MARK: Refund requests and questions

func measureRequestsAndQuestions(_ figures: inout SizingFigures) async throws {
    figures[.consumptionPerDecision] = try await measureDecisionTime()
    figures[.consumptionPerAnswer] = try await measureAnswerTime()
    figures[.apiPerQuestion] = try await measureQuestionTime()
}
