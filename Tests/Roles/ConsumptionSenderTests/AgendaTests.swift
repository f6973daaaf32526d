import LogTestKit
import MemoryLog
import Notices
import Testing

@testable import Consumption
@testable import ConsumptionSender

@Suite struct `A sorted list` {
    @Test func `is as an array that is sorted after each change`() {
        var dice = SplitMix64(seed: 7)
        var list = SortedList<Int>()
        var model: [Int] = []
        for _ in 0..<20_000 {
            let number = Int.random(in: 0..<200, using: &dice)
            switch Int.random(in: 0..<5, using: &dice) {
            case 0, 1:
                if !model.contains(number) {
                    list.insert(number)
                    model = (model + [number]).sorted()
                }
            case 2:
                list.remove(number)
                model.removeAll { $0 == number }
            case 3 where !model.isEmpty:
                list.removeFirst()
                model.removeFirst()
            default: break
            }
            #expect(list.isEmpty == model.isEmpty)
            #expect(list.first == model.first)
            #expect(Array(list.prefix(7)) == Array(model.prefix(7)))
        }
        #expect(Array(list.prefix(.max)) == model)
    }
}

@Suite struct `The agenda` {
    /// The expected result, found in a plain list.
    private struct Model {
        struct Entry {
            var answer: OpenAnswer
            var readySince: Duration?
        }
        var entries: [AnswerName: Entry] = [:]

        func next(_ count: Int, of app: Text) -> [AnswerName] {
            let ready = entries.values.filter { $0.readySince != nil && $0.answer.bundleId == app }.map(\.answer)
            let chosen = Set(ready.map(\.name.partition)).flatMap { partition in
                ready.filter { $0.name.partition == partition }.sorted(by: Self.isBefore).prefix(count)
            }
            return chosen.sorted(by: Self.isBefore).map(\.name)
        }

        private static func isBefore(_ left: OpenAnswer, _ right: OpenAnswer) -> Bool {
            (left.deadline, left.name.id) < (right.deadline, right.name.id)
        }
    }

    @Test func `is as a plain list that is searched`() throws {
        var dice = SplitMix64(seed: 11)
        var agenda = Agenda()
        var model = Model()
        var wall: Int64 = 0
        let apps: [Text] = ["a", "b"]
        for _ in 0..<6_000 {
            let id = Int.random(in: 0..<60, using: &dice)
            switch Int.random(in: 0..<4, using: &dice) {
            case 0, 1:
                let answer = try answer(
                    "\(id)", partition: Int32(id % 3), app: apps[id % 2],
                    deadline: .random(in: 0..<50, using: &dice), dueAt: wall + .random(in: -10..<20, using: &dice))
                agenda.schedule(answer)
                model.entries[answer.name] = Model.Entry(answer: answer)
            case 2:
                let name = AnswerName(partition: Int32(id % 3), id: Text("\(id)"))
                agenda.remove(name)
                model.entries[name] = nil
            default:
                wall += .random(in: 0..<5, using: &dice)
                agenda.advance(to: wall, .milliseconds(wall))
                for (name, entry) in model.entries where entry.readySince == nil && entry.answer.dueAt <= wall {
                    model.entries[name]?.readySince = .milliseconds(wall)
                }
            }
            #expect(agenda.count == model.entries.count)
            for app in apps { #expect(agenda.next(4, of: app) == model.next(4, of: app)) }
            #expect(model.entries.allSatisfy { agenda.readySince($0.key) == $0.value.readySince })
            let ready = Set(model.entries.values.filter { $0.readySince != nil }.map(\.answer.bundleId))
            #expect(agenda.apps == ready.sorted())
        }
    }

    private func answer(_ id: String, partition: Int32, app: Text, deadline: Int64, dueAt: Int64) throws -> OpenAnswer {
        var record = ConsumptionRecord(
            .decided, id: Text(id), originalTransactionId: "o", transactionId: "t", at: 0, deadline: deadline,
            reason: nil)
        record.body = []
        return try #require(OpenAnswer(record, partition: partition, isV1: false, bundleId: app, dueAt: dueAt))
    }
}

@Suite struct `The pace of an app` {
    @Test(arguments: [0.4, 1, 3.3, 5, 12.5, 50])
    func `never takes more than its rate in any second, however it is asked`(_ rate: Double) {
        var dice = SplitMix64(seed: 3)
        var pace = AppPace()
        var taken: [Duration] = []
        var now = Duration.zero
        while now < .seconds(60) {
            for _ in 0..<Int.random(in: 0..<20, using: &dice) where pace.take(at: now, perSecond: rate) {
                taken.append(now)
            }
            now += .milliseconds(Int.random(in: 0..<400, using: &dice) == 0 ? 700 : 13)
        }
        for (index, first) in taken.enumerated() {
            let end = first + .seconds(1)
            let inSecond = taken[index...].prefix { $0 < end }.count
            #expect(inSecond <= max(1, Int(rate.rounded(.up))))
        }
        // It is also not slow: most of the rate is used.
        #expect(Double(taken.count) > 60 * rate * 0.6)
    }

