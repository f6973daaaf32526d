// The log of a demo, and its topics, which exist while it runs.

import Cluster
import Contract
import Kafka
import Log
import MemoryLog
import Platform
import Service
import Synchronization

/// Why the demo cannot run.
struct DemoFault: Error, CustomStringConvertible { let description: String }

final class DemoTopics: ServicePart {
    enum Place: Sendable {
        case memory
        /// Brokers, in the form of `kafka.bootstrap.servers`.
        case kafka(ClientProperties)
    }

    let name = "topics"
    let log: any RecordLog
    let prefix: TopicPrefix
    /// Enough to show several partitions, few enough for any laptop.
    static let partitions: Int32 = 4
    /// Topics that ingest writes.
    static let taken: [TopicID] = [.notifications, .rejected, .usage]

    private static let workers: [WorkerName] = [.entitlements, .churn, .consumption]

    private let place: Place
    private let say: @Sendable (String) -> Void

    /// Records of each partition in memory: how far a reader may be behind, and a limit for the memory of a long demo.
    private static let retainedRecords = 2000
    private static let answerLimit: Duration = .seconds(15)
    private static let contactLimit: Duration = .seconds(5)
    /// A little more than the sessions of the workers, which end together.
    private static let groupLimit: Duration = .seconds(10)
    private static let closeLimit: Duration = .seconds(2)
    /// The share of the time to stop. Topics are removed last; before the process ends they must be removed or reported.
    static let stopShare: Duration = .seconds(14)

    /// - Parameter say: prints what was created and removed in Kafka.
    init(_ place: Place, say: @escaping @Sendable (String) -> Void) {
        self.place = place
        self.say = say
        // A prefix of this run only, so that its topics can be removed.
        prefix = TopicPrefix("perennial-demo-\(String(UInt32.random(in: 0 ... .max), radix: 16))")!
        switch place {
        case .memory: log = MemoryLog()
        case .kafka(let properties): log = properties.makeLog()
        }
    }

    /// Where the log is.
    var description: String {
        switch place {
        case .memory: "in memory"
        case .kafka(let properties): "\(properties.bootstrapServers ?? "Kafka"), topics \(prefix).*, removed at the end"
        }
    }

    func names(_ environment: Contract.Environment) -> Names { Names(prefix: prefix, environment: environment) }

    private var planned: [PlannedTopic] {
        let plan = TopicPlan(
            prefix: prefix, partitions: Int(Self.partitions), replicationFactor: 1, minimumInSyncReplicas: 1)
        let ofWorkers: [TopicID] =
            [
                .entitlements, .entitlementEvents, .accounts, .churnCells, .churnEvents, .consumption,
                .consumptionAttempts,
            ] + Self.workers.flatMap { [.changelog($0), .deadLetters($0)] }
        // Ingest serves both environments, the workers of the demo only one.
        return plan.topics(in: .production).filter { (Self.taken + ofWorkers).contains($0.id) }
            + plan.topics(in: .sandbox).filter { Self.taken.contains($0.id) }
    }

    func start(failed: @escaping @Sendable (any Error) -> Void) throws {
        switch place {
        case .memory: try makeInMemory()
        case .kafka(let properties): try make(with: properties)
        }
    }

    func stop(by deadline: Deadline) throws {
        guard case .kafka(let properties) = place else { return }
        try remove(with: properties, by: deadline)
    }

    private func makeInMemory() throws(LogFault) {
        guard let log = log as? MemoryLog else { return }
        let deadline = Deadline(after: Self.answerLimit)
        for topic in planned {
            let isCompacted = TopicCatalogue.definition(topic.id).retention == .lastOfKey
            try log.create(
                [NewTopic(topic.name, partitions: Self.partitions, isCompacted: isCompacted)], by: deadline)
            if !isCompacted { try log.configure(topic.name) { $0.retainedRecords = Self.retainedRecords } }
        }
    }

    // MARK: Kafka

    private func make(with properties: ClientProperties) throws {
        try withAdmin(properties) { admin in
            do throws(KafkaFault) {
                _ = try admin.cluster(by: Deadline(after: Self.contactLimit))
            } catch {
                let cause = admin.recentFaults.last { $0.code != .allBrokersDown }?.detail ?? error.words
                throw DemoFault(
                    description: "no Kafka answers at \(properties.bootstrapServers ?? "?"): name a broker that allows "
                        + "connections without TLS and password (\(cause))")
            }
        }
        let deadline = Deadline(after: Self.answerLimit)
        let topics = planned
        let requests = topics.map { topic in
            Admin.NewTopic(
                name: topic.name, partitions: Self.partitions, replicationFactor: 1,
                settings: topic.settings.map { ($0.name, $0.value) })
        }
        do {
            try withAdmin(properties) { admin in
                for (topic, fault) in try admin.create(requests, by: deadline) {
                    if let fault { throw DemoFault(description: "cannot create the topic \(topic): \(fault.words)") }
                }
                // A topic is usable when every partition has a leader, which may be later than the answer.
                let names = Set(topics.map(\.name))
                while true {
                    let known = try admin.cluster(by: deadline).topics.filter { names.contains($0.name) }
                    let led = known.filter { $0.partitions.allSatisfy { $0.leader != nil } }
                    if led.count == names.count { break }
                    if deadline.hasPassed { throw DemoFault(description: "Kafka did not create the topics in time") }
                    pause(for: .milliseconds(50))
                }
            }
            say("created the topics \(prefix).*, which are removed at the end")
        } catch {
            removeWhatWasMade(with: properties)
            throw error
        }
    }

    private func removeWhatWasMade(with properties: ClientProperties) {
        do { try remove(with: properties, by: Deadline(after: Self.answerLimit)) } catch { say("\(error)") }
    }

    private func remove(with properties: ClientProperties, by deadline: Deadline) throws {
        let limit = Deadline(after: deadline.remaining - Self.closeLimit)
        do {
            try withAdmin(properties) { admin in
                for (topic, fault) in try admin.delete(topics: planned.map(\.name), by: limit) {
                    guard let fault, fault.code != .unknownTopicOrPartition else { continue }
                    throw DemoFault(description: "\(topic): \(fault.words)")
                }
                say("removed the topics \(prefix).*")
                let groups = Deadline(after: min(limit.remaining, Self.groupLimit))
                for worker in Self.workers { forget(names(.production).group(worker), with: admin, by: groups) }
            }
        } catch {
            throw DemoFault(
                description: "could not remove all topics \(prefix).* (\(error)): delete them yourself")
        }
    }

    /// A worker is a static member, so its group stays until its session ends. If Kafka does not delete the group now, it expires
    /// soon, because its topics are gone.
    private func forget(_ group: String, with admin: Admin, by deadline: Deadline) {
        while !deadline.hasPassed {
            do throws(KafkaFault) {
                return try admin.delete(group: group, by: deadline)
            } catch {
                if error.code != .groupNotEmpty { return }
                pause(for: .milliseconds(250))
            }
        }
    }

    private func withAdmin(_ properties: ClientProperties, _ body: (Admin) throws -> Void) throws {
        let admin = try Admin(clientID: "perennial-demo", properties: properties)
        defer { admin.close(by: Deadline(after: Self.closeLimit)) }
        try body(admin)
    }
}
