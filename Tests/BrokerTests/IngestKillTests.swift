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
        /// New posts per second: enough that each kill hits some requests in flight.
        private static let rate = 40

        @Test
        func `killed at random, with its broker too, keeps all that it answered 200, under one key, byte for byte`()
            async throws
        {
            let rounds = killRounds
            let brokerRounds = max(1, rounds / 8)
            let cluster = try await KafkaCluster.start(BrokerSource.current.requireDistribution())
            let installation = try await Installation.make(
                "kills", Broker(bootstrap: cluster.bootstrapServers), partitions: 4)
            // About nine posts per subscriber.
            let store = try await MakeBelieveStore.open(telling: [
                // Some are posted twice, also some across midnight.
                "--from", "2025-06-01", "--seed", "7", "--subscribers", "\(rounds * 12)", "--environment", "both",
                "--duplicates", "5", "--reorder", "5", "--forgeries", "5",
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
            let total = try store.payloadCount()
            let simulator = try store.post(to: port, rate: Self.rate)
            var dice = Dice()
            for round in 1...rounds {
                // The number of answers decides, not time: so every machine is under load at the moment of the kill.
                let slice = total / (rounds + 1)
                let moment = slice * (round - 1) + Int.random(in: 0..<slice, using: &dice)
                try await waitUntil("\(moment) of \(total) posts are answered", within: patience) {
                    store.answerCount() >= moment
                }
                #expect(simulator.isRunning)
                if round % max(1, rounds / brokerRounds) == 0 {
                    try await cluster.broker.kill9()
                    try await cluster.broker.restart()
                }
                ingest.process.killNow()
                _ = try await ingest.process.wait()
                ingest = try await start()
            }
            // Exit code 1: some posts were given up, such as those of sandbox, which Apple sends only once.
            let ending = try await simulator.wait(within: .seconds(300))
            #expect([.exited(code: 0), .exited(code: 1)].contains(ending), "\(simulator.lastLines(10))")
            try await ingest.stop()
            try await judge(store, installation)
            await cluster.close()
        }

        @Test func `on a host that runs two minutes ahead takes nothing, says why, and works when the clock is set`()
            async throws
        {
            let installation = try await Installation.make("ingest-ahead", try await Broker.shared(), partitions: 1)
            let store = try await MakeBelieveStore.open(telling: ["--seed", "5", "--subscribers", "1"])
            let body = MakeBelieveStore.body(try store.payload("00000000.jws"))
            let host = try ShiftedHost(seconds: 120)
            let ingest = try ServiceProcess(
                ["ingest", "--ingest.plaintext", "true", "--ingest.listen", "127.0.0.1:0"]
                    // Ingest does not wait for the next tick that is due.
                    + ["--tick.interval.ms", "600000"] + store.ingestSettings + installation.settings,
                environment: host.environment)
            let port = try await ingest.port("ingest listens")
            // This is the only reason.
            try await waitUntil("the refused tick is reported", within: patience) {
                let reasons = try await ingest.reasons()
                return reasons.contains("this host's clock probably runs ahead") && !reasons.contains(#""kafka""#)
            }
            #expect(try await store.post(body: body, to: port) == 503)
            #expect(
                try await ingest.metric(
                    #"perennial_ingest_requests_total{outcome="clock_ahead",environment="",bundle=""}"#) == 1)
            let topic = installation.topic("notifications")
            #expect(try await installation.broker.readWhole(topic).isEmpty)
            host.shift(by: 0)
            #expect(try await store.post(body: body, to: port) == 200)
            try await ingest.waitUntilReady()
            let kept = try await installation.broker.readWhole(topic).filter { $0.header("schema") == "notification/1" }
            #expect(kept.count == 1)
            try await ingest.stop()
        }

        /// Compares what readers see with the answers that the sender got. Ingest itself is not asked.
        private func judge(_ store: MakeBelieveStore, _ installation: Installation) async throws {
            let answers = try store.answers()
            let posted = try store.payloadsByHash()
            var published: [String: Set<Place>] = [:]
            var archived: [String: Set<Place>] = [:]
            for environment in ["production", "sandbox"] {
                for record in try await installation.broker.readWhole(installation.topic("notifications", environment))
                {
                    guard record.header("schema") == "notification/1" else { continue }
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
                    // Outside of the expectation, which would print 20 KB.
                    let isSame = posted[hash] == record.value
                    #expect(isSame, "partition \(record.partition), offset \(record.offset) is not what was posted")
                    archived[hash, default: []].insert(Place(environment, record))
                }
            }
            #expect(published.values.allSatisfy { $0.count == 1 }, "a notification is under two keys")
            let rejected = try await rejectedHashes(installation)
            var accepted = 0
            for answer in answers where answer.status == 200 {
                guard answer.expected == "accepted" else {
                    #expect(
                        rejected.contains(answer.sha256), "\(answer.expected) was answered with 200 and is not stored")
                    continue
                }
                accepted += 1
                let place = try #require(published[answer.uuid], "\(answer.uuid) was answered with 200 and is lost")
                #expect(archived[answer.sha256] == place, "\(answer.uuid) is not archived beside its notification")
            }
            #expect(!answers.contains { $0.verdict == "wrong" }, "a forgery was taken, or refused for another reason")
            // Without any cases the judge would find nothing wrong.
            #expect(accepted > posted.count / 2, "\(accepted) of \(posted.count)")
        }

        /// Partition and offset of a record.
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

        /// The SHA-256 hashes of the signed texts in the stored bodies.
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
