import Churn
import ChurnWorker
import Contract
import JSON
import Log
import LogTestKit
import MakeBelieve
import MemoryLog
import Notices
import Runtime
import Telemetry
import Testing
import WorkerTestKit

/// Writes into the state of the churn worker what the worker would never write.
private struct Vandal: Processor {
    let definition: WorkerDefinition
    let key: [UInt8]

    func process(_ record: borrowing RecordView, _ turn: Turn) throws(ProcessFailure) {
        try turn.state(key.span).put([0xff, 0xff, 0xff].span)
    }

    func fire(_ timer: TimerName, _ turn: Turn) {}
}

/// The largest record that is not a dead letter, key and value together.
private let limitBytes = 256 << 10

@Suite struct `The counting worker and what nobody should send` {
    @Test func `works on behind every absurd value of every member, and of any two together`() throws {
        let shop = try Shop()
        func feed(_ members: [(String, String)], _ key: String) throws {
            try shop.feed(Array(key.utf8), Array(Absurdity.notification(members).utf8), at: d(200))
        }
        var count = 0
        for member in Absurdity.members {
            for value in Absurdity.values {
                try feed([(member, value)], "one-\(count)")
                count += 1
            }
        }
        var dice = SplitMix64(seed: 12)
        for number in 0..<2_000 {
            let members = (0..<Int.random(in: 2...8, using: &dice)).map { _ in
                (Absurdity.members.randomElement(using: &dice)!, Absurdity.values.randomElement(using: &dice)!)
            }
            // There are few keys, so absurd facts pile up, and timers with absurd dates, too.
            try feed(members, "many-\(number % 40)")
        }
        try shop.tell(start(), of: "2000", received: d(200))
        #expect(try shop.letters() == [])
        for topic in [TopicID.churnCells, .churnEvents] {
            for seen in try shop.seen(topic) {
                let value = try seen.value.map { try JSONValue.read($0) }
                #expect(value?["day"]?.string.map { $0.count == 10 } ?? true, "\(seen)")
                #expect((seen.key?.count ?? 0) + (seen.value?.count ?? 0) < limitBytes)
            }
        }
        #expect(try shop.cells().count > 5)
        // The events add up to the cells, absurd or not.
        #expect(try sums(of: shop) == shop.cells().mapValues(\.sums.description))
    }

