import Kafka
import KafkaTestKit
import Ledger
import Log
import Platform
import Runtime
import Synchronization
import Testing

extension RealBroker {
    /// The runtime with real processes, a real Kafka and real disks.
    @Suite(
        .serialized, .enabled(if: BrokerSource.current.canStartBrokers, Comment(rawValue: BrokerSource.privateSkipLine))
    )
    struct `A worker of the runtime` {
        @Test func `under kills, freezes, lost disks, dying brokers and late requests writes what a plain fold says`()
            async throws
        {
            let wrong = try await Ordeal(rounds: killRounds, isTorn: false).run()
            #expect(wrong.isEmpty, "\(wrong.prefix(5).joined(separator: "\n"))")
        }

        /// The test above could not fail if this one passed without the transaction.
        @Test func `without transactions is caught by the same test`() async throws {
            let wrong = try await Ordeal(rounds: 3, isTorn: true).run()
            #expect(!wrong.isEmpty)
        }
    }
}

/// Three processes on twelve partitions, and what happens to them.
private struct Ordeal {
    let rounds: Int
    let isTorn: Bool

    /// What is wrong with the outputs.
    func run() async throws -> [String] {
        var options = KafkaOptions()
        options.throughProxy = true
        let cluster = try await KafkaCluster.start(BrokerSource.current.requireDistribution(), options)
        let group = try await LedgerGroup.make(
            "ordeal", workers: cluster.bootstrapServers, others: cluster.internalServers)
        let fed = Latch()
        let healed = Latch()
        var dice = Dice()
        let seed = UInt64.random(in: 0 ... .max, using: &dice)
        async let feeding: Void = group.feed(perSecond: isTorn ? 2000 : 400, seed: seed, until: fed)
        let proxy = try #require(cluster.proxy)
        async let holding: Void = hold(.endTxn, proxy, seed, until: healed)
        async let holdingOffsets: Void = hold(.txnOffsetCommit, proxy, seed + 1, until: healed)
        let more = isTorn ? ["--transactions", "no"] : []
        var workers = try (0..<3).map { try group.start($0, more) }
        try await Task.sleep(for: .seconds(4))
        for round in 0..<rounds {
            try await play(round, &workers, group, cluster, more, &dice)
        }
        healed.open()
        try await holding
        try await holdingOffsets
        for slot in workers.indices where !workers[slot].isRunning { workers[slot] = try group.start(slot, more) }
        fed.open()
        try await feeding
        try await group.waitUntilDone()
        for worker in workers {
            let ending = try await worker.terminate(within: .seconds(30))
            #expect(ending == .exited(code: 0), "\(worker.standardError.suffix(3000))")
        }
        let wrong = try await group.judge()
        if !wrong.isEmpty && !isTorn {
            for worker in workers { print(worker.standardError.suffix(5000)) }
        }
        await cluster.close()
        return wrong
    }

    private func play(
        _ round: Int, _ workers: inout [ChildProcess], _ group: LedgerGroup, _ cluster: KafkaCluster, _ more: [String],
        _ dice: inout Dice
    ) async throws {
        let slot = Int.random(in: 0..<3, using: &dice)
        try await Task.sleep(for: .milliseconds(Int.random(in: 200...2500, using: &dice)))
        // Without transactions a kill is what shows; nothing else is needed.
        switch isTorn ? 0 : Int.random(in: 0..<10, using: &dice) {
        case 0..<4:
            print("round \(round): kill \(slot)")
            workers[slot].killNow()
            _ = try await workers[slot].wait()
            // Often back within the session, sometimes long after it.
            if Int.random(in: 0..<3, using: &dice) == 0 { try await Task.sleep(for: .seconds(8)) }
            workers[slot] = try group.start(slot, more)
        case 4..<6:
            print("round \(round): freeze \(slot)")
            workers[slot].suspend()
            try await Task.sleep(for: .milliseconds(Int.random(in: 7000...9000, using: &dice)))
            workers[slot].resume()
        case 6:
            print("round \(round): the broker dies")
            try await cluster.broker.kill9()
            try await cluster.broker.start()
        case 7:
            print("round \(round): \(slot) loses its disk")
            workers[slot].killNow()
            _ = try await workers[slot].wait()
            try group.loseDisk(of: slot)
            workers[slot] = try group.start(slot, more)
        default:
            print("round \(round): rolling restart")
            for slot in 0..<3 {
                let ending = try await workers[slot].terminate(within: .seconds(30))
                #expect(ending == .exited(code: 0), "\(workers[slot].standardError.suffix(3000))")
                workers[slot] = try group.start(slot, more)
                try await Task.sleep(for: .milliseconds(500))
            }
        }
        // One whose slot seemed to be taken twice has ended itself; somebody starts it again.
        for slot in workers.indices where !workers[slot].isRunning {
            print("round \(round): \(slot) had ended: \(Self.lastWords(workers[slot]))")
            workers[slot] = try group.start(slot, more)
        }
    }

    /// What a process said before it ended; a backtrace is long.
    private static func lastWords(_ worker: ChildProcess) -> String {
        let lines = worker.standardError.split(separator: "\n")
        let trap = lines.firstIndex { $0.contains("rashed") || $0.contains("Fatal error") } ?? max(0, lines.count - 3)
        return lines[max(0, trap - 3)..<min(lines.count, trap + 40)].joined(separator: "\n")
    }

    /// Holds two of a hundred requests back and lets them go within ten seconds, whether anybody still waits for them or not.
    private func hold(_ api: KafkaAPI, _ proxy: FrameProxy, _ seed: UInt64, until end: Latch) async throws {
        let dice = Mutex(SeededDice(seed))
        while !end.isOpen {
            let hold = proxy.hold(api, client: dice.withLock { $0.number(below: 2) } == 0 ? .keepOpen : .cut) { _ in
                dice.withLock { $0.number(below: 50) } == 0
            }
            while hold.request == nil, !end.isOpen { try await Task.sleep(for: .milliseconds(50)) }
            if hold.request != nil {
                let wait = dice.withLock { $0.number(below: 9000) }
                try await Task.sleep(for: .milliseconds(Int(wait)))
                // Its broker may have died in the meantime.
                _ = try? await hold.release(within: .seconds(5))
            }
            hold.discard()
        }
    }
}
