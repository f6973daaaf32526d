import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    @Suite(.serialized) struct `The memory of a worker` {
        private static let cacheBytes = 32 << 20
        private static let records = 150_000
        private static let valueBytes = 1_000

        /// A pod reaches its memory limit exactly when it rebuilds lost state, and again at its next start.
        @Test func `is bounded by its setting, also while it restores five times as much`() async throws {
            let installation = try await Installation.make("memory", try await Broker.shared(), partitions: 4)
            try await fill(installation)
            let scratch = try ScratchDirectory("memory")
            let worker = try ServiceProcess(
                [
                    "entitlements", "--state.directory", scratch.path, "--worker.slot", "0", "--state.cache.bytes",
                    "\(Self.cacheBytes)",
                ] + installation.settings)
            try await worker.waitUntilReady()
            let peak = try worker.process.peakMemoryBytes()
            try await worker.stop()
            let restored = worker.log.split(separator: "\n").compactMap {
                $0.firstMatch(of: #/"detail":"([0-9]+) records restored"/#).flatMap { Int($0.1) }
            }.reduce(0, +)
            #expect(restored == Self.records, "\(worker.log.suffix(2000))")
            #expect(peak < Self.cacheBytes + (100 << 20), "\(peak >> 20) MiB")
            print("memory: \(peak >> 20) MiB at most while \(restored) records were restored")
        }

        /// States without timers, as a worker keeps them.
        private func fill(_ installation: Installation) async throws {
            let properties = installation.broker.properties
            let topic = installation.topic("entitlements.changelog")
            try await blocking {
                var failures = 0
                let producer = try Producer(.init(clientID: "memory-test", properties: properties)) { report in
                    if report.failure != nil { failures += 1 }
                }
                defer { producer.close(by: Deadline(after: patience)) }
                let target = try producer.topic(topic)
                _ = try producer.partitionCounts(by: Deadline(after: patience))
                var value: [UInt8] = [1, 0] + Array(repeating: 0x20, count: Self.valueBytes)
                for number in 0..<Self.records {
                    // The value cannot be compressed.
                    for place in 2..<value.count where place % 16 == 0 { value[place] = UInt8.random(in: 0 ... .max) }
                    let name = Array("\(2_000_000_000_000_000 + number)".utf8)
                    let key = [1] + name
                    while producer.outstanding >= 10_000 { producer.poll(.milliseconds(20)) }
                    try producer.send(
                        to: target, partition: Partitioner.partition(of: name, count: Int32(installation.partitions)),
                        key: key.span, value: value.span)
                    producer.poll()
                }
                try producer.flush(by: Deadline(after: patience * 3))
                #expect(failures == 0)
            }
        }
    }
}
