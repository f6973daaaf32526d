import Glibc
import KafkaTestKit
import Log
import MemoryLog
import RocksStore
import Store
import Synchronization
import Testing
import WorkerTestKit

@testable import Runtime

/// A worker of two partitions; the disk of the first can be made to fail.
private struct HinderedBench {
    let simulation: WorkerSimulation
    private let trouble = Trouble()
    private let blow = Blow()

    /// The disk's answer about the first partition.
    private final class Trouble: Sendable {
        let fault = Mutex<(operation: MemoryDisk.Operation, fault: StoreFault)?>(nil)
    }

    private final class Blow: LogFaults {
        let isDue = Mutex(false)

        func fault(at step: LogStep, of identity: String) -> InjectedFault? {
            guard step == .poll else { return nil }
            return isDue.withLock { isDue in
                defer { isDue = false }
                return isDue ? InjectedFault(.fence) : nil
            }
        }
    }

    static let full = StoreFault(.system, "No space left on device")

    init() throws {
        simulation = try WorkerSimulation(Script(partitions: 2), processes: 1, faults: blow)
        let trouble = trouble
        process.disk.fail { operation, partition in
            trouble.fault.withLock { partition == 0 && $0?.operation == operation ? $0?.fault : nil }
        }
    }

    var process: WorkerSimulation.Process { simulation.processes[0] }

    func fail(_ operation: MemoryDisk.Operation, _ fault: StoreFault = full) {
        trouble.fault.withLock { $0 = (operation, fault) }
    }

    func heal() { trouble.fault.withLock { $0 = nil } }

    func endSession() { blow.isDue.withLock { $0 = true } }

    func feed(_ partition: Int32, _ text: String) throws {
        try simulation.feed(
            partition: partition, key: Array("k".utf8), value: Array(text.utf8),
            headers: [RecordHeader("type", "word")])
    }

    func told() throws -> [String] {
        try simulation.read("told").map { "\($0.partition) \($0.valueText.split(separator: " @")[0])" }
    }

    /// In steps of a tenth of a second.
    func pass(seconds: Int) {
        for _ in 0..<(10 * seconds) where process.isRunning {
            simulation.step(process)
            simulation.clock.advance(by: .milliseconds(100))
        }
    }

    /// Both partitions have records in log and store.
    func begin() throws {
        simulation.start(process)
        for partition in Int32(0)..<2 { try feed(partition, "put n \(partition);tell begun") }
        guard try simulation.runToEnd() else { throw Unfinished() }
    }

    struct Unfinished: Error {}
}

@Suite struct `A partition whose store this machine does not let be used` {
    private let words = "partition 0, which is retried: No space left on device"

    @Test(arguments: [MemoryDisk.Operation.open, .read, .write])
    func `is tried again until it can, and the others work meanwhile`(operation: MemoryDisk.Operation) throws {
        let bench = try HinderedBench()
        try bench.begin()
        bench.simulation.crash(bench.process)
        bench.fail(operation)
        bench.simulation.start(bench.process)
        try bench.feed(0, "tell late")
        try bench.feed(1, "tell other")
        bench.pass(seconds: 60)
        #expect(bench.process.troubles == [words])
        #expect(try bench.told().contains("1 other"))
        #expect(try !bench.told().contains("0 late"))

        bench.heal()
        bench.pass(seconds: 8)
        #expect(bench.process.troubles == [])
        #expect(try bench.told().contains("0 late"))
        #expect(bench.simulation.stop(bench.process))
    }

    @Test func `is tried every five seconds, not at every step`() throws {
        let bench = try HinderedBench()
        let openings = Mutex(0)
        bench.process.disk.fail { operation, partition in
            guard operation == .open, partition == 0 else { return nil }
            openings.withLock { $0 += 1 }
            return HinderedBench.full
        }
        bench.simulation.start(bench.process)
        bench.pass(seconds: 61)
        #expect((10...14).contains(openings.withLock { $0 }), "\(openings.withLock { $0 })")
    }

