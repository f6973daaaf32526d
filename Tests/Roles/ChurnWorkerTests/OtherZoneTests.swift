import Configuration
import Contract
import Foundation
import MakeBelieve
import MemoryLog
import Store
import Telemetry
import Testing
import WorkerTestKit
import Zone

@Suite struct `A count by days of one zone` {
    private let shop: Shop
    private var process: WorkerSimulation.Process { shop.simulation.processes[0] }

    init() throws {
        shop = try Shop()
        try shop.tell(start(), of: "1000")
        try shop.work()
    }

    /// The worker runs again, long enough to read everything that it may read.
    private func restart(in zone: Zone, metrics: Metrics = Metrics()) {
        if process.isRunning { shop.simulation.stop(process) }
        shop.simulation.processor = makeProcessor(zone: zone, metrics: metrics)
        shop.simulation.start(process)
        for _ in 0..<400 {
            shop.simulation.step(process)
            shop.simulation.clock.advance(by: .milliseconds(5))
        }
    }

    private func written() throws -> Int {
        try shop.simulation.read(Shop.names.topic(.churnCells)).count
    }

    @Test(arguments: [false, true])
    func `is not gone on with in another one, and is when the setting is set back`(losesDisk: Bool) throws {
        let before = try written()
        shop.simulation.stop(process)
        if losesDisk { shop.simulation.loseDisk(of: process) }
        try shop.tell(start("2", at: d(1)), of: "1000")
        let metrics = Metrics()
        restart(in: try Zone(name: "Asia/Tokyo"), metrics: metrics)
        let partition = Shop.partition(of: "1000")
        #expect(
            process.troubles == [
                "partition \(partition): partition \(partition) has counted by days of UTC, but churn.zone is "
                    + "Asia/Tokyo: set it back to UTC"
            ])
        #expect(try written() == before)
        #expect(readings(metrics)["perennial_churn_subscriptions{state=\"active\"}"] == 0)
        restart(in: .utc)
        #expect(process.troubles == [])
        #expect(try written() > before)
        #expect(try shop.wrong() == [])
    }

    /// What was counted in the other zone is not known. If the worker ignored that, days and stocks would start again from
    /// nothing.
    @Test func `is not gone on with from what cannot be read`() throws {
        let before = try written()
        shop.simulation.stop(process)
        let partition = Shop.partition(of: "1000")
        let store = try MemoryStores(disk: process.disk).open(partition)
        let key: [UInt8] = [0]
        var bytes: [UInt8] = []
        #expect(try store.read(key.span, into: &bytes))
        let changes = StoreChanges()
        changes.put(key.span, (bytes + [0]).span)
        changes.note = try #require(try store.note())
        try store.write(changes, .process)
        try store.close()
        try shop.tell(start("2", at: d(1)), of: "1000")
        restart(in: .utc)
        #expect(
            process.troubles.count == 1 && process.troubles[0].contains("stored for partition \(partition) are damaged")
        )
        #expect(try written() == before)
    }

    @Test func `is begun in another one where nothing was counted yet`() throws {
        let free = Shop.partition(of: "1000") == 0 ? Int32(1) : 0
        let other = (2000...).lazy.map(String.init).first { Shop.partition(of: $0) == free } ?? ""
        try shop.tell(start(at: d(1)), of: other)
        restart(in: try Zone(name: "Asia/Tokyo"))
        #expect(process.troubles.count == 1)
        #expect(try shop.simulation.read(Shop.names.topic(.churnCells)).contains { $0.partition == free })
    }

    @Test func `is gone on with by another version of the zone's data`() throws {
        let before = try written()
        try shop.tell(start("2", at: d(1)), of: "1000")
        // A zone with the name and the days of UTC.
        let file = try Array(Data(contentsOf: URL(filePath: "/usr/share/zoneinfo/Etc/UTC")))
        restart(in: try Zone(name: "UTC", file: file, dataVersion: "another"))
        #expect(process.troubles == [])
        #expect(try written() > before)
    }
}
