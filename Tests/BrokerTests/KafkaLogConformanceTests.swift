import Kafka
import KafkaTestKit
import Log
import LogTestKit
import Platform
import Testing

extension RealBroker {
    @Suite struct `Kafka as a log` {
        /// What the conformance suite can ask of a real Kafka: heartbeats run in the background, so a member that does not poll
        /// is not noticed, and the log cleaner runs when it likes.
        static let claims = LogClaim.all.filter { $0.needs.isSubset(of: [.holdsPositions]) }

        @Test(arguments: claims)
        func `keeps the promise that a log`(_ claim: LogClaim) async throws {
            let broker = try await Broker.shared()
            try await blocking { try claim.check(broker.underTest) }
        }
    }
}

extension Broker {
    fileprivate var underTest: LogUnderTest {
        let log = KafkaLog(properties)
        let properties = properties
        var under = LogUnderTest(
            log, sessionTimeout: .seconds(6), patience: .seconds(15), pollWait: .milliseconds(50),
            noticesSilence: false,
            passTime: { pause(for: $0) },
            makeTopic: { label, partitions, isCompacted in
                let name = "\(label)-\(UInt32.random(in: 0 ... .max))"
                try log.create(
                    [NewTopic(name, partitions: partitions, isCompacted: isCompacted)],
                    by: Deadline(after: patience))
                return name
            })
        under.holdPositions = { group, identity, positions in
            let producer = try TransactionalProducer.ready(identity, properties)
            try producer.begin()
            let consumer = try onlooker(group, properties)
            try producer.sendOffsets(positions, of: consumer.groupMetadata())
            consumer.close(by: Deadline(after: patience))
            // As if the process had died: nothing ends the transaction, not even a deinitialiser.
            _ = Unmanaged.passRetained(producer)
        }
        return under
    }
}
