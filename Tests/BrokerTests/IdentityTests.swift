import KafkaTestKit
import Platform
import Testing

extension RealBroker {
    /// A worker's identity: who owns the partitions, and what happens when two use one identity.
    @Suite(
        .serialized, .enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine))
    )
    struct `A worker's identity` {
        @Test
        func `without a slot leaves its partitions to the others when it stops, and nothing open when it is killed`()
            async throws
        {
            try await withLedger("dynamic") { group, fed in
                let dynamic = ["--slot", "dynamic", "--session", "45000"]
                let first = try group.start(0, dynamic)
                try await first.waitUntilLogged("partition 11 runs")
                let second = try group.start(1, dynamic)
                try await second.waitUntilLogged("runs")
                try await waitUntil("both own partitions", within: .seconds(30)) {
                    first.standardError.count(of: "partitions assigned") == 2
                        && second.standardError.count(of: " runs") >= 6
                }
                let begin = ContinuousClock.now
                #expect(try await first.terminate(within: .seconds(30)) == .exited(code: 0), "\(first.standardError)")
                try await waitUntil("the other owns all partitions", within: .seconds(30)) {
                    second.standardError.count(of: "partitions assigned") == 2
                        && second.standardError.count(of: " runs") >= 18
                }
                print("dynamic: the other had all partitions after \(begin.duration(to: .now))")
                // It comes back at once as a new member, with the disk of the member that has left.
                let third = try group.start(0, dynamic)
                try await third.waitUntilLogged("runs")
                try await second.waitUntilLogged("partitions assigned")
                return [second, third]
            }
        }

        @Test func `is not taken for another's when the broker stands still again and again`() async throws {
            try await withMortalBrokers { cluster in
                let kafka = cluster.kafka
                let servers = kafka.bootstrapServers
                let group = try await LedgerGroup.make("stalls", workers: servers, others: servers)
                let fed = Latch()
                async let feeding: Void = group.feed(perSecond: 300, seed: 1, until: fed)
                let workers = try (0..<2).map { try group.start($0, ["--session", "30000"]) }
                do {
                    for worker in workers { try await worker.waitUntilLogged("runs") }
                    for round in 0..<3 {
                        kafka.broker.suspend()
                        try await Task.sleep(for: .seconds(11))
                        kafka.broker.resume()
                        try await Task.sleep(for: .seconds(5))
                        for worker in workers where !worker.isRunning {
                            Issue.record("round \(round): \(worker.standardError.suffix(3000))")
                        }
                    }
                } catch {
                    fed.open()
                    throw error
                }
                fed.open()
                try await feeding
                try await group.waitUntilDone()
                for worker in workers {
                    print("stalls: \(worker.standardError.suffix(4000))")
                    #expect(try await worker.terminate(within: .seconds(30)) == .exited(code: 0))
                }
                let wrong = try await group.judge()
                if !wrong.isEmpty { try cluster.requireMarkers() }
                #expect(wrong.isEmpty, "\(wrong.prefix(3).joined(separator: "\n"))")
            }
        }
    }
}
