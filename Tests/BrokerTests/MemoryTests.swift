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
        private static let backlog = 60_000

        /// A pod reaches its memory limit exactly when it rebuilds lost state, and again at its next start.
        @Test func `is bounded by its setting, also while it restores five times as much`() async throws {
            let installation = try await Installation.make("memory", try await Broker.shared(), partitions: 4)
            try await fill(installation.topic("entitlements.changelog"), of: installation, Self.records, state)
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

        /// A pod that was down for long reaches its limit when it catches up. The limit is that of the manifests of deploy/kubernetes.
        @Test func `is bounded by its setting, also while it deals with a backlog`() async throws {
            let installation = try await Installation.make("backlog", try await Broker.shared(), partitions: 4)
            try await fill(
                installation.topic("notifications"), of: installation, Self.backlog,
                headers: [RecordHeader("schema", "notification/1")], notification)
            let scratch = try ScratchDirectory("memory")
            let apps = try scratch.write(
                #"[{"bundleId":"com.example.app","appAppleId":1,"entitlements":{"all":["a"]}}]"#, to: "apps.json")
            let worker = try ServiceProcess(
                [
                    "entitlements", "--state.directory", scratch.file("state"), "--worker.slot", "0", "--apps", apps,
                    "--state.cache.bytes", "\(Self.cacheBytes)",
                ] + installation.settings)
            try await worker.waitUntilReady()
            try await waitUntil("the backlog is dealt with", within: patience * 10) {
                try await worker.sum("perennial_records_consumed_total") >= Double(Self.backlog)
            }
            let peak = try worker.process.peakMemoryBytes()
            try await worker.stop()
            #expect(peak < Self.cacheBytes + (128 << 20), "\(peak >> 20) MiB")
            print("memory: \(peak >> 20) MiB at most while a backlog of \(Self.backlog) notifications was dealt with")
        }

        /// One for each subscription, of the size of Apple's.
        @Sendable private func notification(_ number: Int, _ name: String) -> (key: String, value: [UInt8]) {
            let begin: Int64 = 1_790_000_000_000
            let (day, end) = (begin + Int64(number % 1000), begin + 30 * 86_400_000)
            let filling = (0..<70).map { _ in String(UInt64.random(in: 0 ... .max), radix: 36) }.joined()
            let value = """
                {"v":1,"notificationUUID":"\(name)","notificationType":"SUBSCRIBED","subtype":"INITIAL_BUY",\
                "signedDate":\(day),"receivedDate":\(day),"source":"push","environment":"Production","filling":"\(filling)",\
                "transaction":{"transactionId":"\(name)","purchaseDate":\(day),"expiresDate":\(end),\
                "bundleId":"com.example.app","productId":"pro.monthly","type":"Auto-Renewable Subscription",\
                "inAppOwnershipType":"PURCHASED","price":9990,"currency":"USD","signedDate":\(day)},\
                "renewalInfo":{"autoRenewStatus":1,"renewalDate":\(end),"signedDate":\(day)}}
                """
            return (name, Array(value.utf8))
        }

        /// A state without timers, as a worker keeps it.
        @Sendable private func state(_ number: Int, _ name: String) -> (key: String, value: [UInt8]) {
            var value: [UInt8] = [1, 0] + Array(repeating: 0x20, count: Self.valueBytes)
            // The value cannot be compressed.
            for place in 2..<value.count where place % 16 == 0 { value[place] = UInt8.random(in: 0 ... .max) }
            return ("\u{1}" + name, value)
        }

        private func fill(
            _ topic: String, of installation: Installation, _ count: Int, headers: [RecordHeader] = [],
            _ record: @escaping @Sendable (Int, String) -> (key: String, value: [UInt8])
        ) async throws {
            try await blocking {
                var failures = 0
                let properties = installation.broker.properties
                let producer = try Producer(.init(clientID: "memory-test", properties: properties)) { report in
                    if report.failure != nil { failures += 1 }
                }
                defer { producer.close(by: Deadline(after: patience)) }
                let target = try producer.topic(topic)
                _ = try producer.partitionCounts(by: Deadline(after: patience))
                for number in 0..<count {
                    let name = "\(2_000_000_000_000_000 + number)"
                    let (key, value) = record(number, name)
                    while producer.outstanding >= 10_000 { producer.poll(.milliseconds(20)) }
                    try producer.send(
                        to: target,
                        partition: Partitioner.partition(of: Array(name.utf8), count: Int32(installation.partitions)),
                        key: Array(key.utf8).span, value: value.span, headers: headers)
                    producer.poll()
                }
                try producer.flush(by: Deadline(after: patience * 3))
                #expect(failures == 0)
            }
        }
    }
}
