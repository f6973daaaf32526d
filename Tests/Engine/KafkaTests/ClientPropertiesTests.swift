import Kafka
import Log
import Platform
import Testing

@Suite struct `Properties of kafka clients` {
    private func refuse(_ name: String, _ value: String) -> PropertyFault? {
        ClientProperties([.init(name: name, value: value)]).faults().first
    }

    @Test func `pass through to librdkafka`() {
        #expect(refuse("compression.type", "zstd") == nil)
        #expect(refuse("security.protocol", "sasl_ssl") == nil)
        #expect(refuse("fetch.min.bytes", "65536") == nil)
    }

    @Test func `that are unknown name the nearest known one`() throws {
        let fault = try #require(refuse("bootstrap.server", "x"))
        #expect(fault.suggestion == "bootstrap.servers")
        #expect(fault.description.contains("the nearest is kafka.bootstrap.servers"))
    }

    @Test func `with a wrong value say what librdkafka says`() throws {
        #expect(try #require(refuse("compression.type", "rar")).reason.contains("rar"))
    }

    @Test(arguments: [
        "enable.auto.commit", "enable.auto.offset.store", "isolation.level", "partition.assignment.strategy",
        "transactional.id", "transaction.timeout.ms", "message.timeout.ms", "enable.idempotence", "group.id",
        "group.instance.id", "acks", "request.required.acks",
        "auto.offset.reset", "allow.auto.create.topics", "log_level", "log.connection.close", "plugin.library.paths",
        "enable.partition.eof", "partitioner", "group.protocol",
    ])
    func `that correctness depends on are refused with the reason`(name: String) throws {
        let reason = try #require(ClientProperties.refusal(of: name))
        #expect(reason.count > 20)
        let fault = try #require(refuse(name, "true"))
        #expect(fault.reason.contains(reason))
        #expect(throws: PropertyFault.self) {
            try Consumer(
                .init(clientID: "c", groupID: "g", properties: ClientProperties([.init(name: name, value: "true")])))
        }
        #expect(throws: PropertyFault.self) {
            try Producer(.init(clientID: "c", properties: ClientProperties([.init(name: name, value: "true")]))) { _ in
            }
        }
    }

    @Test func `cannot make a retry look like an ordinary commit`() throws {
        #expect(try #require(refuse("retry.backoff.ms", "10")).reason.contains("at least 50"))
        #expect(refuse("retry.backoff.ms", "50") == nil)
    }

    @Test func `never show the value of a secret`() throws {
        var properties = ClientProperties()
        properties.set("ssl.key.pem", "hunter2hunter2")
        for fault in properties.faults() { #expect(!fault.description.contains("hunter2")) }
    }

    @Test func `for one kind win over those for all`() throws {
        var properties = ClientProperties()
        properties.set("compression.type", "lz4", for: .producer)
        properties.set("compression.type", "none")
        properties.set("session.timeout.ms", "wrong", for: .consumer)
        // A wrong property of consumers does not affect a producer.
        let producer = try Producer(.init(clientID: "c", properties: properties)) { _ in }
        producer.close(by: Deadline(after: .seconds(5)))
        #expect(throws: PropertyFault.self) {
            try Consumer(.init(clientID: "c", groupID: "g", properties: properties))
        }
    }

    @Test func `that contradict each other are told before anything connects`() {
        var properties = ClientProperties()
        properties.set("max.in.flight.requests.per.connection", "100")
        #expect(throws: PropertyFault.self) { try Producer(.init(clientID: "c", properties: properties)) { _ in } }
    }
}

@Suite struct `A fault` {
    @Test func `has Kafka's name for its code`() {
        #expect(KafkaCode.invalidTimestamp.name == "INVALID_TIMESTAMP")
        #expect(KafkaCode.queueFull.name == "_QUEUE_FULL")
    }

    @Test func `of a clock that runs ahead says so in plain words`() {
        #expect(KafkaCode.invalidTimestamp.explanation.contains("clock"))
        #expect(KafkaCode.invalidTimestamp.explanation.contains("message.timestamp.after.max.ms"))
    }

    @Test func `of authorisation asks for a person`() {
        #expect(KafkaCode(rawValue: 29).isAuthorisation)
        #expect(!KafkaCode.timedOut.isAuthorisation)
    }
}
