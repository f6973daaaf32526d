import Contract
import JSON
import Testing

import struct MakeBelieve.Chance

@testable import Entitlements

@Suite struct `Merged facts` {
    @Test(arguments: 0..<150 as Range<UInt64>)
    func `are the same in every order, with every repetition, in every grouping`(_ seed: UInt64) throws {
        var chance = Chance(seed: seed)
        let records = notifications(2 + Int(chance.below(9)), &chance)
        let expected = try facts(records)
        for _ in 0..<5 {
            let repeated = records + records.filter { _ in chance.yes(50) }
            let shuffled = repeated.shuffled(using: &chance)
            #expect(try facts(shuffled) == expected, "seed \(seed)")
            let cut = Int(chance.below(Int64(records.count)))
            var grouped = try facts(Array(records[cut...]))
            grouped.merge(try facts(Array(records[..<cut])))
            #expect(grouped == expected, "seed \(seed)")
            #expect(try keptByWorker(shuffled) == expected.bytes[...], "the worker merges into what it kept")
        }
        var again = expected
        let isNew = again.merge(expected)
        #expect(!isNew && again == expected, "idempotent")
    }

    @Test func `are the same in every order of every four, by all orders`() throws {
        var chance = Chance(seed: 7)
        for _ in 0..<20 {
            let records = notifications(4, &chance)
            let expected = try facts(records)
            for order in permutations(of: [0, 1, 2, 3]) { #expect(try facts(order.map { records[$0] }) == expected) }
        }
    }

    @Test func `are the same at their limits, whatever came first`() throws {
        var chance = Chance(seed: 11)
        let rows = try (0..<1_200).map { try reading(told("A", at: $0, bought("\($0 % 700)", $0 / 2, $0 + 9))).facts }
        let infos = try (0..<400).map {
            try reading(told("A", at: d(0) + $0, nil, renewal($0 % 3 == 0 ? 1 : 0, at: d(30)))).facts
        }
        func merged(_ parts: [Facts]) -> Facts { parts.reduce(into: Facts()) { $0.merge($1) } }
        let expected = merged(rows + infos)
        #expect(expected.isTruncated && expected.purchases.count == 1_000 && expected.renewalInfos.count == 256)
        for _ in 0..<4 {
            let shuffled = (rows + infos).shuffled(using: &chance)
            #expect(merged(shuffled) == expected)
            var halves = merged(Array(shuffled[..<800]))
            halves.merge(merged(Array(shuffled[800...])))
            #expect(halves == expected)
        }
    }

    @Test func `tell whether anything was new`() throws {
        let one = try reading(told("A", at: d(0), period(1), renewal(0, at: d(30)))).facts
        var known = Facts()
        let (first, second) = (known.merge(one), known.merge(one))
        #expect(first && !second)
        let older = try reading(told("B", at: d(0) - 1, period(1))).facts
        let isOlderNew = known.merge(older)
        #expect(isOlderNew, "an older version moves the first date")
        let expired = try reading(told("EXPIRED", at: d(0) - 1, period(1))).facts
        let isExpiryNew = known.merge(expired)
        #expect(isExpiryNew)
    }
}

/// The history that a worker keeps after these records.
private func keptByWorker(_ records: [String]) throws -> ArraySlice<UInt8> {
    var teller = SubscriptionTeller(rules(), .production)
    var json = JSONDocument()
    var kept: [UInt8] = []
    var history = ArraySlice(Facts().bytes)
    for record in records {
        try json.read(Array(record.utf8).span)
        teller.read(json)
        let after: [UInt8]? = kept.withUnsafeBufferPointer { bytes in
            guard teller.load(kept.isEmpty ? nil : bytes, format: SubscriptionTeller.format), teller.mergeNews() else {
                return nil
            }
            Array("1".utf8).withUnsafeBufferPointer { id in
                _ = teller.tell(id, at: d(40), SubscriptionTeller.Origin(partition: 0, offset: 0))
            }
            history = teller.historyBytes
            return Array(teller.stateBytes)
        }
        kept = after ?? kept
    }
    return history
}

@Suite struct `An answer over time` {
    @Test(arguments: 0..<100 as Range<UInt64>)
    func `changes at the announced instants and at no other`(_ seed: UInt64) throws {
        var chance = Chance(seed: seed)
        let environment = chance.of(Environment.production, .sandbox)
        let known = try facts(notifications(1 + Int(chance.below(8)), &chance))
        guard let timeline = Timeline(known, rules(environment)) else { return }
        var now = d(-1)
        var changes = 0
        while let next = timeline.nextChange(after: now) {
            #expect(next > now && timeline.entitlement(at: next) != timeline.entitlement(at: now))
            #expect(timeline.entitlement(at: next - 1) == timeline.entitlement(at: now), "seed \(seed)")
            for _ in 0..<4 {
                let between = now + chance.below(next - now)
                #expect(timeline.entitlement(at: between) == timeline.entitlement(at: now), "seed \(seed)")
            }
            now = next
            changes += 1
            try #require(changes < 100)
        }
        for days in [1, 60, 90, 365] as [Int64] {
            #expect(timeline.entitlement(at: now + days * 24 * hour) == timeline.entitlement(at: now), "seed \(seed)")
        }
    }

