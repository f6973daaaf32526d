// The topics of a measured worker, and what is in them before it starts.

import Glibc
import Kafka
import KafkaTestKit
import Log
import Platform
import Runtime
import Synchronization

/// An input on the broker of this run, and its names and dates.
struct WorkerInput: Sendable {
    let worker: MeasuredWorker
    let bootstrap: String
    let prefix: String
    /// When the twelfth periods end.
    let end: Int64

    /// On the broker that rows share. The twelfth periods end now, so that nothing expires while a row is measured.
    init(_ name: String, of worker: MeasuredWorker = .entitlements) async throws {
        self.init(name, of: worker, on: try await requireKafka(), end: WallClock.milliseconds())
    }

    init(_ name: String, of worker: MeasuredWorker, on bootstrap: String, end: Int64) {
        self.worker = worker
        self.bootstrap = bootstrap
        self.end = end
        prefix = "bench-\(name)-\(getpid())"
    }

    func processor(_ run: String) -> Rerun { Rerun(worker, prefix: prefix, run: run) }

    /// The topics of one run; the first run also makes those that all runs share.
    func create(run: String) async throws { try await create(processor(run).topics) }
    /// Only those that all runs share.
    func createShared() async throws { try await create(processor("").sharedTopics) }

    private func create(_ wanted: [NewTopic]) async throws {
        try await administrate { admin in
            let topics = wanted.map { topic in
                // The records' timestamps are in the past, and months apart: without this the broker would delete them at
                // once, or begin a segment for each month.
                Admin.NewTopic(
                    name: topic.name, partitions: topic.shape.partitions, replicationFactor: 1,
                    settings: [("segment.ms", "94608000000")]
                        + (topic.shape.isCompacted ? [("cleanup.policy", "compact")] : [("retention.ms", "-1")]))
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

    /// With the topics that they share.
    func delete(runs: [String]) async throws {
        try await delete(Set(runs.flatMap { processor($0).topics.map(\.name) }))
    }

    /// Only the run's own topics.
    func delete(run: String) async throws { try await delete(Set(processor(run).ownTopics.map(\.name))) }
    func deleteShared() async throws { try await delete(Set(processor("").sharedTopics.map(\.name))) }

    private func delete(_ names: Set<String>) async throws {
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
    func fill(
        _ topic: String, count: Int, _ make: @escaping @Sendable () -> (Int, OutputBatch) throws -> Void
    ) async throws {
        let log = KafkaLog(ClientProperties(bootstrapServers: bootstrap))
        try await onThread {
            let writer = try log.openWriter(WriterOptions(name: "bench", topics: [topic]))
            defer { writer.close(by: Deadline(after: .seconds(5))) }
            let outputs = OutputBatch()
            let add = make()
            for n in 0..<count {
                try add(n, outputs)
                if outputs.count == 10_000 || n == count - 1 {
                    _ = try writer.append(outputs, by: Deadline(after: .seconds(60)))
                    outputs.removeAll()
                }
            }
        }
    }

    /// Appends the notifications of lives to a new topic.
    /// - Returns: what the worker must write.
    func fill(with lives: Lives) async throws -> OutputSums {
        let worker = worker
        let result = Outcome()
        try await fill(processor("").definition.events.topic, count: lives.count) {
            var records = LifeRecords(lives)
            let truth = worker.truth(of: lives)
            var next = [Int64](repeating: 0, count: Int(workerPartitions))
            return { n, outputs in
                records.make(n)
                let partition = records.partition
                try truth.hear(records, n, offset: next[Int(partition)])
                next[Int(partition)] += 1
                outputs.begin(topic: 0, partition: partition, timestamp: records.timestamp)
                outputs.headers(Notifications.headers)
                outputs.end(key: records.key.span, value: records.value.span)
                if n == lives.count - 1 { result.sums.withLock { $0 = truth.sums } }
            }
        }
        return result.sums.withLock { $0 }
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

private final class Outcome: Sendable {
    let sums = Mutex<OutputSums>([])
}
