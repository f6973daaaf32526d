import Kafka
import KafkaTestKit
import Log
import Platform
import Testing

extension RealBroker {
    @Suite(.serialized) struct `Workers` {
        @Test func `going from one to three to two lose and repeat nothing, and equal partitions have one owner`()
            async throws
        {
            let group = try await WorkerGroup.make("scale", try await Broker.shared(), partitions: 6)
            let count = 3_000
            var workers = [try group.startWorker(slot: 0)]
            async let fed: Void = group.feed(count: count)
            try await group.waitUntilShared(by: workers)
            workers.append(try group.startWorker(slot: 1))
            workers.append(try group.startWorker(slot: 2))
            try await group.waitUntilShared(by: workers)
            // The worker to remove is killed in the middle of its work: the others wait for its session to end.
            workers[1].killNow()
            _ = try await workers[1].wait()
            try await group.waitUntilShared(by: [workers[0], workers[2]])
            try await fed
            try await group.waitUntilCopied(count: count, by: [workers[0], workers[2]])
            for worker in [workers[0], workers[2]] {
                #expect(try await worker.terminate(within: .seconds(30)) == .exited(code: 0), "\(worker.standardError)")
            }
            group.expectCoPartitioned(workers)
            try await group.expectExactCopy(count: count)
        }

        @Test func `killed again and again at random lose and repeat nothing`() async throws {
            let group = try await WorkerGroup.make("kill", try await Broker.shared(), partitions: 4)
            let count = 4_000
            let rounds = killRounds
            // Static members: a worker that is back within the session timeout has its partitions at once.
            var workers = try (0..<2).map { try group.startWorker(slot: $0, isStatic: true) }
            async let fed: Void = group.feed(count: count, chunk: count / rounds / 8, every: .milliseconds(60))
            try await group.waitUntilShared(by: workers)
            var dice = Dice()
            for _ in 0..<rounds {
                let slot = Int.random(in: 0..<2, using: &dice)
                try await Task.sleep(for: .milliseconds(Int.random(in: 20...700, using: &dice)))
                workers[slot].killNow()
                _ = try await workers[slot].wait()
                workers[slot] = try group.startWorker(slot: slot, isStatic: true)
                let restarted = workers[slot]
                try await waitUntil("the worker is back", within: patience) {
                    restarted.standardOutput.contains("started")
                }
            }
            try await fed
            try await group.waitUntilCopied(count: count, by: workers)
            for worker in workers {
                #expect(try await worker.terminate(within: .seconds(30)) == .exited(code: 0), "\(worker.standardError)")
            }
            try await group.expectExactCopy(count: count)
        }

        @Test func `frozen beyond their session wake up to lose and repeat nothing`() async throws {
            let group = try await WorkerGroup.make("freeze", try await Broker.shared(), partitions: 4)
            let count = 2_000
            let workers = try (0..<2).map { try group.startWorker(slot: $0) }
            async let fed: Void = group.feed(count: count, chunk: 20)
            try await group.waitUntilShared(by: workers)
            workers[0].suspend()
            // Longer than the session of six seconds: the other worker takes over all partitions.
            try await waitUntil("the other worker owns everything", within: patience) {
                WorkerGroup.assignment(of: workers[1]).count == 8
            }
            workers[0].resume()
            try await group.waitUntilShared(by: workers)
            try await fed
            try await group.waitUntilCopied(count: count, by: workers)
            for worker in workers {
                #expect(try await worker.terminate(within: .seconds(30)) == .exited(code: 0), "\(worker.standardError)")
            }
            try await group.expectExactCopy(count: count)
        }
    }

    @Suite(
        .serialized, .enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine))
    )
    struct `A broker that dies` {
        @Test func `in the middle of transactions and comes back loses and repeats nothing`() async throws {
            try await withMortalBrokers { cluster in
                let broker = Broker(bootstrap: cluster.kafka.bootstrapServers)
                let group = try await WorkerGroup.make("broker", broker, partitions: 4)
                let count = 2_000
                let worker = try group.startWorker(slot: 0)
                async let fed: Void = group.feed(count: count, chunk: 25)
                try await group.waitUntilShared(by: [worker])
                var dice = Dice()
                for _ in 0..<2 {
                    try await Task.sleep(for: .milliseconds(Int.random(in: 200...900, using: &dice)))
                    try await cluster.kafka.broker.kill9()
                    try await cluster.kafka.broker.restart()
                }
                try await fed
                try await group.waitUntilCopied(count: count, by: [worker])
                let ending = try await worker.terminate(within: .seconds(30))
                try cluster.requireMarkers()
                #expect(ending == .exited(code: 0), "\(worker.standardError)")
                try await group.expectExactCopy(count: count)
            }
        }

        @Test func `as one of three under load loses and repeats nothing`() async throws {
            var options = KafkaOptions()
            options.nodes = 3
            let cluster = try await KafkaCluster.start(BrokerSource.current.requireDistribution(), options)
            let broker = Broker(bootstrap: cluster.bootstrapServers)
            let group = try await WorkerGroup.make("three", broker, partitions: 4, replicationFactor: 3)
            let count = 2_000
            let worker = try group.startWorker(slot: 0)
            async let fed: Void = group.feed(count: count, chunk: 25)
            try await group.waitUntilShared(by: [worker])
            var dice = Dice()
            try await Task.sleep(for: .milliseconds(Int.random(in: 200...900, using: &dice)))
            let lost = cluster.brokers[Int.random(in: 0..<3, using: &dice)]
            try await lost.kill9()
            // Two brokers carry the remaining load.
            try await fed
            try await group.waitUntilCopied(count: count, by: [worker])
            #expect(!lost.isRunning)
            #expect(try await worker.terminate(within: .seconds(30)) == .exited(code: 0), "\(worker.standardError)")
            // Every partition has a leader all the time.
            #expect(!cluster.hasSkippedMarkers)
            try await group.expectExactCopy(count: count)
            await cluster.close()
        }
    }
}
