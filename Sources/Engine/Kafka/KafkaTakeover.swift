// A takeover in Kafka: a transactional producer that commits offsets of the group without being a member.

internal import CRDKafka
internal import Log
internal import Platform

/// Inside a transaction a broker accepts offsets without a member id, even if the group has members. So the group is
/// checked after the offsets were sent and before the commit: a member that joins later reads the offsets only after
/// this transaction has ended.
final class KafkaTakeover: GroupTakeover {
    private let options: TakeoverOptions
    private let producer: TransactionalProducer
    private let admin: Admin
    private let topics: [ProducerTopic]
    private var isClosed = false

    private init(
        _ options: TakeoverOptions, _ producer: TransactionalProducer, _ admin: Admin, _ topics: [ProducerTopic]
    ) {
        self.options = options
        self.producer = producer
        self.admin = admin
        self.topics = topics
    }

    static func open(
        _ options: TakeoverOptions, _ properties: ClientProperties, by deadline: Deadline
    ) throws(LogFault) -> KafkaTakeover {
        let (producer, admin) = try makeClients(options, properties)
        do throws(LogFault) {
            try requireEmpty(options.group, admin, by: deadline)
            do throws(KafkaFault) {
                try producer.start(by: deadline)
                var topics: [ProducerTopic] = []
                for topic in options.topics { topics.append(try producer.topic(topic)) }
                _ = try persisting(until: deadline) { () throws(KafkaFault) in
                    try producer.partitionCounts(by: deadline)
                }
                return KafkaTakeover(options, producer, admin, topics)
            } catch {
                throw LogFault(error, identity: options.identity, outputs: options.topics)
            }
        } catch {
            producer.close(by: Deadline(after: closingLimit))
            admin.close(by: Deadline(after: closingLimit))
            throw error
        }
    }

    private static func makeClients(
        _ options: TakeoverOptions, _ properties: ClientProperties
    ) throws(LogFault) -> (TransactionalProducer, Admin) {
        var writing = TransactionalProducer.Configuration(transactionalID: options.identity, properties: properties)
        writing.transactionTimeout = options.transactionTimeout
        do throws(PropertyFault) {
            let producer = try TransactionalProducer(writing)
            do throws(PropertyFault) {
                return (producer, try Admin(clientID: options.identity, properties: properties))
            } catch {
                producer.close(by: Deadline(after: closingLimit))
                throw error
            }
        } catch {
            throw LogFault(error)
        }
    }

    private static func requireEmpty(_ group: String, _ admin: Admin, by deadline: Deadline) throws(LogFault) {
        let members: [String]
        do throws(KafkaFault) {
            members = try persisting(until: deadline) { () throws(KafkaFault) in
                try admin.describe(group: group, by: deadline).members.map { $0.instanceID ?? $0.clientID }
            }
        } catch {
            // The group never had members.
            if error.code == .groupNotFound { return }
            throw LogFault(error)
        }
        if !members.isEmpty { throw .occupied(group: group, by: members) }
    }

    private func calling<Answer>(_ body: () throws(KafkaFault) -> Answer) throws(LogFault) -> Answer {
        if isClosed { throw LogFault(.stop, .misuse, "the takeover is closed") }
        do throws(KafkaFault) {
            return try body()
        } catch {
            throw LogFault(error, identity: options.identity, outputs: options.topics)
        }
    }

    func committed(
        _ partitions: [TopicPartition], by deadline: Deadline
    ) throws(LogFault) -> [TopicPartition: NextOffset] {
        try calling { () throws(KafkaFault) in
            try persisting(until: deadline) { () throws(KafkaFault) in
                try admin.offsets(ofGroup: options.group, by: deadline).filter { partitions.contains($0.key) }
            }
        }
    }

    func append(_ outputs: OutputBatch) throws(LogFault) {
        if outputs.isEmpty { return }
        try calling { () throws(KafkaFault) in
            try begin()
            for index in 0..<outputs.count { try send(outputs, index) }
            producer.poll()
        }
    }

    private func begin() throws(KafkaFault) {
        if producer.state != .inTransaction { try producer.begin() }
    }

    private func send(_ outputs: OutputBatch, _ index: Int) throws(KafkaFault) {
        let topic = Int(outputs.records[index].topic)
        precondition(topics.indices.contains(topic), "an output must use one of the takeover's topics")
        while true {
            do throws(KafkaFault) {
                return try producer.send(outputs, index, to: topics[topic], token: 0)
            } catch {
                if error.code != .queueFull { throw error }
                producer.poll(.milliseconds(10))
            }
        }
    }

    func commit(_ positions: [TopicPartition: NextOffset]) throws(LogFault) {
        try calling { () throws(KafkaFault) in
            try begin()
            guard let group = rd_kafka_consumer_group_metadata_new(options.group) else {
                throw KafkaFault(.stopProcess, .invalidConfiguration, operation: "use the group \(options.group)")
            }
            if !positions.isEmpty { try producer.sendOffsets(positions, of: GroupMetadata(owning: group)) }
        }
        try Self.requireEmpty(options.group, admin, by: Deadline(after: options.transactionTimeout))
        try calling { () throws(KafkaFault) in try producer.commit() }
    }

    func close(by deadline: Deadline) -> Bool {
        if isClosed { return true }
        isClosed = true
        let isProducerGone = producer.close(by: deadline)
        return admin.close(by: deadline) && isProducerGone
    }
}
