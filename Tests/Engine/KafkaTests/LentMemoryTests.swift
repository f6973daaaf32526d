import KafkaTestKit
import Log
import Platform
import RDKafkaTestKit
import Testing

@testable import Kafka

/// What librdkafka reads in a batch after `append` has returned.
extension `On the mock cluster` {
    enum Ending: CaseIterable, Sendable {
        case commit, abort, abortWithoutBroker, rebuildWithoutBroker, closeWithoutBroker

        var hasBroker: Bool { self == .commit || self == .abort }
    }

    /// Whether memory exists, and what was reported after it was gone.
    private final class Watch {
        weak var memory: OutputMemory?
        var reports = 0
        var lateReports = 0
    }

    private func values(_ byte: UInt8, count: Int) -> OutputBatch {
        let outputs = OutputBatch()
        for _ in 0..<count {
            outputs.append(
                topic: 0, partition: 1, timestamp: 1_771_000_000_000, key: [byte],
                value: [UInt8](repeating: byte, count: 1_000))
        }
        return outputs
    }

    @Test func `a batch is filled again while the records that it had before wait for the broker`() async throws {
        try await withCluster { cluster in
            let properties = ClientProperties(bootstrapServers: cluster.bootstrapServers)
            let options = SessionOptions(group: "g", identity: "g.0-0", inputs: ["in"], outputs: ["out"])
            let session = try KafkaLog(properties).openSession(options, by: Deadline(after: soon))
            let outputs = OutputBatch()
            // Records wait for others of their partition until the commit.
            for byte in 1...5 as ClosedRange<UInt8> {
                outputs.append(
                    topic: 0, partition: 1, timestamp: 1_771_000_000_000, key: nil,
                    value: [UInt8](repeating: byte, count: 1_000))
                try session.append(outputs)
                outputs.removeAll()
            }
            try session.commit([:])
            let consumer = try Consumer(.init(clientID: "c", groupID: "c", properties: properties))
            try consumer.assign([TopicPartition("out", 1): NextOffset(0)])
            for byte in 1...5 as ClosedRange<UInt8> {
                #expect(try consumer.next(within: soon)?.value == [UInt8](repeating: byte, count: 1_000))
            }
            #expect(consumer.close(by: Deadline(after: soon)))
            #expect(session.close(by: Deadline(after: soon)))
        }
    }

    @Test(arguments: Ending.allCases)
    func `the memory of a batch lasts until its records are reported, or their client is gone`(_ ending: Ending)
        async throws
    {
        try await withCluster { cluster in
            let watch = Watch()
            let properties = ClientProperties(bootstrapServers: cluster.bootstrapServers)
            let producer = try TransactionalProducer(.init(transactionalID: "g.0-0", properties: properties)) { _ in
                watch.reports += 1
                if watch.memory == nil { watch.lateReports += 1 }
            }
            let topic = try producer.topic("out")
            try producer.start(by: Deadline(after: soon))
            try producer.begin()
            // 2.0.2 aborts the process if a client is destroyed while it registers a partition in its transaction.
            try producer.send(to: topic, partition: 1, key: nil, value: [1].span)
            while producer.outstanding > 0 { producer.poll(.milliseconds(10)) }
            (watch.reports, watch.lateReports) = (0, 0)
            if !ending.hasBroker { cluster.fail(.produce, with: Array(repeating: .transport, count: 1_000)) }
            do {
                let outputs = values(7, count: 20)
                watch.memory = outputs.memory
                for index in 0..<outputs.count {
                    try producer.send(outputs, index, to: topic, token: 0, lending: true)
                }
            }
            #expect(watch.memory != nil)
            switch ending {
            case .commit: try producer.commit()
            case .abort: try producer.abort()
            case .abortWithoutBroker: try? producer.abort()
            case .rebuildWithoutBroker: try producer.rebuild(by: Deadline(after: soon))
            case .closeWithoutBroker: break
            }
            if ending.hasBroker {
                #expect(watch.reports == 20)
                // Kept no longer than needed: the producer goes on.
                #expect(watch.memory == nil)
            }
            #expect(producer.close(by: Deadline(after: soon)))
            // The thread that has destroyed the client ends a moment later.
            let deadline = Deadline(after: soon)
            while watch.memory != nil, !deadline.hasPassed { pause(for: .milliseconds(1)) }
            #expect(watch.memory == nil)
            #expect(watch.lateReports == 0)
        }
    }
}