    @Test func `ends the process after five minutes, so that another one gets it`() throws {
        let bench = try HinderedBench()
        bench.fail(.open)
        bench.simulation.start(bench.process)
        bench.pass(seconds: 295)
        #expect(bench.process.isRunning)
        bench.pass(seconds: 15)
        #expect(
            bench.process.end?.description
                == "partition 0 could not be opened here for 300 s, so this process ends and another one gets the partition: "
                + "No space left on device")
    }

    /// Otherwise each new session would start to count again.
    @Test func `is not forgotten when the session ends in between`() throws {
        let bench = try HinderedBench()
        bench.fail(.open)
        bench.simulation.start(bench.process)
        for _ in 0..<5 {
            bench.pass(seconds: 59)
            #expect(bench.process.isRunning)
            bench.endSession()
        }
        bench.pass(seconds: 30)
        #expect(bench.process.end?.description.contains("partition 0 could not be opened here") == true)
    }

    @Test func `that comes right in time counts from the beginning at the next time`() throws {
        let bench = try HinderedBench()
        bench.fail(.open)
        bench.simulation.start(bench.process)
        bench.pass(seconds: 200)
        bench.heal()
        bench.pass(seconds: 8)
        #expect(bench.process.troubles == [])
        bench.fail(.open)
        bench.endSession()
        bench.pass(seconds: 200)
        #expect(bench.process.isRunning)
        #expect(bench.process.troubles == [words])
    }

    @Test func `because a frozen sibling has it open is restored into a place of its own`() throws {
        let bench = try HinderedBench()
        try bench.begin()
        #expect(bench.simulation.stop(bench.process))
        let sibling = try MemoryStores(disk: bench.process.disk).open(0)
        bench.simulation.start(bench.process)
        try bench.feed(0, "tell late")
        bench.pass(seconds: 9)
        #expect(
            bench.process.troubles == ["partition 0 waits for its store: the store of partition 0 is already open"])
        #expect(try !bench.told().contains("0 late"))
        bench.pass(seconds: 3)
        #expect(bench.process.troubles == [])
        #expect(try bench.told().contains("0 late"))
        #expect(bench.simulation.stop(bench.process))

        // A store aside that was left damaged is wiped, and not the shared one.
        bench.simulation.start(bench.process)
        bench.process.aside.fail { operation, _ in operation == .read ? StoreFault(.corrupt, "a bad block") : nil }
        bench.pass(seconds: 13)
        #expect(bench.process.troubles == ["partition 0, which is retried: a bad block"])
        bench.process.aside.fail(nil)
        bench.pass(seconds: 8)
        #expect(bench.process.troubles == [])
        #expect(bench.simulation.stop(bench.process))

        // The worker uses the shared directory again as soon as it can, and leaves nothing beside it.
        try sibling.close()
        bench.simulation.start(bench.process)
        bench.pass(seconds: 1)
        #expect(bench.process.troubles == [])
        #expect(try MemoryStores(disk: bench.process.aside.copy()).open(0).note() == nil)
        #expect(bench.simulation.stop(bench.process))
    }

    /// It may be the only copy of the state.
    @Test func `is kept when it cannot be opened and its changelog has lost its beginning`() throws {
        let bench = try HinderedBench()
        try bench.begin()
        bench.simulation.crash(bench.process)
        try bench.simulation.log.deleteRecords(
            of: TopicPartition("script.changelog", 0), before: NextOffset(1))
        let wipes = Mutex(0)
        bench.process.disk.fail { operation, partition in
            guard partition == 0 else { return nil }
            if operation == .wipe { wipes.withLock { $0 += 1 } }
            return operation == .read ? StoreFault(.corrupt, "a bad block") : nil
        }
        bench.simulation.start(bench.process)
        try bench.feed(1, "tell other")
        bench.pass(seconds: 10)
        #expect(bench.process.troubles.count == 1)
        #expect(
            bench.process.troubles.first?.hasPrefix(
                "partition 0: a bad block, and cannot be restored: script.changelog[0] begins at offset 1, not at 0")
                == true)
        #expect(wipes.withLock { $0 } == 0)
        #expect(try bench.told().contains("1 other"))
    }

    @Test func `because it cannot be wiped does not stop the others`() throws {
        let bench = try HinderedBench()
        try bench.begin()
        bench.simulation.crash(bench.process)
        let isRight = Mutex(false)
        bench.process.disk.fail { operation, partition in
            guard partition == 0, !isRight.withLock({ $0 }) else { return nil }
            switch operation {
            case .read: return StoreFault(.corrupt, "damaged")
            case .wipe: return StoreFault(.system, "Permission denied")
            default: return nil
            }
        }
        bench.simulation.start(bench.process)
        try bench.feed(1, "tell other")
        bench.pass(seconds: 30)
        #expect(bench.process.troubles == ["partition 0, which is retried: Permission denied"])
        #expect(try bench.told().contains("1 other"))
        isRight.withLock { $0 = true }
        bench.pass(seconds: 8)
        #expect(bench.process.troubles == [])
    }
}

