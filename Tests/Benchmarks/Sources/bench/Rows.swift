// The rows of the benchmark.

import Glibc
import KafkaTestKit
import Platform

struct Row: Sendable {
    let name: String
    let summary: String
    let measure: @Sendable (inout Report) async throws -> Void

    static let all = [
        Row(
            name: "kafka", summary: "the Kafka layer against the same loops in C over librdkafka", measure: measureKafka
        ),
        Row(
            name: "store", summary: "the store on disk against the same loops in C over RocksDB", measure: measureStore),
        Row(
            name: "log", summary: "a worker's loop over the log's interface against the same loop over its clients",
            measure: measureLog),
        Row(
            name: "domain", summary: "the domain of entitlements alone, its allocations, and long lives",
            measure: measureDomain),
        Row(
            name: "churn-domain", summary: "the domain of churn alone, its allocations, and long lives",
            measure: measureChurnDomain),
        Row(
            name: "worker-memory", summary: "a worker on one core, its log and its state in memory",
            measure: measureWorkerInMemory),
        Row(
            name: "worker-kafka",
            summary: "a warm worker on Kafka, exactly once, against a C loop that keeps and writes the same bytes",
            measure: measureWorkerOnKafka),
        Row(
            name: "worker-repeated", summary: "a warm worker on Kafka with notifications that it knows",
            measure: measureWorkerRepeated),
        Row(
            name: "churn-memory", summary: "the churn worker against the entitlements worker, all in memory",
            measure: measureChurnInMemory),
        Row(
            name: "churn-year", summary: "a year of renewals through both workers, state on disk: cells, memory",
            measure: measureChurnYear),
        Row(
            name: "churn-kafka", summary: "a warm churn worker on Kafka, against a C loop of the same kind",
            measure: measureChurnOnKafka),
        Row(
            name: "consumption",
            summary: "refund requests decided on Kafka, and answers sent over TLS, against loops in C",
            measure: measureConsumption),
        Row(
            name: "replay",
            summary: "perennial replay and diff of a million subscriptions, and a live worker beside a replay",
            measure: measureReplay),
        Row(
            name: "worker-rebuild", summary: "a worker's lost disk, rebuilt from Kafka", measure: measureWorkerRebuild),
        Row(
            name: "worker-size", summary: "a worker with many subscriptions on disk: memory, few keys, all keys",
            measure: measureWorkerSize),
        Row(
            name: "worker-restart", summary: "from the start after a crash to the first commit",
            measure: measureWorkerRestart),
        Row(
            name: "worker-handover", summary: "partitions that move to another process with a copy of their state",
            measure: measureWorkerHandover),
        Row(
            name: "worker-latency",
            summary: "from publishing to the committed output, by its parts, and the CPU of worker and broker",
            measure: measureWorkerLatency),
        Row(
            name: "latency", summary: "commits per second, by the round-trip time to the broker",
            measure: measureLatency),
        Row(
            name: "verification", summary: "one thread, chain cached, against openssl speed ecdsap256",
            measure: measureVerification),
        Row(
            name: "python", summary: "the same against Apple's library for Python, with both caches",
            measure: measurePython),
        Row(
            name: "ingest", summary: "posts over TLS until Kafka acknowledges them, per core of the ingest process",
            measure: measureIngest),
        Row(name: "api", summary: "the read API over kept connections, per core of its process", measure: measureAPI),
        Row(
            name: "sizing", summary: "the figures of perennial size, each beside the one that it uses",
            measure: measureSizing),
        Row(
            name: "overload", summary: "twice the capacity of ingest, and what is left of it", measure: measureOverload),
    ]
}

/// `PERENNIAL_BENCH_ROUNDS`: how often a row measures what it compares, in the rows that take long; nil: as often as they choose.
var chosenRounds: Int? {
    environmentVariables().first { $0.name == "PERENNIAL_BENCH_ROUNDS" }.flatMap { Int($0.value) }.map { max(1, $0) }
}

func exitProcess(_ code: Int32) -> Never { exit(code) }

/// The rows that the arguments name; all rows if there are no arguments.
func choose(_ names: [String]) -> [Row] {
    for name in names where !Row.all.contains(where: { $0.name == name }) {
        printMessage("bench: there is no row \(name); the rows are: \(Row.all.map(\.name).joined(separator: ", "))")
        exitProcess(2)
    }
    return names.isEmpty ? Row.all : Row.all.filter { names.contains($0.name) }
}

/// One run in a process of its own. It prints the CPU time in microseconds.
func runOne(_ arguments: [String]) -> Never {
    do {
        if let name = arguments.first, name.hasPrefix("worker-"), name != "worker-count-c" {
            printData(try runWorker(arguments).line)
            exitProcess(0)
        }
        if arguments.first == "api-server" { try serveAPI() }
        let spent: Int64 =
            switch arguments.first {
            case "verify", "verify-and-encode": try verifyLoop(arguments)
            case "store-put-c", "store-put-swift", "store-get-c", "store-get-swift": try storeLoop(arguments)
            case "log-interface", "log-clients": try logLoop(arguments)
            case "worker-count-c": try countLoop(arguments)
            default: try kafkaLoop(arguments)
            }
        guard spent > 0 else {
            printMessage("bench: \(arguments[0]) did not process every record")
            exitProcess(3)
        }
        printData("\(spent)")
        exitProcess(0)
    } catch {
        printMessage("bench: \(arguments.joined(separator: " ")): \(error)")
        exitProcess(3)
    }
}

/// Runs this program again as `bench run …`: a process's CPU time is then that of one loop.
/// - Parameter wrapper: a program that runs it, such as `measuredCore`.
func measureLoop(_ arguments: [String], by wrapper: [String] = []) async throws -> Double {
    let command = wrapper + [try productPath("bench"), "run"] + arguments
    let result = try await run(command[0], Array(command.dropFirst()), timeout: .seconds(300))
    guard result.code == 0, let spent = Double(result.standardOutput.prefix { $0 != "\n" }) else {
        printMessage("bench: a run of \(arguments[0]) failed: \(result.standardError)")
        exitProcess(3)
    }
    return spent
}

/// Runs blocking work outside the threads of the pool.
func onThread(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await WorkerThread.start("bench", body).join()
}
