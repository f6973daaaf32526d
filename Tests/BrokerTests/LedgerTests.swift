import Kafka
import KafkaTestKit
import Ledger
import Log
import Platform
import RDKafkaTestKit
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
            try await withMortalBrokers(Ordeal.options) { cluster in
                let wrong = try await Ordeal(rounds: killRounds, isTorn: false).run(on: cluster.kafka)
                if !wrong.isEmpty { try cluster.requireMarkers() }
                #expect(wrong.isEmpty, "\(wrong.prefix(5).joined(separator: "\n"))")
            }
        }

        /// If this test passed without the transaction, the test above could not fail.
        @Test func `without transactions is caught by the same test`() async throws {
            let cluster = try await KafkaCluster.start(BrokerSource.current.requireDistribution(), Ordeal.options)
            let wrong = try await Ordeal(rounds: killRounds, isTorn: true).run(on: cluster)
            #expect(!wrong.isEmpty)
            await cluster.close()
        }

        @Test func `that shares its slot with another ends within a minute and says so, and the other goes on`()
            async throws
        {
            try await withLedger("slot") { group, fed in
                let first = try group.start(0, directory: "\(group.scratch.path)/one")
                try await first.waitUntilLogged("runs")
                let second = try group.start(0, directory: "\(group.scratch.path)/two")
                try await waitUntil("one of them has ended", within: .seconds(60)) {
                    !first.isRunning || !second.isRunning
                }
                let (loser, winner) = first.isRunning ? (second, first) : (first, second)
                #expect(
                    loser.standardError.contains(
                        "another process uses the identity \(group.ledger.definition.group).0-0"))
                #expect(loser.standardError.contains("worker.slot"))
                #expect(try await loser.wait() == .exited(code: 3))
                try await Task.sleep(for: .seconds(3))
                #expect(winner.isRunning, "\(winner.standardError.suffix(2000))")
                print("loser: \(loser.standardError.suffix(8000))")
                return [winner]
            }
        }

        @Test func `of an older build refuses newer state, and the newer one goes on where it was`() async throws {
            try await withLedger("formats") { group, fed in
                var workers = try (0..<2).map { try group.start($0) }
                for worker in workers { try await worker.waitUntilLogged("runs") }
                func roll(_ slot: Int, to format: String) async throws {
                    #expect(try await workers[slot].terminate(within: .seconds(30)) == .exited(code: 0))
                    workers[slot] = try group.start(slot, ["--format", format])
                }
                for slot in 0..<2 {
                    try await roll(slot, to: "2")
                    try await workers[slot].waitUntilLogged("runs")
                }
                let rolled = workers
                try await waitUntil("every partition runs", within: patience) {
                    rolled.allSatisfy { $0.standardError.count(of: " runs") >= 6 }
                }
                // Long enough that every partition has been written in the new format.
                try await Task.sleep(for: .seconds(4))
                try await roll(0, to: "1")
                try await workers[0].waitUntilLogged("written by a later build")
                #expect(!workers[0].standardError.contains(" runs"), "it works on state that it cannot read")
                try await Task.sleep(for: .seconds(1))
                try await roll(0, to: "2")
                try await workers[0].waitUntilLogged("runs")
                return workers
            }
        }

        @Test func `whose group's offsets are forgotten goes on where it was`() async throws {
            let cluster = try #require(try await SharedKafka.cluster())
            try await withLedger("forgotten") { group, fed in
                let worker = try group.start(0)
                try await worker.waitUntilLogged("runs")
                try await Task.sleep(for: .seconds(2))
                #expect(try await worker.terminate(within: .seconds(30)) == .exited(code: 0))
                // A member that has just left still counts as a member.
                try await waitUntil("the group is deleted", within: patience) {
                    do {
                        let output = try await cluster.tool(
                            "kafka-consumer-groups.sh", ["--delete", "--group", group.ledger.definition.group])
                        return output.contains("was successful")
                    } catch {
                        print("the group is not deleted yet: \(error)")
                        return false
                    }
                }
                let again = try group.start(0)
                try await again.waitUntilLogged("runs")
                return [again]
            }
        }

        @Test
        func `beside a frozen one that keeps their stores locked restores its partitions into a place of its own`()
            async throws
        {
            try await withLedger("locked") { group, fed in
                let shared = "\(group.scratch.path)/shared"
                let first = try group.start(0, directory: shared)
                try await first.waitUntilLogged("partition 11 runs")
                let second = try group.start(1, directory: shared)
                try await second.waitUntilLogged("partition 11 runs")
                first.suspend()
                // The session of six seconds, and ten more for waiting at the lock.
                try await waitUntil("all partitions run", within: .seconds(60)) {
                    (0..<12).allSatisfy { second.standardError.contains("partition \($0) runs") }
                }
                #expect(second.standardError.contains("partition 0 is restored into its own directory"))
                #expect(second.standardError.contains("is locked by process \(first.processID)"))
                first.resume()
                return [first, second]
            }
        }

        @Test func `goes on when somebody gives its input more partitions, and says that it leaves them alone`()
            async throws
        {
            try await withLedger("grown") { group, fed in
                let first = try group.start(0)
                try await first.waitUntilLogged("partition 11 runs")
                let input = group.ledger.definition.events.topic
                try await blocking {
                    try growTopic(input, to: 14, at: group.bootstrap, within: patience)
                }
                #expect(try await first.terminate(within: .seconds(30)) == .exited(code: 0))
                let second = try group.start(0)
                try await second.waitUntilLogged("partition 11 runs")
                #expect(second.standardError.contains("the topic \(input) now has 14 partitions"))
                return [second]
            }
        }

        @Test func `that is restarted with its disk restores nothing and disturbs nobody`() async throws {
            try await withLedger("rolling") { group, fed in
                var workers = try (0..<3).map { try group.start($0, ["--session", "20000"]) }
                // All three own partitions.
                for worker in workers { try await worker.waitUntilLogged("partition 11 runs", orEndsWith: 4) }
                // The others may hear of the same assignment a little later than the last one.
                try await Task.sleep(for: .seconds(3))
                let before = workers.map { $0.standardError.count(of: "partitions assigned") }
                for slot in 0..<3 {
                    #expect(try await workers[slot].terminate(within: .seconds(30)) == .exited(code: 0))
                    let others = workers.indices.filter { $0 != slot }
                    workers[slot] = try group.start(slot, ["--session", "20000"])
                    try await workers[slot].waitUntilLogged("runs")
                    for other in others where other > slot {
                        #expect(workers[other].standardError.count(of: "partitions assigned") == before[other])
                    }
                }
                let rolled = workers
                try await waitUntil("every partition runs", within: patience) {
                    rolled.allSatisfy { $0.standardError.count(of: " runs") >= 4 }
                }
                for worker in workers {
                    let log = worker.standardError
                    #expect(log.count(of: "partitions assigned") == 1, "\(log)")
                    let restored = log.split(separator: "\n").filter { $0.contains("runs") }
                    #expect(restored.count == 4)
                    #expect(restored.allSatisfy { $0.contains("\"0 records restored") }, "\(restored)")
                }
                return workers
            }
        }

        @Test func `at whose record the process traps three times takes it for a dead letter`() async throws {
            try await withLedger("poison") { group, fed in
                // One in a hundred words has that key: each of them ends three processes.
                for _ in 0..<30 {
                    let worker = try group.start(0, ["--trap", "key-7"])
                    let ending = try await worker.wait(within: patience * 2)
                    guard case .killed = ending else {
                        Issue.record("it ended with \(ending): \(worker.standardError.suffix(2000))")
                        return []
                    }
                    if try await !group.letters(reason: "crash").isEmpty { break }
                }
                let letters = try await group.letters(reason: "crash")
                #expect(letters.first?.key.map { String(decoding: $0, as: UTF8.self) } == "key-7")
                return []
            }
        }
    }
}

