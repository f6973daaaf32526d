import Contract
import Log
import MakeBelieve
import NotificationWorker
import Simulation
import Testing
import WorkerTestKit

@Suite struct `A replay of the worker` {
    private static let name = ShadowName("again")!
    private static let trial = Trial.all[1]

    private static func arrivals(_ store: StoreLog) -> [StoreLog.Arrival] {
        var delivery = Delivery.Configuration(seed: 7)
        delivery.duplicatesPerMille = 100
        delivery.delaysPerMille = 200
        return store.disturbed(by: delivery)
    }

    /// Everything but its offset.
    private static func same(_ left: WorkerSimulation.Seen, _ right: WorkerSimulation.Seen) -> Bool {
        left.partition == right.partition && left.key == right.key && left.value == right.value
            && left.timestamp == right.timestamp && left.headers == right.headers
    }

    private static func last(_ seen: [WorkerSimulation.Seen]) -> [String: WorkerSimulation.Seen] {
        seen.reduce(into: [:]) { $0[$1.keyText] = $1 }
    }

    @Test func `writes into shadow topics, byte for byte, what the live worker wrote, whatever fails`() throws {
        let store = try Self.trial.store()
        let live = try StoreRun(store)
        try live.play(Self.arrivals(store))
        let replay = try StoreRun(store, processes: 3, faults: 3, shadow: Shadow(Self.name))
        try replay.struggle(Self.arrivals(store))
        let events = try live.seen(.entitlementEvents)
        #expect(events.count > 300)
        #expect(try replay.seen(.entitlementEvents, of: Self.name).elementsEqual(events, by: Self.same))
        for topic in [TopicID.entitlements, .accounts] {
            let wanted = Self.last(try live.seen(topic))
            let found = Self.last(try replay.seen(topic, of: Self.name))
            #expect(wanted.count > 20 && Set(wanted.keys) == Set(found.keys))
            #expect(wanted.allSatisfy { Self.same($0.value, found[$0.key]!) }, "\(topic)")
        }
        #expect(replay.happened.contains("kill"))
    }

    @Test func `with a place where output begins puts out exactly what the records from there on cause`() throws {
        let store = try Self.trial.store()
        let live = try StoreRun(store)
        try live.play(Self.arrivals(store))
        let input = try live.seen(.notifications)
        // Another offset in each partition: nothing in the first, everything in the last.
        var places: [TopicPartition: NextOffset] = [:]
        for partition in 0..<StoreRun.partitions {
            let count = input.count { $0.partition == partition }
            let share = [count, count / 2, count / 7, 0][Int(partition)]
            places[TopicPartition("store.production.notifications", partition)] = NextOffset(Int64(share))
        }
        let replay = try StoreRun(
            store, processes: 2, faults: 5, shadow: Shadow(Self.name, silentBefore: places))
        try replay.struggle(Self.arrivals(store))
        for topic in [TopicID.entitlementEvents, .entitlements] {
            let wanted = try live.seen(topic).filter { seen in
                let source = seen.header("source")?.split(separator: ":").last.flatMap { Int64($0) } ?? -1
                return source >= places[TopicPartition("store.production.notifications", seen.partition)]!.value
            }
            #expect(Set(wanted.map(\.partition)) == [1, 2, 3])
            #expect(try replay.seen(topic, of: Self.name).elementsEqual(wanted, by: Self.same), "\(topic)")
        }
    }
}
