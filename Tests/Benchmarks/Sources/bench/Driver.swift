import CLoops
import Glibc
import Kafka
import KafkaTestKit
import Platform

private let partitions: Int32 = 12
/// Enough that starting a loop does not show: a run takes about a second.
private let records: Int64 = 1_500_000
private let valueBytes = 500
/// Alternating runs of each side; the median counts.
private let rounds = 7
/// What the layer may cost at most, as a multiple of the C loop.
private let reach = 1.15

func exitProcess(_ code: Int32) -> Never { exit(code) }

/// One run in a process of its own: prints the CPU microseconds it took.
func runOne(_ arguments: [String]) -> Never {
    guard arguments.count == 3 else {
        printMessage("usage: bench run produce-c|produce-swift|consume-c|consume-swift BOOTSTRAP TOPIC")
        exitProcess(2)
    }
    let (bootstrap, topic) = (arguments[1], arguments[2])
    do {
        let spent: Int64 =
            switch arguments[0] {
            case "produce-c": bench_produce(bootstrap, topic, partitions, records, Int64(valueBytes))
            case "consume-c": bench_consume(bootstrap, topic, partitions, records)
            case "produce-swift":
                try produce(bootstrap, topic, partitions: partitions, records: records, valueBytes: valueBytes)
            default: try consume(bootstrap, topic, partitions: partitions, records: records)
            }
        guard spent > 0 else {
            printMessage("bench: \(arguments[0]) did not deliver or read every record")
            exitProcess(3)
        }
        printData("\(spent)")
        exitProcess(0)
    } catch {
        printMessage("bench: \(arguments[0]): \(error)")
        exitProcess(3)
    }
}

/// All comparisons on one broker; true when every one is within its reach.
func runAll(_ arguments: [String]) async throws -> Bool {
    guard BrokerSource.current.isAvailable else {
        printMessage("bench: \(BrokerSource.skipLine)")
        exitProcess(2)
    }
    let bootstrap = try await SharedKafka.bootstrapServers()
    let suffix = "\(getpid())"
    let (written, read) = ("bench.produce.\(suffix)", "bench.consume.\(suffix)")
    try await onThread {
        let admin = try Admin(clientID: "bench", properties: ClientProperties(bootstrapServers: bootstrap))
        defer { admin.close(by: Deadline(after: .seconds(5))) }
        // What is written is thrown away soon: the runs would fill the disk of a small machine.
        let settings = [("retention.bytes", "67108864"), ("segment.bytes", "33554432")]
        for fault in try admin.create(
            [
                Admin.NewTopic(name: written, partitions: partitions, replicationFactor: 1, settings: settings),
                // The records' timestamps lie in the past: without this the broker would delete them at once.
                Admin.NewTopic(
                    name: read, partitions: partitions, replicationFactor: 1, settings: [("retention.ms", "-1")]),
            ], by: Deadline(after: .seconds(20))
        ).values {
            if let fault { throw fault }
        }
    }
    printMessage("filling \(read) with \(records) records of \(valueBytes) bytes")
    _ = try await measure("produce-c", bootstrap, read)
    printData("Kafka layer against the same loop in C over librdkafka \(Librdkafka.version)")
    printData("CPU microseconds per record (getrusage of the process), median [min-max] of \(rounds) alternating runs")
    printData("")
    let produceMet = try await compare("produce", bootstrap, written)
    let consumeMet = try await compare("consume", bootstrap, read)
    try await onThread {
        let admin = try Admin(clientID: "bench", properties: ClientProperties(bootstrapServers: bootstrap))
        defer { admin.close(by: Deadline(after: .seconds(5))) }
        _ = try admin.delete(topics: [written, read], by: Deadline(after: .seconds(20)))
    }
    return produceMet && consumeMet
}

private func onThread(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await WorkerThread.start("bench", body).join()
}

private func measure(_ loop: String, _ bootstrap: String, _ topic: String) async throws -> Double {
    let result = try await run("/proc/self/exe", ["run", loop, bootstrap, topic], timeout: .seconds(180))
    guard result.code == 0, let spent = Double(result.standardOutput.prefix { $0 != "\n" }) else {
        printMessage("bench: a run of \(loop) failed: \(result.standardError)")
        exitProcess(3)
    }
    return spent / Double(records)
}

private func compare(_ what: String, _ bootstrap: String, _ topic: String) async throws -> Bool {
    // One run of each to warm the broker's caches.
    _ = try await measure("\(what)-c", bootstrap, topic)
    _ = try await measure("\(what)-swift", bootstrap, topic)
    var c: [Double] = []
    var swift: [Double] = []
    for round in 1...rounds {
        c.append(try await measure("\(what)-c", bootstrap, topic))
        swift.append(try await measure("\(what)-swift", bootstrap, topic))
        printMessage("\(what) \(round)/\(rounds)")
    }
    let ratio = median(swift) / median(c)
    printData("\(what) \(valueBytes)-byte records   C \(figures(c))   Perennial \(figures(swift))")
    printData("    ratio \(decimals(ratio)), reach \(decimals(reach)): \(ratio <= reach ? "met" : "NOT MET")")
    return ratio <= reach
}

private func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

private func figures(_ values: [Double]) -> String {
    "\(decimals(median(values))) [\(decimals(values.min()!))-\(decimals(values.max()!))]"
}

private func decimals(_ value: Double) -> String {
    let hundredths = Int((value * 100).rounded())
    return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
}