/// Feeds a group while `body` starts and stops its processes, then judges what they have written.
func withLedger(
    _ label: String,
    _ body: (LedgerGroup, _ fed: Latch) async throws -> [ChildProcess]
) async throws {
    let servers = try await SharedKafka.bootstrapServers()
    let group = try await LedgerGroup.make(label, workers: servers, others: servers)
    let fed = Latch()
    async let feeding: Void = group.feed(perSecond: 300, seed: 1, until: fed)
    let workers: [ChildProcess]
    do {
        workers = try await body(group, fed)
    } catch {
        fed.open()
        throw error
    }
    fed.open()
    try await feeding
    if workers.isEmpty { return }
    try await group.waitUntilDone()
    for worker in workers {
        #expect(try await worker.terminate(within: .seconds(30)) == .exited(code: 0), "\(worker.standardError)")
    }
    let wrong = try await group.judge()
    if !wrong.isEmpty { for worker in workers { print(worker.standardError.suffix(12000)) } }
    #expect(wrong.isEmpty, "\(wrong.prefix(3).joined(separator: "\n"))")
}

extension ChildProcess {
    /// - Parameter lines: this many log lines of running partitions are also enough.
    func waitUntilLogged(_ words: String, orEndsWith lines: Int? = nil) async throws {
        try await waitUntil("the worker says \(words)", within: patience) {
            try #require(isRunning, "the worker has ended: \(standardError.suffix(3000))")
            let log = standardError
            return log.contains(words) || lines.map { log.count(of: " runs") >= $0 } ?? false
        }
    }
}

