// This version writes what the versions before it wrote: same outputs, same kept bytes, same timers, byte for byte. The hashes are
// those of the domain on objects, which the domain on plain values replaced in November 2026.

import Contract
import MakeBelieve
import Notices
import Simulation
import Testing

@testable import Entitlements
@testable import SubscriptionHistory

private func expectKnown(
    _ writings: Writings, _ name: String, sourceLocation: SourceLocation = #_sourceLocation
) {
    guard let fault = writings.fault(name, of: knownWritings) else { return }
    Issue.record(Comment(rawValue: fault), sourceLocation: sourceLocation)
}

@Suite struct `This version and those before` {
    /// How the notifications of a life come.
    private enum Way: CaseIterable { case punctual, late, shuffled, backwards }

    @Test(arguments: 0..<8, [Contract.Environment.production, .sandbox])
    func `write the same of every life of the simulator, however it is told`(
        _ part: Int, _ environment: Contract.Environment
    ) throws {
        let driven = try driveLives(part, environment, count: 40)
        expectKnown(driven.writings, "lives \(part), \(environment)")
        let seen = driven.seen
        // Sandbox knows no window of retries, and no family.
        #expect(seen.values > 500 && seen.events > 500 && seen.timers > 30, "\(seen)")
        #expect(seen.bindings > 200 && seen.repetitions > 100, "\(seen)")
    }

    private func driveLives(
        _ part: Int, _ environment: Contract.Environment, count: Int
    ) throws -> DrivenTeller {
        let months = [2, 4, 15, 24][part % 4] as Int64
        let store = try StoreLog(
            seed: UInt64(900 + part), subscribers: count * 2, arrival: 30 * StoreLog.day,
            after: environment == .sandbox ? StoreLog.day : months * 30 * StoreLog.day,
            sandbox: environment == .sandbox)
        var arrivals: [String: [StoreLog.Arrival]] = [:]
        for arrival in store.punctual where arrival.notification.originalTransactionId != nil {
            arrivals[arrival.notification.key, default: []].append(arrival)
        }
        var chance = Chance(seed: UInt64(part))
        var driven = DrivenTeller(apps: StoreLog.apps.map(\.contractApp), leeway: store.leeway, environment)
        var judged = 0
        for (_, told) in arrivals.sorted(by: { $0.key < $1.key }).prefix(count) {
            let records = try told.map { try store.record(of: $0) }
            for way in Way.allCases {
                driven.begin()
                for (value, clock) in Self.coming(records, way, &chance) { driven.hear(value, at: clock) }
                driven.fire(until: store.end)
            }
            judged += 1
        }
        #expect(judged == count, "as many lives in \(environment) as wanted")
        return driven
    }

    /// Values with the clock of their partition.
    private static func coming(
        _ records: [StoreLog.Record], _ way: Way, _ chance: inout Chance
    ) -> [(value: [UInt8], clock: Int64)] {
        var list: [(at: Int64, value: [UInt8])]
        switch way {
        case .punctual: list = records.map { ($0.timestamp, $0.value) }
        case .late:
            list = []
            for record in records {
                let delay = chance.yes(30) ? chance.of(1, 13, 37, 85, 157) * StoreLog.hour : 0
                list.append((record.timestamp + delay, record.value))
                if chance.yes(30) { list.append((record.timestamp + delay + StoreLog.minute, record.value)) }
            }
            list.sort { $0.at < $1.at }
        case .shuffled:
            let all = records + records.filter { _ in chance.yes(40) }
            list = all.shuffled(using: &chance).map { ($0.timestamp, $0.value) }
        case .backwards: list = records.reversed().map { ($0.timestamp, $0.value) }
        }
        var clock = Int64.min
        return list.map { record in
            clock = max(clock, record.at)
            return (record.value, clock)
        }
    }

