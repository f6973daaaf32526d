// Commits of a session whose broker is far away.

import Kafka
import KafkaTestKit
import Log
import Platform
import Synchronization

/// The round-trip time.
private let distances = [0, 10, 30, 80]
/// The first commits, in which the producer learns the round-trip time, are not counted.
private let learning = 10
private let length: Duration = .seconds(10)
/// At most this many transactions may replace their producer.
private let bearable = 0.1

func measureLatency(_ report: inout Report) async throws {
    guard BrokerSource.current.canStartBrokers else {
        printMessage("bench: \(BrokerSource.privateSkipLine)")
        exitProcess(2)
    }
    var options = KafkaOptions()
    options.throughProxy = true
    let cluster = try await KafkaCluster.start(BrokerSource.current.requireDistribution(), options)
    guard let proxy = cluster.proxy else { return report.fail("the broker has no proxy") }
    report.note("one record and one offset per transaction, one after the other, through a proxy that delays requests")
    for distance in distances {
        proxy.setDistance(.zero)
        let run = Outcome()
        let bootstrap = cluster.bootstrapServers
        try await onThread {
            let figures = try commitFarAway(ClientProperties(bootstrapServers: bootstrap), "bench-latency-\(distance)")
            {
                proxy.setDistance(.milliseconds(distance))
            }
            run.figures.withLock { $0 = figures }
        }
        let (rate, replaced, commits) = run.figures.withLock { $0 }
        report.judge(
            "\(distance) ms", "\(decimals(rate)) commits per second; \(replaced) of \(commits) replaced their producer",
            ratio: Double(replaced) / Double(max(1, commits)), .atMost(bearable))
    }
    await cluster.close()
}

/// - Parameter moveAway: called when the partition is assigned, because joining the group is not measured.
private func commitFarAway(
    _ properties: ClientProperties, _ name: String, moveAway: () -> Void
) throws -> (rate: Double, replaced: Int, commits: Int) {
    let log = KafkaLog(properties)
    let deadline = Deadline(after: .seconds(30))
    try log.create([NewTopic("\(name).in", partitions: 1), NewTopic("\(name).out", partitions: 1)], by: deadline)
    var options = SessionOptions(group: name, identity: "\(name).0-0", inputs: ["\(name).in"], outputs: ["\(name).out"])
    let counter = Counter()
    options.onEvent = { event in if case .writerReplaced = event { counter.add() } }
    let session = try log.openSession(options, by: deadline)
    defer { session.close(by: Deadline(after: .seconds(10))) }
    let batch = RecordBatch()
    let partition = TopicPartition("\(name).in", 0)
    while true {
        guard case .assigned = try session.poll(into: batch, limit: 1, wait: .seconds(1)) else { continue }
        try session.take([partition: NextOffset(0)], paused: [])
        break
    }
    moveAway()
    let outputs = OutputBatch()
    func commit() throws {
        outputs.append(topic: 0, partition: 0, timestamp: WallClock.milliseconds(), key: nil, value: [1])
        try session.append(outputs)
        outputs.removeAll()
        try session.commit([partition: NextOffset(0)])
        _ = try session.poll(into: batch, limit: 1, wait: .zero)
    }
    for _ in 0..<learning { try commit() }
    let before = counter.value
    let start = ContinuousClock.now
    var count = 0
    while start.duration(to: .now) < length {
        try commit()
        count += 1
    }
    let seconds = start.duration(to: .now).fractionalSeconds
    return (Double(count) / seconds, counter.value - before, count)
}

private final class Outcome: Sendable {
    let figures = Mutex((rate: 0.0, replaced: 0, commits: 0))
}

private final class Counter: Sendable {
    private let count = Atomic(0)
    var value: Int { count.load(ordering: .relaxed) }
    func add() { count.wrappingAdd(1, ordering: .relaxed) }
}
