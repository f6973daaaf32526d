import Kafka
import RDKafkaTestKit
import Testing

@testable import Kafka
@testable import Log

@Suite struct `Rights in words` {
    @Test func `are given by one line for each resource, without what Read and Write bring along`() {
        let rights = [
            Right(.write, .transactionalIDs(prefix: "p.g")), Right(.describe, .topic("t")), Right(.write, .topic("t")),
            Right(.read, .topic("t")), Right(.describe, .group("g")),
        ]
        #expect(
            rights.grants(servers: "a:1", user: "me") == [
                "kafka-acls.sh --bootstrap-server a:1 --add --allow-principal User:me --operation Read --operation Write "
                    + "--topic t",
                "kafka-acls.sh --bootstrap-server a:1 --add --allow-principal User:me --operation Describe --group g",
                "kafka-acls.sh --bootstrap-server a:1 --add --allow-principal User:me --operation Write "
                    + "--transactional-id p.g --resource-pattern-type prefixed",
            ])
        #expect([Right(.read, .group("g"))].grants(servers: "a:1", user: nil)[0].contains("User:NAME "))
    }

    private func words(_ code: KafkaCode, _ remedy: KafkaFault.Remedy, refusal: KafkaRefusal? = nil) -> String {
        LogFault(
            KafkaFault(remedy, code, operation: "commit"), identity: "p.g.0-0", refusal: refusal, outputs: ["a", "b"]
        ).words
    }

    @Test func `name the topic that refuses a record, and what to look at`() {
        let large = words(.timedOut, .abortTransaction, refusal: KafkaRefusal(code: .tooLarge, topic: "p.accounts"))
        #expect(large.contains("the record is too large for the topic p.accounts: see its max.message.bytes"))
        let forbidden = KafkaCode(rawValue: 29)
        #expect(
            words(.timedOut, .abortTransaction, refusal: KafkaRefusal(code: forbidden, topic: "p.dead-letters"))
                .contains("there is no right to write to the topic p.dead-letters"))
    }

    @Test func `name what was refused where Kafka's own words do not`() {
        #expect(words(KafkaCode(rawValue: 29), .stopProcess).contains("one of the topics a, b; run perennial check"))
        let identity = words(KafkaCode(rawValue: 53), .stopProcess)
        #expect(identity.contains(" of the transactional id p.g.0-0; run perennial check"))
        #expect(words(KafkaCode(rawValue: 30), .stopProcess).contains("for the group of p.g.0-0; run perennial check"))
    }

    @Test func `keep the topic of the first record that was refused, and forget it with the transaction`() {
        let deliveries = Deliveries()
        deliveries.reset(partitions: [1, 1])
        deliveries.note(DeliveryReport(token: 1, partition: 0, offset: -1, failure: .tooLarge))
        deliveries.note(DeliveryReport(token: 0, partition: 0, offset: -1, failure: .timedOut))
        #expect(deliveries.refusal?.code == .tooLarge && deliveries.refusal?.topic == 1)
        deliveries.begin()
        #expect(deliveries.refusal == nil)
    }

    @Test func `lines of the library are for who debugs, ours keep their level`() {
        func level(_ event: ClientEvent) -> LogEvent.Level? {
            if case .message(let level, _)? = LogEvent(event) { level } else { nil }
        }
        #expect(level(.log(.error, facility: "FAIL", message: "connect refused")) == .debug)
        #expect(level(.error(.allBrokersDown, detail: "1/1 brokers are down")) == .debug)
        #expect(level(.log(.error, facility: "CLOSE", message: "x was not closed")) == .error)
    }
}
