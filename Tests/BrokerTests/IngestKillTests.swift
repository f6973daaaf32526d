import Crypto
import Foundation
import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    @Suite(
        .serialized, .enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine))
    )
    struct `Ingest under load` {
        /// New posts a second: so many are on their way at any moment that each kill hits some.
        private static let rate = 60

        @Test
        func `killed at random, with its broker too, keeps all that it answered 200, under one key, byte for byte`()
            async throws
        {
            let rounds = killRounds
            let brokerRounds = max(1, rounds / 8)
            let cluster = try await KafkaCluster.start(BrokerSource.current.requireDistribution())
            let installation = try await Installation.make(
                "kills", Broker(bootstrap: cluster.bootstrapServers), partitions: 4)
            // About thirteen notifications a subscriber, and three seconds a kill.
            let store = try await MakeBelieveStore.open(telling: [
                "--seed", "7", "--subscribers", "\(rounds * 15)", "--environment", "both", "--duplicates", "5",
                "--reorder", "5", "--forgeries", "5",
            ])
            let port = try Ports.free()
            func start() async throws -> ServiceProcess {
                let ingest = try ServiceProcess(
                    ["ingest", "--ingest.plaintext", "true", "--ingest.listen", "127.0.0.1:\(port)"]
                        + store.ingestSettings + installation.settings)
                try await ingest.waitUntilReady()
                return ingest
            }
            var ingest = try await start()
            let simulator = try store.post(to: port, rate: Self.rate)
            var dice = Dice()
            for round in 1...rounds {
                try await Task.sleep(for: .milliseconds(Int.random(in: 100...1500, using: &dice)))
                ingest.process.killNow()
                _ = try await ingest.process.wait()
                ingest = try await start()
                guard round % max(1, rounds / brokerRounds) == 0 else { continue }
                try await Task.sleep(for: .milliseconds(Int.random(in: 100...800, using: &dice)))
                try await cluster.broker.kill9()
                try await cluster.broker.restart()
            }
            #expect(simulator.isRunning, "the load ended before the kills: \(simulator.lastLines(5))")
            let ending = try await simulator.wait(within: .seconds(300))
            #expect(ending == .exited(code: 0), "\(simulator.lastLines(10))")
            try await ingest.stop()
            try await judge(store, installation)
            await cluster.close()
        }

        /// What readers see, against what the sender was told. Nothing of ingest is asked.
        private func judge(_ store: MakeBelieveStore, _ installation: Installation) async throws {
            let answers = try store.answers()
            let posted = try store.payloadsByHash()
            var published: [String: Set<Place>] = [:]
            var archived: [String: Set<Place>] = [:]
            for environment in ["production", "sandbox"] {
                for record in try await installation.broker.readWhole(installation.topic("notifications", environment))
                {
                    guard record.header("type") == "notification" else { continue }
                    let json = try #require(
                        try JSONSerialization.jsonObject(with: Data(record.value)) as? [String: Any])
                    let uuid = try #require(json["notificationUUID"] as? String)
                    #expect(record.header("id") == uuid)
                    let evidence = try #require(json["evidence"] as? [String: Any])
                    #expect(posted[try #require(evidence["sha256"] as? String)] != nil, "nobody posted \(uuid)")
                    published[uuid, default: []].insert(Place(environment, record))
                }
                for record in try await installation.broker.readWhole(installation.topic("signed", environment)) {
                    let hash = hexadecimal(SHA256.digest(record.value.span))
                    #expect(posted[hash] == record.value, "not what was posted")
                    archived[hash, default: []].insert(Place(environment, record))
                }
            }
            #expect(published.values.allSatisfy { $0.count == 1 }, "a notification is under two keys")
            let rejected = try await rejectedHashes(installation)
            var accepted = 0
            for answer in answers where answer.status == 200 {
                guard answer.expected == "accepted" else {
                    #expect(rejected.contains(answer.sha256), "\(answer.expected) was answered 200 and is not kept")
                    continue
                }
                accepted += 1
                let place = try #require(published[answer.uuid], "\(answer.uuid) was answered 200 and is lost")
                #expect(archived[answer.sha256] == place, "\(answer.uuid) is not archived beside its notification")
            }
            // The oracle must not be empty: nearly all were taken in the end.
            #expect(accepted * 10 > posted.count * 8, "\(accepted) of \(posted.count)")
        }

        /// Where a record lies.
        private struct Place: Hashable {
            let environment: String
            let partition: Int32
            let key: [UInt8]?

            init(_ environment: String, _ record: WholeRecord) {
                self.environment = environment
                partition = record.partition
                key = record.key
            }
        }

        /// Of the signed texts in the bodies that were kept.
        private func rejectedHashes(_ installation: Installation) async throws -> Set<String> {
            var hashes: Set<String> = []
            for environment in ["production", "sandbox"] {
                for record in try await installation.broker.readWhole(installation.topic("rejected", environment)) {
                    #expect(record.key == Array(hexadecimal(SHA256.digest(record.value.span)).utf8))
                    guard let json = try JSONSerialization.jsonObject(with: Data(record.value)) as? [String: Any],
                        let signed = json["signedPayload"] as? String
                    else { continue }
                    hashes.insert(hexadecimal(SHA256.digest(Array(signed.utf8).span)))
                }
            }
            return hashes
        }
    }
}

/// A record with all its bytes.
struct WholeRecord: Sendable {
    let partition: Int32
    let offset: Int64
    let key: [UInt8]?
    let value: [UInt8]
    let timestamp: Int64?
    let headers: [RecordHeader]

    init(_ record: borrowing ConsumedRecord) {
        partition = record.partition
        offset = record.offset
        key = record.copyOfKey()
        value = record.copyOfValue() ?? []
        timestamp = record.timestamp
        headers = record.headers
    }

    func header(_ name: String) -> String? {
        headers.first { $0.name == name }?.value.map { String(decoding: $0, as: UTF8.self) }
    }
}