    private func sums(of shop: Shop) throws -> [String: String] {
        var sums: [String: Sums] = [:]
        for seen in try shop.seen(.churnEvents) {
            let event = try JSONValue.read(seen.value ?? [])
            let cell = try #require(event["cell"]?.string)
            for part in ["counts", "money"] {
                for member in event[part]?.object?.members ?? [] {
                    let counter = try #require(ChurnCounter(name: member.name))
                    sums[cell, default: Sums()].add(try #require(member.value.integer), to: counter)
                }
            }
        }
        return try sums.filter { !$0.value.isEmpty }.mapValues { sums in
            var objects: [JSONValue?] = []
            for isMoney in [false, true] {
                let members = sums.all.filter { $0.counter.isMoney == isMoney }
                let text = members.map { "\"\($0.counter.name)\":\($0.value)" }.joined(separator: ",")
                objects.append(try JSONValue.read(Array("{\(text)}".utf8)))
            }
            return objects.description
        }
    }

    @Test func `puts aside what is no notification, with the reason, and works on`() throws {
        let shop = try Shop()
        let good = start().value
        let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
        let unreadable: [[UInt8]] = [
            [], Array("{".utf8), Array("[]x".utf8), [0xff, 0xfe], Array("{\"future\":\(deep)}".utf8), good.dropLast(),
            Array("[]".utf8), Array("1".utf8), Array("\"x\"".utf8), Array("null".utf8),
        ]
        for bytes in unreadable { try shop.feed(Array("1000".utf8), bytes, at: d(0)) }
        try shop.feed(Array("1000".utf8), nil, at: d(0))
        let strangeKeys: [[UInt8]] = [[], [0], [0] + Array("1000".utf8), [0xff, 0xfe], Array("1000".utf8) + [0xc3]]
        for key in strangeKeys { try shop.feed(key, good, at: d(0)) }
        try shop.simulation.feed(
            partition: 0, key: nil, value: good,
            headers: [RecordHeader("schema", "notification/1")], timestamp: d(0))
        try shop.tell(start())
        let letters = try shop.letters()
        #expect(letters.count { $0 == "json" } == unreadable.count)
        #expect(letters.count { $0 == "no_notification" } == 2)
        #expect(letters.count { $0 == "key" } == strangeKeys.count)
        #expect(letters.count == unreadable.count + 2 + strangeKeys.count, "\(letters)")
        #expect(try shop.cells().keys.sorted() == [Shop.cell("2026-01-01")])
    }

    @Test func `counts what it cannot follow, and is silent about what is of no subscription`() throws {
        let metrics = Metrics()
        let shop = try Shop(makeProcessor(metrics: metrics))
        func feed(_ text: String) throws { try shop.feed(Array("1000".utf8), Array(text.utf8), at: d(0)) }
        for text in ["{}", "{\"signedDate\":\"today\"}", "{\"signedDate\":1.5,\"transaction\":{}}"] { try feed(text) }
        let (at, end) = ("\"signedDate\":\(d(0))", "\"expiresDate\":\(d(30))")
        let renewing = "\"type\":\"Auto-Renewable Subscription\""
        for transaction in [
            "{}", "{\"purchaseDate\":\(d(0)),\(end)}", "{\"transactionId\":\"1\",\(end)}",
            "{\"transactionId\":\"1\",\"purchaseDate\":\(d(0)),\(renewing)}",
        ] { try feed("{\(at),\"transaction\":\(transaction)}") }
        for text in ["{\(at)}", "{\(at),\"summary\":{}}", "{\(at),\"transaction\":null,\"renewalInfo\":7}"] {
            try feed(text)
        }
        try shop.work()
        #expect(readings(metrics)["perennial_churn_undated_notifications_total"] == 3)
        #expect(readings(metrics)["perennial_churn_unusable_transactions_total"] == 4)
        #expect(try shop.letters() == [])
        #expect(try shop.seen(.churnCells).isEmpty && shop.seen(.churnEvents).isEmpty)
    }

    @Test func `takes a part with a divider in it for absent, and one too long`() throws {
        let shop = try Shop()
        let long = String(repeating: "x", count: 257)
        try shop.tell(start("1", ["productId": "\"a|b\"", "storefront": "\"\(long)\"", "currency": "\"\""]))
        try shop.tell(start("1", ["bundleId": "\"|\"", "productId": "\"\(long.dropLast())\""]), of: "1001")
        let keys = try shop.cells().keys.sorted { $0.count < $1.count }
        #expect(keys.first == "\(Shop.partition(of: "1000"))|2026-01-01|com.example.one||BILLED_UPFRONT||")
        #expect(
            keys.last == "\(Shop.partition(of: "1001"))|2026-01-01||\(long.dropLast())|BILLED_UPFRONT|USA|USD")
        #expect(try shop.wrong() == [])
    }

    /// The host's clock is absurdly wrong: the worker cannot repair that, but it must not hang.
    @Test func `comes to the end of time, and does not stay there`() throws {
        let shop = try Shop()
        let last: Int64 = 253_402_300_799_999
        try shop.tell(start(), received: last - 2 * day)
        for instant in [last - day, last, last + 1, .max] { try shop.tick(instant) }
        try shop.tell(start(), of: "1001", received: .max)
        #expect(try shop.letters() == [])
        #expect(try shop.cells()[Shop.cell("2026-01-31")]?["counts"]?["lapsedOther"]?.integer == 1)
    }

    @Test(arguments: ["chain", "cell"])
    func `puts aside what would need a damaged state, and counts the others`(what: String) throws {
        let shop = try Shop()
        try shop.tell(start())
        try shop.work()
        let keys: [String: [UInt8]] = [
            "chain": Array("1000".utf8), "cell": [0] + Array(Shop.cell("2026-01-31").utf8),
        ]
        let process = shop.simulation.processes[0]
        shop.simulation.stop(process)
        shop.simulation.processor = Vandal(definition: makeProcessor().definition, key: try #require(keys[what]))
        shop.simulation.start(process)
        try shop.tell(start(), received: d(1))
        try shop.work()
        shop.simulation.stop(process)
        let metrics = Metrics()
        shop.simulation.processor = makeProcessor(metrics: metrics)
        shop.simulation.start(process)
        let events = try shop.seen(.churnEvents).count
        try shop.tell(renewal(of: 2), received: d(30))
        // For the same partition.
        let other = Shop.neighbours(of: "1000", 1)[0]
        try shop.tell(start(at: d(40)), of: other, received: d(40))
        let letters = try shop.letters()
        #expect(Set(letters) == ["state"])
        #expect(letters.count == 2, "\(letters)")
        let told = try shop.seen(.churnEvents).dropFirst(events)
        #expect(told.contains { $0.keyText == other }, "\(told)")
    }
}