    @Test func `takes nothing in a pause, and nothing without a share`() {
        var pace = AppPace()
        func take(at now: Duration, _ rate: Double) -> Bool { pace.take(at: now, perSecond: rate) }
        #expect(!take(at: .seconds(1), 0))
        pace.pause(until: .seconds(5))
        pace.pause(until: .seconds(3))
        #expect(!take(at: .milliseconds(4_999), 50))
        #expect(take(at: .seconds(5), 50))
    }
}

@Suite struct `Waiting for the next attempt` {
    @Test func `is doubled, jittered by half, and ten minutes at most`() {
        #expect((1...4).map { Retry.wait(after: $0, jitter: 1) } == [1_000, 2_000, 4_000, 8_000])
        #expect((1...4).map { Retry.wait(after: $0, jitter: 0) } == [500, 1_000, 2_000, 4_000])
        for number: Int64 in [10, 11, 20, 21, 22, 64, 1_000, .max] {
            let wait = Retry.wait(after: number, jitter: 1)
            #expect(wait == min(600_000, number == 10 ? 512_000 : .max))
        }
        #expect([Int64.min, -1, 0].allSatisfy { Retry.wait(after: $0, jitter: 1) == 1_000 })
    }

    @Test func `is cut to the last moment that can still be used`() {
        let last: Int64 = 1_000_000 - 30_000 - 10_000
        #expect(Retry.due(900_000, now: 0, deadline: 1_000_000) == 900_000)
        #expect(Retry.due(last + 1, now: 0, deadline: 1_000_000) == last)
        #expect(Retry.due(9_000_000, now: last - 1_001, deadline: 1_000_000) == last)
        // No room for another attempt: the request keeps its state, and is too late.
        #expect(Retry.due(9_000_000, now: last - 1_000, deadline: 1_000_000) == 9_000_000)
    }

    @Test(arguments: [nil, .min, -1, 0, 60, 1_700_000_000, 1_700_000_000_000] as [Int64?])
    func `for an app is a minute where Apple names no time ahead`(_ retryAfter: Int64?) {
        #expect(Retry.pauseEnd(retryAfter: retryAfter, now: 1_700_000_000_000) == 1_700_000_060_000)
    }

    @Test func `for an app is as long as Apple says, and an hour at most`() {
        let now: Int64 = 1_700_000_000_000
        #expect(Retry.pauseEnd(retryAfter: now + 1, now: now) == now + 1)
        #expect(Retry.pauseEnd(retryAfter: now + 3_600_001, now: now) == now + 3_600_000)
        #expect(Retry.pauseEnd(retryAfter: .max, now: now) == now + 3_600_000)
    }
}