    @Test(arguments: 0..<40 as Range<UInt64>)
    func `write the same of random notifications`(_ part: UInt64) {
        var chance = Chance(seed: 12_000 + part)
        let environment = part % 2 == 0 ? Contract.Environment.production : .sandbox
        var driven = DrivenTeller(apps: [app], leeway: hour, environment)
        for _ in 0..<40 {
            driven.begin()
            var clock = d(chance.below(30))
            for record in notifications(2 + Int(chance.below(12)), &chance) {
                driven.hear(Array(record.utf8), at: clock)
                clock += chance.below(20) * 24 * hour
            }
            driven.fire(until: d(1_000))
        }
        expectKnown(driven.writings, "random \(part)")
        #expect(driven.seen.values > 100 && driven.seen.events > 100 && driven.seen.timers > 50, "\(driven.seen)")
        #expect(driven.seen.disagreements > 5, "\(driven.seen)")
    }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `write the same of what nobody should send`(_ part: UInt64) {
        var chance = Chance(seed: 13_000 + part)
        func any<Value>(_ values: [Value]) -> Value { values[Int(chance.below(Int64(values.count)))] }
        var driven = DrivenTeller(apps: [app], leeway: hour, part % 2 == 0 ? .production : .sandbox)
        for _ in 0..<40 {
            driven.begin()
            for _ in 0..<(2 + chance.below(12)) {
                let members = (0..<chance.below(7)).map { _ in (any(Absurdity.members), any(Absurdity.values)) }
                let clock: Int64 = any([
                    0, 1, 1_778_000_000_000, 1_779_000_000_001, 1_781_000_000_000, 1_790_000_000_000, .max - 1,
                ])
                driven.hear(Array(Absurdity.notification(members).utf8), at: clock)
            }
            driven.fire(until: .max - 1)
        }
        expectKnown(driven.writings, "absurd \(part)")
        #expect(driven.seen.values > 100 && driven.seen.events > 100 && driven.seen.timers > 20, "\(driven.seen)")
    }

    /// The limits are reached by texts, by rows and by infos. Most of the subscription is known from the beginning.
    @Test(arguments: [(count: 130, known: 90), (1_030, 985), (300, 240)])
    func `write the same at the limits`(_ numbers: (count: Int, known: Int)) throws {
        var chance = Chance(seed: 3)
        let long = String(repeating: "t", count: numbers.count < 200 ? 900 : 3)
        let records = (0..<Int64(numbers.count)).shuffled(using: &chance).map { number in
            let row = bought(
                "\(number)", d(number), d(number + 1), signed: d(number) + chance.below(5),
                "'offerType':2,'offerIdentifier':'\(long)-\(number)','subscriptionGroupIdentifier':'\(long)'")
            let info = renewal(
                0, at: d(number + 1), signed: d(number), "'autoRenewProductId':'\(long)-\(number % 40)'")
            return EntitlementsTests.told("A", at: d(number), row, numbers.count > 1_000 ? nil : info)
        }
        let known = try merged(records.prefix(numbers.known).map { try reading($0).facts })
        var driven = DrivenTeller(apps: [app], leeway: hour, .production, kept: [0, 0] + known.bytes)
        for record in records.dropFirst(numbers.known) { driven.hear(Array(record.utf8), at: d(2_000)) }
        expectKnown(driven.writings, "limits \(numbers.count)")
        #expect(driven.seen.values > 5, "\(driven.seen)")
        let kept = try #require(driven.kept.map { Array($0) })
        var history = History()
        let isTruncated = kept.withUnsafeBufferPointer { bytes in
            var reader = KeptReader(bytes)
            _ = reader.signed()
            if reader.byte() == 1 { _ = Told(&reader) }
            return history.read(&reader) && (history.isTruncated || history.forgottenRenewal != nil)
        }
        #expect(isTruncated, "a limit was reached")
    }

    /// Merges pairs, and pairs of pairs: one after the other takes long.
    private func merged(_ facts: [Facts]) -> Facts {
        guard facts.count > 1 else { return facts.first ?? Facts() }
        var left = merged(Array(facts[..<(facts.count / 2)]))
        left.merge(merged(Array(facts[(facts.count / 2)...])))
        return left
    }

    /// A byte of a state is another one, or is missing.
    @Test(arguments: 0..<8 as Range<UInt64>)
    func `read the same of damaged states`(_ part: UInt64) {
        var chance = Chance(seed: 14_000 + part)
        var driven = DrivenTeller(apps: [app], leeway: hour, .production)
        for _ in 0..<6 {
            driven.begin()
            let records = notifications(6, &chance).map { Array($0.utf8) }
            for record in records { driven.hear(record, at: d(40)) }
            guard let whole = driven.kept else { continue }
            for _ in 0..<300 {
                var damaged = whole
                for _ in 0...chance.below(2) {
                    let place = Int(chance.below(Int64(damaged.count)))
                    switch chance.below(4) {
                    case 0: damaged.remove(at: place)
                    case 1: damaged.insert(UInt8(chance.below(256)), at: place)
                    default: damaged[place] ^= 1 << UInt8(chance.below(8))
                    }
                }
                driven.begin(kept: damaged)
                driven.hear(Array(told("A", at: d(41), period(9), renewal(1, at: d(270))).utf8), at: d(41))
            }
        }
        expectKnown(driven.writings, "damaged \(part)")
        #expect(driven.seen.damaged > 100 && driven.seen.values > 100, "\(driven.seen)")
    }
}
