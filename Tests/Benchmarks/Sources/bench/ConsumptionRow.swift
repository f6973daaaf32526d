// Refund requests: how much CPU time a decision and an answer cost.

import Contract
import Glibc
import Kafka
import KafkaTestKit
import Log
import Platform

private let requests = 50_000
/// The sender starts at most 32 attempts in each step, so a run takes a few seconds.
private let answers = 5_000
/// Alternating runs of each side; the median counts.
private let rounds = 5
/// The worker's time divided by that of a C consumer that only counts the same records. 27 was measured (57 us against 2.1), on a
/// machine that was busy with other work. The limit allows 70 % of that speed.
private let decisionMultiple = 39.0
/// The time of an answer divided by libcurl's own, when a C loop sends it over as many connections. 3.2 was measured (137 us
/// against 43), as above.
private let answerMultiple = 4.5

func measureConsumption(_ report: inout Report) async throws {
    try await measureDecisions(&report)
    try await measureAnswers(&report)
}

/// All requests, in topics of their own.
private func decide(_ bootstrap: String, _ prefix: String) async throws -> RunFigures {
    let names = refundNames(prefix)
    try await onThread {
        let log = KafkaLog(ClientProperties(bootstrapServers: bootstrap))
        try log.create(refundTopics(names), by: Deadline(after: .seconds(30)))
        try refundFeed.fill(log, names, requests: requests)
    }
    let figures = try await measureRun(["worker-refunds", bootstrap, prefix, "\(requests)"])
    guard figures["told"] >= Double(2 * requests) else { throw NotInTime("a decision of each", limit: .zero) }
    return figures
}

/// CPU microseconds of a decision, the second of two runs.
func measureDecisionTime() async throws -> Double {
    let bootstrap = try await requireKafka()
    var microseconds = Double.nan
    for round in 0...1 {
        let prefix = "bench-decision-\(getpid())-\(round)"
        microseconds = try await decide(bootstrap, prefix)["cpu"] / Double(requests)
        try await deleteTopics(refundTopics(refundNames(prefix)).map(\.name), bootstrap)
    }
    return microseconds
}

/// CPU microseconds of an answer, of one run.
func measureAnswerTime() async throws -> Double {
    let server = try await RefundServer()
    let figures = try await measureRun(["worker-answers", server.files.directory, "\(answers)"])
    try await server.stop()
    guard figures["told"] == Double(3 * answers) else { throw NotInTime("one `sent` of each", limit: .zero) }
    return figures["cpu"] / Double(answers)
}

private func measureDecisions(_ report: inout Report) async throws {
    let bootstrap = try await requireKafka()
    var (worker, counting, wall, cycles): ([Double], [Double], [Double], [Double]) = ([], [], [], [])
    var peak = 0.0
    // The first round warms the broker's caches.
    for round in 0...rounds {
        let prefix = "bench-consumption-\(getpid())-\(round)"
        let (names, topics) = (refundNames(prefix), refundTopics(refundNames(prefix)))
        let figures = try await decide(bootstrap, prefix)
        var counted = 0.0
        for topic in [names.topic(.notifications), names.topic(.usage)] {
            counted += try await measureLoop(["worker-count-c", bootstrap, topic, "\(requests)"])
        }
        try await deleteTopics(topics.map(\.name), bootstrap)
        if round > 0 {
            worker.append(figures["cpu"] / Double(requests))
            wall.append(Double(requests) / figures["wall"] * 1e6)
            cycles.append(2 * Double(requests) / figures["commits"])
            counting.append(counted / Double(requests))
            peak = max(peak, figures["peak"])
        }
        printMessage("consumption decisions \(round)/\(rounds)")
    }
    report.note(
        "CPU microseconds per decision (getrusage of the process), median [min-max] of \(rounds) alternating runs; each reads a "
            + "request of 1.7 KB and a row of usage, and writes `requested`, `decided` and its state; "
            + "\(Int(median(cycles))) records a transaction; resident at most \(mebibytes(peak))")
    // According to `perf`, the largest single cost of the worker's thread, some 8 % of it, is `elementsEqual` of UTF-8 texts;
    // then come JSON, RocksDB and the cache with at most 1.5 % per function.
    report.judge(
        "consumption-decisions",
        "counting in C \(figures(counting)), worker \(figures(worker)): \(decimals(1e6 / median(worker))) decisions/s a core "
            + "(\(decimals(median(wall)))/s by the clock)",
        ratio: median(worker) / median(counting), .atMost(decisionMultiple))
}

private func deleteTopics(_ names: [String], _ bootstrap: String) async throws {
    try await onThread {
        let admin = try Admin(clientID: "bench", properties: ClientProperties(bootstrapServers: bootstrap))
        defer { admin.close(by: Deadline(after: .seconds(5))) }
        _ = try admin.delete(topics: names, by: Deadline(after: .seconds(20)))
    }
}

private func measureAnswers(_ report: inout Report) async throws {
    let server = try await RefundServer()
    var (sender, loop, wall): ([Double], [Double], [Double]) = ([], [], [])
    for round in 1...rounds {
        let arguments = [server.files.directory, "\(answers)"]
        loop.append(try await measureRun(["worker-answers-c"] + arguments)["cpu"] / Double(answers))
        let figures = try await measureRun(["worker-answers"] + arguments)
        guard figures["told"] == Double(3 * answers) else { throw NotInTime("one `sent` of each", limit: .zero) }
        sender.append(figures["cpu"] / Double(answers))
        wall.append(Double(answers) / figures["wall"] * 1e6)
        printMessage("consumption answers \(round)/\(rounds)")
    }
    try await server.stop()
    report.note(
        "CPU microseconds per answer, from its decision to the record `sent`: the request over TLS, Apple's word as a row, and the "
            + "worker's turn on that; log and state in memory, the simulator in Apple's place, every answer of it 202")
    report.judge(
        "consumption-answers",
        "libcurl alone in C \(figures(loop)), sender and worker \(figures(sender)): \(decimals(1e6 / median(sender))) answers/s a "
            + "core (\(decimals(median(wall)))/s by the clock)",
        ratio: median(sender) / median(loop), .atMost(answerMultiple))
}