/// A block of a file may be damaged where only some records need it: the store opens, and a restore does not read the block.
@Suite struct `A partition whose store fails while it runs` {
    /// The disk of the first partition.
    private final class Disk: Sendable {
        private let state = Mutex((fault: StoreFault?.none, isHealedByWipe: true, wipes: 0))

        var wipes: Int { state.withLock { $0.wipes } }

        init(_ disk: MemoryDisk) {
            disk.fail { [self] operation, partition in
                guard partition == 0 else { return nil }
                return state.withLock { state in
                    if operation == .wipe {
                        state.wipes += 1
                        if state.isHealedByWipe { state.fault = nil }
                    }
                    // Only a running worker looks for timers.
                    return operation == .timers ? state.fault : nil
                }
            }
        }

        func fail(_ cause: StoreFault.Cause, isHealedByWipe: Bool = true) {
            state.withLock { ($0.fault, $0.isHealedByWipe) = (StoreFault(cause, "a bad block"), isHealedByWipe) }
        }

        func heal() { state.withLock { $0.fault = nil } }
    }

    /// The next session of the worker looks for timers at its first record.
    private func begin() throws -> (HinderedBench, Disk) {
        let bench = try HinderedBench()
        try bench.begin()
        return (bench, Disk(bench.process.disk))
    }

    @Test func `is restored into a new one when that is damaged`() throws {
        let (bench, disk) = try begin()
        disk.fail(.corrupt)
        bench.endSession()
        try bench.feed(0, "tell late")
        bench.pass(seconds: 10)
        #expect(disk.wipes == 1)
        #expect(bench.process.troubles == [])
        #expect(try bench.told().filter { $0 == "0 late" }.count == 1)
        let stored = try MemoryStores(disk: bench.process.disk.copy { $0 }).open(0)
        var value: [UInt8] = []
        #expect(try stored.note() != nil)
        #expect(try stored.read(Array("n".utf8).span, into: &value))
        #expect(bench.simulation.stop(bench.process))
    }

