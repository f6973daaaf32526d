import Configuration
import Contract
import Log
import MakeBelieve
import MemoryLog
import Synchronization
import Telemetry
import Testing
import WorkerTestKit
import Zone

private let active = "perennial_churn_subscriptions{state=\"active\"}"
private let grace = "perennial_churn_subscriptions{state=\"grace\"}"
private let started = "perennial_churn_today{counter=\"started\"}"
private let lapsed = "perennial_churn_today{counter=\"lapsedOther\"}"

private func revenue(_ currency: String) -> String {
    "perennial_churn_monthly_revenue_milliunits{currency=\"\(currency)\"}"
}

/// Makes the next append fail.
private final class Refusal: LogFaults {
    private let isNext = Mutex(false)

    func refuse() { isNext.withLock { $0 = true } }

    func fault(at step: LogStep, of identity: String) -> InjectedFault? {
        guard step == .beforeCommit else { return nil }
        return isNext.withLock { isNext in
            defer { isNext = false }
            return isNext ? InjectedFault(.refuse) : nil
        }
    }
}

@Suite struct `What the counting worker shows` {
    private static let ids = (1000..<1020).map(String.init)
    private let wholeRevenue: Int64 = 20 * 9990

    /// One subscription in each of twenty keys, so that each of three partitions has some.
    private func tellAll(_ shop: Shop, at instant: Int64 = d(0)) throws {
        for id in Self.ids { try shop.tell(start(at: instant), of: id) }
    }

    @Test func `is there before anything has happened`() throws {
        let metrics = Metrics()
        _ = makeProcessor(metrics: metrics)
        let shown = readings(metrics)
        for series in [active, grace, started, lapsed] { #expect(shown[series] == 0, "\(series)") }
        #expect(shown["perennial_churn_undated_notifications_total"] == 0)
        #expect(shown["perennial_churn_unusable_transactions_total"] == 0)
        #expect(!shown.keys.contains { $0.contains("activeDelta") || $0.contains("mrrNew") })
    }

    @Test func `is how the subscriptions stand, what the day has brought and what a month brings`() throws {
        let metrics = Metrics()
        let shop = try Shop(makeProcessor(metrics: metrics))
        try tellAll(shop)
        try shop.tell(start("1", ["currency": "\"EUR\"", "price": "5000"]), of: "2000")
        try shop.tell(start("1", ["currency": "\"euro\"", "price": "70"]), of: "2001")
        try shop.work()
        var shown = readings(metrics)
        #expect(shown[active] == 22 && shown[started] == 22)
        #expect(shown[revenue("USD")] == wholeRevenue)
        #expect(shown[revenue("EUR")] == 5000)
        #expect(shown[revenue("other")] == 70)
        // Only time passes: all subscriptions end.
        try shop.tick(d(30))
        try shop.work()
        shown = readings(metrics)
        #expect(shown[active] == 0 && shown[started] == 0 && shown[lapsed] == 22)
        #expect(shown[revenue("USD")] == 0 && shown[revenue("EUR")] == 0)
    }

    @Test func `of the day goes to nothing at midnight of the zone`() throws {
        let metrics = Metrics()
        let shop = try Shop(makeProcessor(zone: Zone(name: "Asia/Tokyo"), metrics: metrics))
        // The zone is nine hours ahead: 15:00 UTC is midnight.
        let midnight = d(0) + 15 * hour
        try tellAll(shop, at: midnight - hour)
        try shop.tick(midnight - 1)
        try shop.work()
        #expect(readings(metrics)[started] == 20)
        try shop.tick(midnight)
        try shop.work()
        #expect(readings(metrics)[started] == 0)
        #expect(readings(metrics)[active] == 20)
        // It is about yesterday, so it does not count for today.
        try shop.tell(start(at: midnight - 1), of: "2000", received: midnight + hour)
        try shop.tell(start(at: midnight), of: "2001", received: midnight + hour)
        try shop.work()
        #expect(readings(metrics)[started] == 1)
    }

    @Test(arguments: [false, true])
    func `is there again after a restart, with nothing new to say`(losesDisk: Bool) throws {
        let shop = try Shop()
        try tellAll(shop)
        try shop.work()
        let process = shop.simulation.processes[0]
        shop.simulation.crash(process)
        if losesDisk { shop.simulation.loseDisk(of: process) }
        let metrics = Metrics()
        shop.simulation.processor = makeProcessor(metrics: metrics)
        shop.simulation.start(process)
        for _ in 0..<200 where readings(metrics)[active] != 20 { shop.simulation.step(process) }
        #expect(readings(metrics)[active] == 20)
        #expect(readings(metrics)[started] == 20)
        #expect(readings(metrics)[revenue("USD")] == wholeRevenue)
    }

    @Test func `is of the partitions that a process has, and of none when it has stopped`() throws {
        let (mine, others) = (Metrics(), Metrics())
        let shop = try Shop(makeProcessor(metrics: mine), processes: 2)
        try tellAll(shop)
        try shop.work()
        #expect(readings(mine)[active] == 20)
        let second = shop.simulation.processes[1]
        shop.simulation.processor = makeProcessor(metrics: others)
        shop.simulation.start(second)
        func step(until isSo: () -> Bool) {
            for _ in 0..<2_000 where !isSo() {
                for process in shop.simulation.processes { shop.simulation.step(process) }
                shop.simulation.clock.advance(by: .milliseconds(5))
            }
        }
        func sum(_ series: String) -> Int64? {
            guard let one = readings(mine)[series], let other = readings(others)[series] else { return nil }
            return one + other
        }
        step { readings(others)[active] ?? 0 > 0 && sum(active) == 20 }
        #expect(readings(mine)[active]! > 0 && readings(others)[active]! > 0)
        #expect(sum(active) == 20 && sum(started) == 20 && sum(revenue("USD")) == wholeRevenue)
        shop.simulation.stop(second)
        #expect(readings(others).filter { $0.key.hasPrefix("perennial_churn_") && $0.value != 0 } == [:])
        step { readings(mine)[active] == 20 }
        #expect(readings(mine)[active] == 20 && readings(mine)[revenue("USD")] == wholeRevenue)
    }

    @Test func `is right when the log has refused a commit and taken it at the second try`() throws {
        let (metrics, refusal) = (Metrics(), Refusal())
        let shop = try Shop(makeProcessor(metrics: metrics), faults: refusal)
        try tellAll(shop)
        try shop.work()
        refusal.refuse()
        try shop.tell(start(), of: "2000")
        try shop.work()
        #expect(readings(metrics)[active] == 21 && readings(metrics)[started] == 21)
        #expect(try shop.seen(.churnEvents).count == 21)
    }
}
