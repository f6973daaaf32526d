// A real ingest: its CPU time per notification that it answers with 200.

import Glibc
import IngestTestKit
import KafkaTestKit
import Platform

/// A run takes about five seconds at the floor.
private let posts = 10_000
private let connections = 64
private let rounds = 5
/// As shares of L/3, without and with the archive of signed payloads.
private let floorWithoutArchive = 0.60
private let floorWithArchive = 0.50

/// Handshakes cost much on the client's side, too: so there are fewer, and only as many at a time as leave CPU to the server.
private let newConnections = 3_000
private let newAtATime = 32
/// As a share of L/3.
private let newConnectionFloor = 0.30

func requireKafka() async throws -> String {
    guard BrokerSource.current.isAvailable else {
        printMessage("bench: \(BrokerSource.skipLine)")
        exitProcess(2)
    }
    return try await SharedKafka.bootstrapServers()
}

func startIngest(_ fixture: NotificationFixture, archive: Bool, bootstrap: String) async throws -> IngestProcess {
    try await IngestProcess.start(
        productPath("perennial"), bootstrap: bootstrap, prefix: "bench-\(getpid())",
        roots: fixture.rootPEM, apps: fixture.appsFile, wrapper: measuredCore,
        // The same notifications are posted again and again, from one address.
        settings: [
            "--archive.signed.payloads", "\(archive)", "--ingest.repeated.ms", "0", "--ingest.trusted.proxies",
            "127.0.0.1",
        ])
}

func measureIngest(_ report: inout Report) async throws {
    let bootstrap = try await requireKafka()
    let fixture = try NotificationFixture(count: 3_000)
    report.note(
        "CPU time of the ingest process (/proc/PID/stat) per answer of 200; bodies of \(fixture.averageBytes) bytes, TLS 1.3, "
            + "\(connections) kept connections, beside openssl on one core; Kafka and client on the others")
    let without = try await startIngest(fixture, archive: false, bootstrap: bootstrap)
    let with = try await startIngest(fixture, archive: true, bootstrap: bootstrap)
    let bodies = fixture.bodies
    for (what, ingest, floor) in [
        ("ingest", without, floorWithoutArchive), ("ingest-with-archive", with, floorWithArchive),
    ] {
        var load = Load(
            ingest.url, authorityFile: ingest.authorityFile, bodies: bodies, .requests(posts))
        load.connectionCount = connections
        try await ingest.warmUp(bodies)
        // Warms up chains, connections to the brokers, and memory.
        _ = try await cost(load, ingest, &report)
        var last: LoadOutcome?
        let measured = try await Rounds.measure(rounds, opensslSeconds: 6) {
            let (seconds, outcome) = try await cost(load, ingest, &report)
            last = outcome
            return seconds
        }
        report.judge(what, measured.words, ratio: median(measured.ratios), .atLeast(floor))
        if let last { noteClient(last, ingest, report) }
    }
    try await measureNewConnections(without, bodies, &report)
    for ingest in [without, with] { _ = try await ingest.process.terminate(within: .seconds(30)) }
}

private func measureNewConnections(
    _ ingest: IngestProcess, _ bodies: Bodies, _ report: inout Report
) async throws {
    var load = Load(
        ingest.url, authorityFile: ingest.authorityFile, bodies: bodies, .requests(newConnections))
    load.connectionCount = newAtATime
    // The second time the client offers the ticket of its previous connection. If it is used, the server need not sign.
    for (what, connections) in [("new-connection", Load.Connections.new), ("resumed", .resumed)] {
        load.connections = connections
        let measured = try await Rounds.measure(rounds, opensslSeconds: 6) {
            try await cost(load, ingest, &report).seconds
        }
        if connections == .new {
            report.judge(what, measured.words, ratio: median(measured.ratios), .atLeast(newConnectionFloor))
        } else {
            report.note("with the session offered again, for information: \(measured.words)")
        }
    }
}

/// CPU seconds of ingest per answer. Every answer must be 200.
private func cost(
    _ load: Load, _ ingest: IngestProcess, _ report: inout Report
) async throws -> (seconds: Double, outcome: LoadOutcome) {
    let start = try ingest.cpuSeconds()
    let outcome = try await blocking { try load.run() }
    let seconds = try ingest.cpuSeconds() - start
    if !outcome.isAllAccepted {
        report.fail("not every post was answered with 200: \(outcome)")
        printMessage(ingest.process.lastLines(20))
    }
    return (seconds / Double(max(1, outcome.answered(200))), outcome)
}

private func noteClient(_ outcome: LoadOutcome, _ ingest: IngestProcess, _ report: Report) {
    let rate = Double(outcome.answered) / outcome.seconds
    let share = Int(100 * outcome.clientSeconds / outcome.seconds)
    let memory = (try? ingest.peakMemoryBytes()).map { "\($0 >> 20) MiB" } ?? "unknown"
    report.note(
        "\(decimals(rate))/s by the wall clock, p50 \(decimals(outcome.latency.p50)) ms, p99 "
            + "\(decimals(outcome.latency.p99)) ms; the client used \(share) % of a core; peak memory of ingest \(memory)"
    )
}
