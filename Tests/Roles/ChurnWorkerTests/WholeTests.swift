import ChurnWorker
import Configuration
import Contract
import MakeBelieve
import PlainChurn
import Simulation
import Telemetry
import Testing
import WorkerTestKit
import Zone

/// One store, and how its notifications are disturbed.
struct Trial: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let seed: UInt64
    let subscribers: Int
    /// Days in which subscribers join, and days after them.
    let arrival: Int64
    let after: Int64
    var isSandbox = false
    let processes: Int

    static let all = [
        Trial(
            testDescription: "lives that have ended", seed: 1, subscribers: 60, arrival: 30, after: 1_060, processes: 3),
        Trial(
            testDescription: "lives that have not ended", seed: 2, subscribers: 90, arrival: 300, after: 1, processes: 2
        ),
        Trial(testDescription: "one process", seed: 3, subscribers: 90, arrival: 60, after: 100, processes: 1),
        Trial(
            testDescription: "sandbox", seed: 5, subscribers: 60, arrival: 1, after: 8, isSandbox: true, processes: 3),
    ]

    func store() throws -> StoreLog {
        try StoreLog(
            seed: seed, subscribers: subscribers, arrival: arrival * StoreLog.day, after: after * StoreLog.day,
            sandbox: isSandbox)
    }

    /// As late as Apple's last retry: half of the notifications of a subscription are out of order.
    func arrivals(of store: StoreLog) -> [StoreLog.Arrival] {
        var delivery = Delivery.Configuration(seed: seed)
        delivery.duplicatesPerMille = 150
        delivery.delaysPerMille = 250
        delivery.swapsPerMille = 150
        delivery.longestDelay = 157 * StoreLog.hour
        return store.disturbed(by: delivery)
    }
}

/// Workers that count days of New York, and their metrics.
private final class CountingRun {
    static let zone = "America/New_York"

    let run: StoreRun
    private let shown: Shown

    private final class Shown {
        /// The last run of each process.
        var lives: [Int: Metrics] = [:]
    }

    init(_ store: StoreLog, processes: Int = 1, faults: UInt64? = nil) throws {
        let (zone, shown) = (try Zone(name: Self.zone), Shown())
        self.shown = shown
        run = try StoreRun(store, processes: processes, faults: faults) { names, partitions, slot in
            let metrics = Metrics()
            shown.lives[slot] = metrics
            return makeProcessor(names, zone: zone, partitions: partitions, metrics: metrics)
        }
    }

    var judge: PlainJudge {
        get throws { try ChurnWorkerTests.judge(zone: Self.zone) { try run.seen($0) } }
    }

    /// The sum over all processes, as a dashboard computes it.
    var stocks: [String: Int64] {
        shown.lives.values.reduce(into: [:]) { sums, life in
            sums.merge(readings(life).filter { $0.key.hasPrefix("perennial_churn_subscriptions") }) { $0 + $1 }
        }
    }
}

@Suite struct `The counting worker` {
    @Test(arguments: Trial.all)
    func `counts what the plain metrics count, whatever failed, came late or came again`(_ trial: Trial) throws {
        let store = try trial.store()
        let arrivals = trial.arrivals(of: store)
        let struggle = try CountingRun(store, processes: trial.processes, faults: trial.seed)
        try struggle.run.struggle(arrivals)
        let judge = try struggle.judge
        let wrong = judge.wrong()
        #expect(wrong.isEmpty, "\(wrong.count): \(wrong.prefix(8).joined(separator: "\n"))")
        #expect(judge.cells.count > trial.subscribers / 2)
        #expect(try struggle.run.seen(.deadLetters(.churn)).isEmpty)
        for misfortune in ["kill", "freeze", "stop", "lost disk"] {
            #expect(struggle.run.happened.contains(misfortune), "\(misfortune) did not occur where it could do harm")
        }
        try expectUniqueIDs(struggle)

        // Other commits over the same log, without duplicates: the same events, and the same cells in the end.
        let calm = try CountingRun(store)
        try calm.run.play(arrivals)
        #expect(try events(calm) == events(struggle))
        let (mine, others) = (try lastCells(calm), try lastCells(struggle))
        #expect(mine == others)
        #expect(try calm.run.seen(.churnCells).count != struggle.run.seen(.churnCells).count)
    }

    @Test(arguments: Trial.all.filter { !$0.isSandbox })
    func `shows after all that how many subscriptions stand where`(_ trial: Trial) throws {
        let store = try trial.store()
        let counting = try CountingRun(store, processes: trial.processes, faults: trial.seed &+ 100)
        try counting.run.struggle(trial.arrivals(of: store))
        let standings = try counting.judge.standings
        let stocks = counting.stocks
        let states = ["active": "PAID", "trial": "FREE", "grace": "GRACE", "retry": "RETRY"]
        for (label, state) in states {
            let shown = stocks["perennial_churn_subscriptions{state=\"\(label)\"}"]
            #expect(shown == Int64(standings.count { $0.state == state }), "\(label)")
        }
    }

    /// The same content may be written again; a reader that has seen the id would lose anything else under it.
    private func expectUniqueIDs(_ counting: CountingRun) throws {
        let ids = try counting.run.seen(.churnEvents).compactMap { $0.header("id") }
        #expect(Set(ids).count == ids.count)
        var contents: [String: String] = [:]
        for seen in try counting.run.seen(.churnCells) {
            let id = try #require(seen.header("id"))
            let content = "\(seen.keyText) \(seen.valueText) \(seen.timestamp)"
            #expect(contents.updateValue(content, forKey: id) ?? content == content)
        }
    }

    private func events(_ counting: CountingRun) throws -> [WorkerSimulation.Seen] {
        // The end marker of a transaction takes an offset, so offsets have gaps there.
        try counting.run.seen(.churnEvents).map { seen in
            var seen = seen
            seen.offset = 0
            return seen
        }
    }

    private func lastCells(_ counting: CountingRun) throws -> [String: WorkerSimulation.Seen] {
        var last: [String: WorkerSimulation.Seen] = [:]
        for seen in try counting.run.seen(.churnCells) {
            last[seen.keyText] = seen
            last[seen.keyText]?.offset = 0
            // For a missing cell only that it is missing counts.
            if seen.value == nil { last[seen.keyText] = nil }
        }
        return last
    }
}