    @Test func `is whole again when bytes of a file were changed`() throws {
        let scratch = try ScratchDirectory("damaged-block")
        let stores = try RocksStores(directory: scratch.path, cache: StoreCache(bytes: 1 << 20))
        let simulation = try WorkerSimulation(Script(partitions: 1), processes: 1)
        simulation.stores = stores
        let process = simulation.processes[0]
        func feed(_ text: String) throws {
            try simulation.feed(
                partition: 0, key: Array("k".utf8), value: Array(text.utf8), headers: [RecordHeader("type", "word")])
        }
        let text = String(repeating: "x", count: 500)
        simulation.start(process)
        for key in 0..<1000 { try feed("put \(key) \(key) \(text)") }
        #expect(try simulation.runToEnd())
        #expect(simulation.stop(process))

        let listed = try #require(glob("\(scratch.path)/0/*.sst"))
        for path in listed {
            let file = open(path, O_WRONLY)
            defer { close(file) }
            for offset in stride(from: off_t(200_000), to: 300_000, by: 3000) { pwrite(file, "damage", 6, offset) }
        }
        func readAll() throws {
            let store = try stores.open(0)
            var value: [UInt8] = []
            for key in 0..<1000 { #expect(try store.read(Array("\(key)".utf8).span, into: &value)) }
            try store.close()
        }
        #expect(throws: StoreFault.self) { try readAll() }
        simulation.start(process)
        for key in 0..<1000 { try feed("due \(key) 0") }
        #expect(try simulation.runToEnd())
        #expect(process.troubles == [])
        #expect(try simulation.read("told").count == 1000)
        #expect(simulation.stop(process))
        try readAll()
    }

    private func glob(_ pattern: String) -> [String]? {
        var found = glob_t()
        defer { globfree(&found) }
        guard Glibc.glob(pattern, 0, nil, &found) == 0 else { return nil }
        return (0..<Int(found.gl_pathc)).compactMap { found.gl_pathv[$0].map { String(cString: $0) } }
    }

    @Test func `is opened again as it is after a fault of the system`() throws {
        let (bench, disk) = try begin()
        disk.fail(.system)
        bench.endSession()
        try bench.feed(0, "tell late")
        bench.pass(seconds: 60)
        #expect(try !bench.told().contains("0 late"))
        disk.heal()
        bench.pass(seconds: 40)
        #expect(try bench.told().filter { $0 == "0 late" }.count == 1)
        #expect(disk.wipes == 0)
    }

    @Test(arguments: [StoreFault.Cause.corrupt, .system])
    func `ends the process after five minutes of faults, and is wiped once at most`(cause: StoreFault.Cause) throws {
        let (bench, disk) = try begin()
        disk.fail(cause, isHealedByWipe: false)
        bench.endSession()
        try bench.feed(0, "tell late")
        let begin = bench.simulation.clock.now
        while bench.process.isRunning, bench.simulation.clock.now < begin + 290_000 { bench.pass(seconds: 1) }
        #expect(bench.process.isRunning)
        bench.pass(seconds: 60)
        #expect(
            bench.process.end?.description
                == "the store of partition 0 has failed here again and again for 300 s, so this process ends and another one "
                + "gets the partition: a bad block")
        #expect(disk.wipes == (cause == .corrupt ? 1 : 0))
    }

    @Test func `counts from the beginning after five minutes without a fault`() throws {
        let (bench, disk) = try begin()
        for round in 1...2 {
            disk.fail(.corrupt)
            bench.endSession()
            try bench.feed(0, "tell late")
            bench.pass(seconds: 10)
            #expect(disk.wipes == round)
            #expect(bench.process.troubles == [])
            bench.pass(seconds: 300)
        }
        #expect(bench.process.isRunning)
    }

    /// The new store has the same bad place, and its restore meets it.
    @Test func `and whose new store is damaged too ends the process after five minutes`() throws {
        let bench = try HinderedBench()
        try bench.begin()
        bench.simulation.crash(bench.process)
        bench.fail(.write, StoreFault(.corrupt, "a bad block"))
        bench.simulation.start(bench.process)
        bench.pass(seconds: 200)
        #expect(bench.process.troubles == ["partition 0, which is retried: a bad block"])
        bench.pass(seconds: 200)
        #expect(bench.process.end?.description.contains("partition 0 could not be opened here for 300 s") == true)
    }
}

@Suite struct `Faults of stores` {
    private let faults = StoreFaults()

    init() {
        faults.note(
            0, StoreFault(.corrupt, "a bad block"), isAside: true, patience: .seconds(300), at: .seconds(1))
    }

    @Test func `belong to one of the two stores that a partition may have`() {
        #expect(faults.damage(of: 0, isAside: false, at: .seconds(2)) == nil)
        faults.wiped(0, isAside: false)
        #expect(faults.damage(of: 0, isAside: true, at: .seconds(2)) == "a bad block")
        faults.wiped(0, isAside: true)
        #expect(faults.damage(of: 0, isAside: true, at: .seconds(2)) == nil)
    }

    @Test func `are forgotten after an hour, when others may have had the partition`() {
        #expect(faults.damage(of: 0, isAside: true, at: .seconds(3600)) == "a bad block")
        #expect(faults.damage(of: 0, isAside: true, at: .seconds(3601)) == nil)
        faults.note(0, StoreFault(.system, "full"), isAside: true, patience: .seconds(300), at: .seconds(4000))
        #expect(faults.hopeless(patience: .seconds(300)) == nil)
    }

    /// The next store aside is a new one.
    @Test func `are over when the partition was restored into the other store`() {
        faults.restored(0, at: .seconds(2))
        #expect(faults.damage(of: 0, isAside: true, at: .seconds(2)) == nil)
    }
}