extension ChildProcess {
    /// The last lines that it logged before it ended; a backtrace is long.
    var wordsBeforeItsEnd: String {
        let lines = standardError.split(separator: "\n")
        let trap = lines.firstIndex { $0.contains("rashed") || $0.contains("Fatal error") } ?? max(0, lines.count - 3)
        return lines[max(0, trap - 12)..<min(lines.count, trap + 40)].joined(separator: "\n")
    }
}

extension String {
    func count(of words: String) -> Int { ranges(of: words).count }
}

/// Three processes on twelve partitions, and what happens to them.
private struct Ordeal {
    let rounds: Int
    let isTorn: Bool

    static var options: KafkaOptions {
        var options = KafkaOptions()
        options.throughProxy = true
        return options
    }

    /// What is wrong with the outputs.
    func run(on cluster: KafkaCluster) async throws -> [String] {
        let group = try await LedgerGroup.make(
            "ordeal", workers: cluster.bootstrapServers, others: cluster.internalServers)
        let fed = Latch()
        let healed = Latch()
        var dice = Dice()
        let seed = UInt64.random(in: 0 ... .max, using: &dice)
        let proxy = try #require(cluster.proxy)
        async let feeding: Void = group.feed(perSecond: isTorn ? 2000 : 400, seed: seed, until: fed)
        async let holding: Void = hold(.endTxn, proxy, seed, until: healed)
        async let holdingOffsets: Void = hold(.txnOffsetCommit, proxy, seed + 1, until: healed)
        // Also if a round throws, and before waiting for the processes, which would run for ever.
        defer {
            healed.open()
            fed.open()
        }
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
        if isTorn {
            // A worker whose state is ahead of its committed offset refuses to start: that counts as wrong.
            try await waitUntil("the whole input is processed, or refused", within: patience * 3) {
                let refusals = [
                    "but the state of this worker is at", "unusable again after it was deleted and restored",
                ]
                if workers.contains(where: { worker in refusals.contains { worker.standardError.contains($0) } }) {
                    return true
                }
                return try await group.isDone()
            }
        } else {
            try await group.waitUntilDone()
        }
        for worker in workers {
            let ending = try await worker.terminate(within: .seconds(30))
            // A run without transactions may fail at once, before a worker that was just started handles signals.
            #expect(ending == .exited(code: 0) || isTorn, "\(ending): \(worker.standardError.suffix(3000))")
        }
        let wrong = try await group.judge()
        if !wrong.isEmpty && !isTorn {
            for worker in workers { print(worker.standardError.suffix(5000)) }
        }
        return wrong
    }

    private func play(
        _ round: Int, _ workers: inout [ChildProcess], _ group: LedgerGroup, _ cluster: KafkaCluster, _ more: [String],
        _ dice: inout Dice
    ) async throws {
        let slot = Int.random(in: 0..<3, using: &dice)
        try await Task.sleep(for: .milliseconds(Int.random(in: 200...2500, using: &dice)))
        // Without transactions a kill alone shows the fault; nothing else is needed.
        switch isTorn ? 0 : Int.random(in: 0..<10, using: &dice) {
        case 0..<4:
            print("round \(round): kill \(slot)")
            workers[slot].killNow()
            _ = try await workers[slot].wait()
            // Often it is back within the session timeout, sometimes long after it.
            if !isTorn, Int.random(in: 0..<3, using: &dice) == 0 { try await Task.sleep(for: .seconds(8)) }
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
        // A worker that found its slot used by two processes has ended itself; it is started again.
        for slot in workers.indices where !workers[slot].isRunning {
            print("round \(round): \(slot) had ended: \(workers[slot].wordsBeforeItsEnd)")
            workers[slot] = try group.start(slot, more)
        }
    }

    /// Holds back two of a hundred requests and releases them within ten seconds, whether or not the client still waits for them.
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
                do {
                    try await hold.release(within: .seconds(5))
                } catch {
                    // The broker it is meant for may have died in the meantime.
                    print("a held request is lost: \(error)")
                }
            }
            hold.discard()
        }
    }
}
