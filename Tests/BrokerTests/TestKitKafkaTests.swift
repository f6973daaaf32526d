import KafkaTestKit
import Platform
import Testing

/// What the broker says of a topic: the leaders of its partitions.
private func leaders(of topic: String, at port: UInt16) async throws -> [Int32] {
    try await onOwnThread("metadata") {
        try ClusterMetadata.ask(port: port, limit: .seconds(30)).partitions.filter { $0.topic == topic }.map(\.leader)
    }
}

private func firstPort(_ servers: String) throws -> UInt16 {
    try #require(servers.split(separator: ",").first?.split(separator: ":").last.flatMap { UInt16($0) })
}

extension `The test kit` {
    @Suite(.enabled(if: BrokerSource.current.isAvailable, "\(BrokerSource.skipLine)"))
    struct `with a shared Kafka` {
        @Test func `starts it once for all, and it answers`() async throws {
            async let first = SharedKafka.bootstrapServers()
            async let second = SharedKafka.bootstrapServers()
            let servers = try await first
            #expect(try await second == servers)
            if try await SharedKafka.cluster() != nil {
                let port = try firstPort(servers)
                let metadata = try await onOwnThread("metadata") {
                    try ClusterMetadata.ask(port: port, limit: .seconds(30))
                }
                #expect(metadata.brokers == [1])
            }
        }
    }

    @Suite(.enabled(if: BrokerSource.current.canStartBrokers, "\(BrokerSource.privateSkipLine)"))
    struct `with a private Kafka` {
        private func withKafka(
            _ change: (inout KafkaOptions) -> Void = { _ in }, _ body: (KafkaCluster) async throws -> Void
        ) async throws {
            var options = KafkaOptions()
            change(&options)
            let kafka = try await KafkaCluster.start(BrokerSource.current.requireDistribution(), options)
            do { try await body(kafka) } catch {
                await kafka.close()
                throw error
            }
            await kafka.close()
        }

        @Test func `keeps its topics over a restart and over kill -9, on the same ports`() async throws {
            try await withKafka { kafka in
                let port = try firstPort(kafka.bootstrapServers)
                try await kafka.tool("kafka-topics.sh", ["--create", "--topic", "kept", "--partitions", "3"])
                #expect(try await leaders(of: "kept", at: port) == [1, 1, 1])
                try await kafka.broker.restart()
                #expect(try await leaders(of: "kept", at: port) == [1, 1, 1])
                try await kafka.broker.kill9()
                #expect(!kafka.broker.isRunning)
                await #expect(throws: SystemFailure.self) { try await leaders(of: "kept", at: port) }
                try await kafka.broker.start()
                #expect(try await leaders(of: "kept", at: port) == [1, 1, 1])
                #expect(try await kafka.tool("kafka-topics.sh", ["--list"]) == "kept\n")
                await #expect(throws: KafkaTestFault.self) { try await kafka.broker.start() }
                await #expect { try await kafka.tool("kafka-topics.sh", ["--delete", "--topic", "none"]) } throws: {
                    "\($0)".contains("none")
                }
            }
        }

        @Test func `of three nodes takes and gives records while one is dead`() async throws {
            try await withKafka {
                $0.nodes = 3
            } _: { kafka in
                try await kafka.tool("kafka-topics.sh", ["--create", "--topic", "safe", "--partitions", "3"])
                try await kafka.brokers[1].kill9()
                let records = (1...100).map { "record \($0)\n" }.joined()
                try await kafka.tool(
                    "kafka-console-producer.sh", ["--topic", "safe"], stdin: records)
                try await kafka.brokers[1].start()
                try await kafka.brokers[0].kill9()
                let read = try await kafka.tool(
                    "kafka-console-consumer.sh", ["--topic", "safe", "--from-beginning", "--max-messages", "100"])
                #expect(Set(read.split(separator: "\n")) == Set(records.split(separator: "\n")))
            }
        }

        @Test func `refuses a wrong password and takes the right one`() async throws {
            try await withKafka {
                $0.credentials = .init(user: "app", password: "right")
            } _: { kafka in
                let port = try firstPort(#require(kafka.saslServers))
                #expect(try await authenticate("app", "right", at: port) == 0)
                // SASL_AUTHENTICATION_FAILED
                #expect(try await authenticate("app", "wrong", at: port) == 58)
                #expect(try await authenticate("other", "right", at: port) == 58)
            }
        }

        /// The error code of SaslAuthenticate.
        private func authenticate(_ user: String, _ password: String, at port: UInt16) async throws -> Int16 {
            try await onOwnThread("sasl") {
                var connection = try WireConnection(port: port, limit: .seconds(30))
                var mechanism = WireWriter()
                mechanism.string("PLAIN")
                let greeting = try connection.exchange(.saslHandshake, version: 1, body: mechanism.bytes)
                var reader = WireReader(greeting)
                let refusal = try reader.number(Int16.self)
                guard refusal == 0 else { return refusal }
                var token = WireWriter()
                token.block(Array("\0\(user)\0\(password)".utf8))
                reader = WireReader(try connection.exchange(.saslAuthenticate, version: 0, body: token.bytes))
                return try reader.number(Int16.self)
            }
        }

        @Test func `leads its clients through the proxy, which can make a request late`() async throws {
            try await withKafka {
                $0.throughProxy = true
            } _: { kafka in
                let proxy = try #require(kafka.proxy)
                let clients = kafka.distribution
                let bootstrap = ["--bootstrap-server", kafka.bootstrapServers, "--topic", "watched"]
                try await kafka.tool("kafka-topics.sh", ["--create", "--topic", "watched"])
                #expect(proxy.count(of: .metadata) == 0)
                let hold = proxy.hold(.metadata, client: .cut)
                try await clients.tool("kafka-console-producer.sh", bootstrap, stdin: "one\ntwo\n")
                let read = try await clients.tool(
                    "kafka-console-consumer.sh", bootstrap + ["--from-beginning", "--max-messages", "2"])
                #expect(read == "one\ntwo\n")
                #expect(proxy.count(of: .produce) >= 1)
                #expect(proxy.count(of: .fetch) >= 1)
                let request = try await hold.waitUntilHeld()
                let answer = try await hold.release()
                var reader = WireReader(answer.bytes)
                #expect(try reader.number(Int32.self) == request.correlationID)
                #expect(answer.bytes.count > 4)
            }
        }
    }
}