    /// Readers with a clock depend on this: they do not have to wait for a timer.
    @Test(arguments: 0..<200 as Range<UInt64>)
    func `has access exactly until accessUntil, if nothing more is told`(_ seed: UInt64) throws {
        var chance = Chance(seed: 1_000 + seed)
        let known = try facts(notifications(1 + Int(chance.below(8)), &chance))
        guard let timeline = Timeline(known, rules()) else { return }
        for _ in 0..<20 {
            let now = d(chance.below(200)) + chance.below(3) * hour
            let answer = timeline.entitlement(at: now)
            guard answer.access else {
                #expect(answer.accessUntil != nil)
                continue
            }
            guard let end = answer.accessUntil else { continue }
            #expect(end > now, "seed \(seed): \(answer.state)")
            #expect(timeline.entitlement(at: end - 1).access, "seed \(seed)")
            #expect(!timeline.entitlement(at: end).access, "seed \(seed): \(words(timeline.entitlement(at: end)))")
            let between = now + chance.below(end - now)
            #expect(timeline.entitlement(at: between).access, "seed \(seed)")
        }
    }

    /// Two independently written implementations agree on random input.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `is that of the exact rules, read once more and word by word`(_ part: UInt64) throws {
        var chance = Chance(seed: 4_000 + part)
        for _ in 0..<40 {
            let records = notifications(1 + Int(chance.below(8)), &chance)
            let isSandbox = chance.yes(20)
            let plain = try PlainRules(records, app, leeway: hour, isSandbox: isSandbox)
            let timeline = Timeline(try facts(records), rules(isSandbox ? .sandbox : .production))
            for _ in 0..<15 {
                let now = d(chance.below(260)) + chance.of(0, 0, 1, hour - 1, hour)
                let expected = plain.members(at: now)
                let answer = timeline?.entitlement(at: now)
                #expect((expected == nil) == (answer == nil))
                for (name, value) in expected ?? [:] where answer?.value(of: name) != value {
                    Issue.record("\(name) is \(answer?.value(of: name) as Any), not \(value), at \(now) of \(records)")
                }
            }
        }
    }

    @Test(arguments: 0..<100 as Range<UInt64>)
    func `has runs that are sorted, apart and not empty`(_ seed: UInt64) throws {
        var chance = Chance(seed: 2_000 + seed)
        guard let timeline = Timeline(try facts(notifications(8, &chance)), rules()) else { return }
        let runs = timeline.entitlement(at: d(0)).runs
        for run in runs { #expect(run.end.map { $0 > run.start } ?? true) }
        for (left, right) in zip(runs, runs.dropFirst()) { #expect(left.end.map { $0 < right.start } ?? false) }
    }

    /// A reader that follows only the events must not keep a state that is over.
    @Test(arguments: 0..<200 as Range<UInt64>)
    func `takes no access away, and names no other reason for that, without an event`(_ seed: UInt64) throws {
        var chance = Chance(seed: 6_000 + seed)
        var known = Facts()
        var before: Told?
        // What was told refers to its timeline.
        var timelines: [Timeline] = []
        for record in notifications(8, &chance) {
            known.merge(try reading(record).facts)
            let now = d(chance.below(200)) + chance.below(3) * hour
            guard let timeline = Timeline(known, rules()) else { continue }
            timelines.append(timeline)
            let after = timeline.standing(at: now)
            let events = after.events(since: before, told: now)
            let state = after.answer.state
            if state != before?.state, let kind = Self.ends[state] {
                #expect(
                    events.contains { kind.contains($0.kind) },
                    "seed \(seed): \(String(describing: before?.state)) to \(state)")
            }
            before = after.told(after: before, events, answer: 0)
        }
        withExtendedLifetime(timelines) {}
    }

    private static let ends: [Entitlement.State: Set<EntitlementEvent.Kind>] = [
        .grace: [.enteredGrace], .billingRetry: [.enteredBillingRetry], .expired: [.expired],
        .revoked: [.refunded, .familyRevoked], .superseded: [.superseded],
    ]

    @Test func `does not stop at dates of the end of time`() throws {
        for date in [Int64.min, .min + 1, -1, 0, .max - 1, .max] {
            for other in [Int64.min, 0, .max] {
                for type in ["Auto-Renewable Subscription", "Non-Consumable"] {
                    let row = bought("1", date, other, signed: date, "'productId':'season','type':'\(type)'")
                    let info = failing(other, grace: date, signed: other)
                    let known = try timeline(told("A", at: date, row, info), told("B", at: other, period(1), info))
                    for now in [Int64.min, d(0), .max] {
                        _ = known.entitlement(at: now)
                        _ = known.nextChange(after: now)
                    }
                    let facts = try facts([told("A", at: date, row, info), told("B", at: other, period(1), info)])
                    #expect(Facts(encoded: facts.encoded) == facts)
                }
            }
        }
    }
}

private func permutations(of elements: [Int]) -> [[Int]] {
    guard let first = elements.first else { return [[]] }
    return permutations(of: Array(elements.dropFirst())).flatMap { rest in
        (0...rest.count).map { Array(rest[..<$0]) + [first] + Array(rest[$0...]) }
    }
}
