import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    @Suite(.serialized) struct `The clock` {
        /// Short enough for a test, and long enough that a busy machine does not miss a whole interval.
        private static let interval = 1_000

        private func startClock(_ installation: Installation, environment: [String: String] = [:]) throws
            -> ServiceProcess
        {
            try ServiceProcess(
                ["clock", "--tick.interval.ms", "\(Self.interval)"] + installation.settings
                    // The group notices a killed member sooner than in production.
                    + ["--kafka.consumer.session.timeout.ms", "3000", "--kafka.consumer.heartbeat.interval.ms", "300"],
                environment: environment)
        }

        /// How many partitions of each topic a clock was last assigned, from its log.
        private func share(of clock: ServiceProcess) -> [Substring: Int] {
            var shares: [Substring: Int] = [:]
            for line in clock.log.split(separator: "\n") {
                guard let given = line.firstMatch(of: #/"ticking","topic":"([^"]*)","partitions":([0-9]+)/#) else {
                    continue
                }
                shares[given.1] = Int(given.2)
            }
            return shares
        }

        /// For each partition of both environments, the timestamps in the order of the log. Every record is checked to be a tick.
        private func ticks(_ installation: Installation) async throws -> [TopicPartition: [Int64]] {
            var times: [TopicPartition: [Int64]] = [:]
            for environment in ["production", "sandbox"] {
                let topic = installation.topic("notifications", environment)
                for record in try await installation.broker.read(topic) {
                    let time = try #require(record.timestamp)
                    times[TopicPartition(topic, record.partition), default: []].append(time)
                    guard record.header("schema") != "notification/1" else { continue }
                    #expect(record.text == #"{"v":1,"tick":\#(time)}"#)
                    #expect(record.header("schema") == "tick/1")
                    #expect(record.header("schema") == "tick/1")
                    #expect(record.header("id") == "tick-\(record.partition)-\(time)")
                    #expect(record.header("app")?.hasPrefix("perennial/") == true)
                }
            }
            return times
        }

        /// Writes a notification into each partition of sandbox. Without one they get no ticks.
        private func notifySandbox(_ installation: Installation) async throws {
            let (broker, topic) = (installation.broker, installation.topic("notifications", "sandbox"))
            try await blocking {
                let producer = try Producer(.init(clientID: "sandbox", properties: broker.properties)) { _ in }
                let target = try producer.topic(topic)
                for partition in 0..<Int32(installation.partitions) {
                    try producer.send(
                        to: target, partition: partition, key: [1].span, value: [1].span,
                        headers: [RecordHeader("schema", "notification/1")], timestamp: WallClock.milliseconds())
                }
                producer.close(by: Deadline(after: patience))
            }
        }

        private func waitForTicks(_ count: Int, _ installation: Installation) async throws {
            try await waitUntil("\(count) ticks in each partition", within: patience) {
                let times = try await ticks(installation)
                return times.count == 2 * installation.partitions && times.values.allSatisfy { $0.count >= count }
            }
        }

        /// - Parameter longest: the longest time allowed between two records of a partition.
        private func expectOneInEachInterval(
            _ times: [TopicPartition: [Int64]], longest: Int64, _ sourceLocation: SourceLocation = #_sourceLocation
        ) {
            for (partition, times) in times {
                for (earlier, later) in zip(times, times.dropFirst()) {
                    #expect(
                        later - earlier >= Self.interval, "\(partition) was ticked twice in an interval",
                        sourceLocation: sourceLocation)
                    #expect(
                        later - earlier <= longest, "\(partition) was not ticked in time",
                        sourceLocation: sourceLocation)
                }
            }
        }

        @Test
        func `of three replicas ticks each quiet partition once in an interval, whoever dies, stands still or leaves`()
            async throws
        {
            let installation = try await Installation.make("ticks", try await Broker.shared(), partitions: 5)
            try await notifySandbox(installation)
            let clocks = try (0..<3).map { _ in try startClock(installation) }
            for clock in clocks { try await clock.waitUntilReady() }
            try await waitUntil("all three own partitions", within: patience) {
                let shares = clocks.map { share(of: $0) }
                return shares.allSatisfy { $0.values.allSatisfy { $0 > 0 } }
                    && shares.flatMap(\.values).reduce(0, +) == 2 * installation.partitions
            }
            let start = WallClock.milliseconds()
            try await waitForTicks(6, installation)
            let stable = try await ticks(installation).mapValues { $0.filter { $0 >= start } }
            expectOneInEachInterval(stable, longest: 2 * Int64(Self.interval))

            clocks[0].process.killNow()
            let reached = try await ticks(installation).values.map(\.count).max() ?? 0
            try await waitForTicks(reached + 3, installation)
            // One of them wakes up after its session has ended and believes for a moment that it still owns its partitions.
            clocks[1].process.suspend()
            try await waitForTicks(reached + 6, installation)
            clocks[1].process.resume()
            try await waitForTicks(reached + 9, installation)
            try await clocks[2].stop()
            try await waitForTicks(reached + 12, installation)
            try await clocks[1].stop()
            // Time for the session and the rebalance on a busy machine.
            expectOneInEachInterval(try await ticks(installation), longest: Int64(Self.interval) + 15_000)
        }

        @Test func `does not tick where notifications come, and ticks when they stop`() async throws {
            let broker = try await Broker.shared()
            let installation = try await Installation.make("busy", broker, partitions: 1)
            let clock = try startClock(installation)
            try await clock.waitUntilReady()
            let topic = installation.topic("notifications")
            let written = try await blocking {
                let producer = try Producer(.init(clientID: "busy", properties: broker.properties)) { _ in }
                let target = try producer.topic(topic)
                var times: [(sent: Int64, acknowledged: Int64)] = []
                for _ in 0..<20 {
                    let sent = WallClock.milliseconds()
                    try producer.send(
                        to: target, partition: 0, key: nil, value: [1].span,
                        headers: [RecordHeader("schema", "notification/1")], timestamp: sent)
                    try producer.flush(by: Deadline(after: patience))
                    times.append((sent, WallClock.milliseconds()))
                    pause(for: .milliseconds(Self.interval / 4))
                }
                producer.close(by: Deadline(after: patience))
                return times
            }
            let last = try #require(written.last).sent
            try await waitUntil("a tick after the last notification", within: patience) {
                try await ticks(installation)[TopicPartition(topic, 0)]?.last.map { $0 > last } ?? false
            }
            let between = try await broker.read(topic).filter {
                let time = $0.timestamp ?? 0
                return $0.header("schema") == "tick/1" && time > written[0].acknowledged && time <= last
            }
            // On a busy machine the partition may have been silent for an interval: at most from the sending of one
            // notification to the acknowledgement of the next.
            let allowed = zip(written, written.dropFirst()).map { ($1.acknowledged - $0.sent) / Int64(Self.interval) }
            #expect(between.count <= allowed.reduce(0, +))
            let first = try await ticks(installation)[TopicPartition(topic, 0)]?.first { $0 > last }
            #expect(try #require(first) - last >= Self.interval)
            try await clock.stop()
        }

        @Test func `leaves partitions of sandbox alone in which nothing came for a day`() async throws {
            let broker = try await Broker.shared()
            let installation = try await Installation.make("quiet", broker, partitions: 3)
            let topic = installation.topic("notifications", "sandbox")
            let now = WallClock.milliseconds()
            // Partition 0 holds nothing, partition 1 a notification of two days ago and a tick of yesterday, partition 2 a
            // notification of two hours ago and a tick.
            let records: [(partition: Int32, key: [UInt8]?, age: Int64)] = [
                (1, [1], 48), (1, nil, 23), (2, [1], 2), (2, nil, 1),
            ]
            try await blocking {
                let producer = try Producer(.init(clientID: "quiet", properties: broker.properties)) { _ in }
                let target = try producer.topic(topic)
                for record in records {
                    try producer.send(
                        to: target, partition: record.partition, key: record.key?.span, value: [1].span,
                        headers: [], timestamp: now - record.age * 3_600_000)
                }
                producer.close(by: Deadline(after: patience))
            }
            let clock = try startClock(installation)
            try await clock.waitUntilReady()
            let production = installation.topic("notifications", "production")
            try await waitUntil("ticks of production, and of the one that lives", within: patience) {
                let ticks = try await broker.read(topic).filter { $0.header("schema") == "tick/1" }
                let others = try await broker.read(production)
                return ticks.count > 3 && others.count > 9
            }
            let ticked = Set(try await broker.read(topic).filter { $0.header("schema") == "tick/1" }.map(\.partition))
            #expect(ticked == [2])
            try await clock.stop()
        }

        @Test func `of a host that runs two minutes ahead writes nothing, says why, and harms nobody`() async throws {
            let broker = try await Broker.shared()
            let installation = try await Installation.make("ahead", broker, partitions: 3)
            try await notifySandbox(installation)
            let host = try ShiftedHost(seconds: 120)
            let wrong = try startClock(installation, environment: host.environment)
            try await waitUntil("the reason is reported", within: patience) {
                try await wrong.reasons().contains("this host's clock probably runs ahead")
            }
            let right = try startClock(installation)
            try await right.waitUntilReady()
            try await waitForTicks(5, installation)
            #expect(try await wrong.reasons().contains("this host's clock probably runs ahead"))
            let times = try await ticks(installation)
            #expect(times.values.joined().allSatisfy { $0 <= WallClock.milliseconds() })
            // Each attempt of the wrong one takes the partitions away from both for a moment.
            expectOneInEachInterval(times, longest: Int64(Self.interval) + 15_000)
            try await right.stop()
            host.shift(by: 0)
            try await wrong.waitUntilReady()
            let reached = try await ticks(installation).values.map(\.count).max() ?? 0
            try await waitForTicks(reached + 2, installation)
            try await wrong.stop()
        }

        @Test func `is not ready without its topics, names them, and begins when they are made`() async throws {
            let installation = Installation(
                broker: try await Broker.shared(), prefix: "late-\(UInt32.random(in: 0 ... .max))", partitions: 2)
            let clock = try startClock(installation)
            let missing = installation.topic("notifications", "sandbox")
            try await waitUntil("the reason is reported", within: patience) {
                try await clock.reasons().contains("the topic \(missing) is missing: run perennial topics apply")
            }
            try await installation.makeTopics()
            try await notifySandbox(installation)
            try await clock.waitUntilReady()
            try await waitForTicks(1, installation)
            try await clock.stop()
        }

        // Joining may take two and a half minutes.
        @Test(.enabled(if: killRounds > 8, "takes three minutes, so it runs only at full length"))
        func `that cannot join its group is not ready alone, and leaves an ingest ready that takes what comes`()
            async throws
        {
            let installation = try await Installation.make("groupless", try await Broker.shared(), partitions: 1)
            let store = try await MakeBelieveStore.open(telling: ["--seed", "5", "--subscribers", "1"])
            // An hour is more than brokers let a member be silent.
            let refused = ["session.timeout.ms", "max.poll.interval.ms"].flatMap {
                ["--kafka.consumer.\($0)", "3600000"]
            }
            let clock = try ServiceProcess(["clock"] + installation.settings + refused)
            let ingest = try ServiceProcess(
                ["ingest", "--ingest.plaintext", "true", "--ingest.listen", "127.0.0.1:0"] + store.ingestSettings
                    + installation.settings + refused)
            for process in [clock, ingest] {
                try await waitUntil("it reports that nothing ticks", within: patience * 4) {
                    process.log.contains(#""not ticking""#)
                }
            }
            try await ingest.waitUntilReady()
            #expect(try await ingest.metric(#"perennial_clock_working{environment="production"}"#) == 0)
            #expect(try await clock.reasons().contains(#""condition":"clock""#))
            let body = MakeBelieveStore.body(try store.payload("00000000.jws"))
            let port = try await ingest.port("ingest listens")
            try await waitUntil("a post is accepted", within: patience) {
                try await store.post(body: body, to: port) == 200
            }
            #expect(try await ingest.reasons().isEmpty)
            try await ingest.stop()
            try await clock.stop()
        }

        @Test func `refuses topics with another number of partitions`() async throws {
            let made = try await Installation.make("count", try await Broker.shared(), partitions: 2)
            let clock = try startClock(Installation(broker: made.broker, prefix: made.prefix, partitions: 3))
            try await waitUntil("the reason is reported", within: patience) {
                try await clock.reasons().contains("has 2 partitions and the setting partitions says 3")
            }
            #expect(try await ticks(made).isEmpty)
            try await clock.stop()
        }
    }
}
