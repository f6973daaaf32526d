// The log of production: Kafka.

public import Log
public import Platform

/// Topics of a Kafka cluster.
public struct KafkaLog: RecordLog {
    private let properties: ClientProperties
    /// For topics that are created.
    public var replicationFactor: Int32 = 1

    public init(_ properties: ClientProperties) {
        self.properties = properties
    }

    // MARK: Topics

    public func topics(_ names: [String], by deadline: Deadline) throws(LogFault) -> [String: TopicShape] {
        try administrate { admin throws(KafkaFault) in
            let cluster = try admin.cluster(by: deadline)
            // A topic that the client may not see is not missing.
            if let hidden = cluster.hidden.first(where: { names.contains($0.name) }) { throw hidden.fault }
            let found = cluster.topics.filter { names.contains($0.name) }
            // A topic that the list leaves out because of a missing right is not missing either.
            for name in Set(names).subtracting(found.map(\.name)) {
                do throws(KafkaFault) {
                    try admin.look(at: name, by: deadline)
                } catch {
                    if error.code.isAuthorisation { throw error }
                }
            }
            let settings = try admin.settings(of: found.map(\.name), by: deadline)
            var shapes: [String: TopicShape] = [:]
            for topic in found {
                // The topic was just created or deleted, and not every broker knows it yet.
                guard let own = settings[topic.name] else {
                    throw KafkaFault(.retrySameCall, .timedOut, operation: "read the settings of \(topic.name)")
                }
                func value(_ name: String) -> String? { own.first { $0.name == name }?.value }
                // Compaction only: with `delete` the oldest records are removed, whatever their keys.
                let isCompacted = value("cleanup.policy") == "compact"
                let deletionsKept = value("delete.retention.ms").flatMap { Int64($0) }
                shapes[topic.name] = TopicShape(
                    partitions: Int32(topic.partitions.count), isCompacted: isCompacted,
                    deletionsKept: isCompacted ? deletionsKept.map { .milliseconds($0) } : nil)
            }
            return shapes
        }
    }

    /// Returns when every partition has a leader, which may be later than the broker's answer.
    public func create(_ topics: [NewTopic], by deadline: Deadline) throws(LogFault) {
        let wanted = topics.map { topic in
            Admin.NewTopic(
                name: topic.name, partitions: topic.shape.partitions, replicationFactor: replicationFactor,
                settings: [
                    ("cleanup.policy", topic.shape.isCompacted ? "compact" : "delete"),
                    // One broker may be down without blocking producers, and acknowledged records survive the loss of
                    // another.
                    ("min.insync.replicas", String(max(1, replicationFactor - 1))),
                ])
        }
        try administrate { admin throws(KafkaFault) in
            for fault in try admin.create(wanted, by: deadline).values {
                if let fault, fault.code != .topicAlreadyExists { throw fault }
            }
            while true {
                let known = try admin.cluster(by: deadline).topics
                let ready = topics.allSatisfy { topic in
                    known.contains { $0.name == topic.name && $0.partitions.allSatisfy { $0.leader != nil } }
                }
                if ready { return }
                if deadline.hasPassed { throw KafkaFault(.retrySameCall, .timedOut, operation: "see the new topics") }
                pause(for: .milliseconds(20))
            }
        }
    }

    private func administrate<Answer>(_ body: (Admin) throws(KafkaFault) -> Answer) throws(LogFault) -> Answer {
        let admin: Admin
        do throws(PropertyFault) {
            admin = try Admin(clientID: "perennial", properties: properties)
        } catch {
            throw LogFault(error)
        }
        defer { admin.close(by: Deadline(after: closingLimit)) }
        do throws(KafkaFault) { return try body(admin) } catch { throw LogFault(error) }
    }

    // MARK: Sessions, readers, writers

    public func openSession(
        _ options: SessionOptions, by deadline: Deadline
    ) throws(LogFault) -> any LogSession {
        try KafkaSession.open(options, properties, by: deadline)
    }

    public func settle(_ identity: String, by deadline: Deadline) throws(LogFault) {
        let producer: TransactionalProducer
        do throws(PropertyFault) {
            producer = try TransactionalProducer(.init(transactionalID: identity, properties: properties))
        } catch {
            throw LogFault(error)
        }
        defer { producer.close(by: Deadline(after: closingLimit)) }
        do throws(KafkaFault) { try producer.start(by: deadline) } catch { throw LogFault(error) }
    }

    public func openReader(_ options: ReaderOptions) throws(LogFault) -> any LogReader {
        try KafkaReader(options, properties)
    }

    public func openWriter(_ options: WriterOptions) throws(LogFault) -> any LogWriter {
        try KafkaWriter(options, properties)
    }

    public func openTakeover(_ options: TakeoverOptions, by deadline: Deadline) throws(LogFault) -> any GroupTakeover {
        try KafkaTakeover.open(options, properties, by: deadline)
    }

    public func openGroupWatch(_ name: String) throws(LogFault) -> any GroupWatch {
        try KafkaGroupWatch(name, properties)
    }
}

/// For clients that are closed along the way: a normal close takes milliseconds.
let closingLimit: Duration = .seconds(5)

/// Repeats a call while its fault says `retrySameCall`, with a short wait.
func persisting<Answer>(
    until deadline: Deadline, _ body: () throws(KafkaFault) -> Answer
) throws(KafkaFault) -> Answer {
    while true {
        do throws(KafkaFault) {
            return try body()
        } catch {
            if error.remedy != .retrySameCall || deadline.hasPassed { throw error }
            pause(for: .milliseconds(20))
        }
    }
}
