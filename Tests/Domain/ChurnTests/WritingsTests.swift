// This version writes what the versions before it wrote: same events, cells and overview, same kept bytes, same timers, byte for byte.
// The hashes are those of the domain on objects, which the domain on plain values replaced in November 2026.

import Configuration
import JSON
import MakeBelieve
import Notices
import Simulation
import SubscriptionHistory
import Testing
import Zone

@testable import Churn

/// What was written about one subscription.
private struct WrittenOutput {
    var state: [UInt8] = []
    var due: Int64?
    /// In the order in which they are written.
    var events: [[UInt8]] = []
    /// The states of the cells that changed, by key.
    var cells: [[UInt8]: [UInt8]] = [:]
    var overview: [UInt8] = []
}

private enum Outcome {
    case notJSON, undated, damagedState
    case nothing(isUnusable: Bool)
    case nothingNew(isUnusable: Bool)
    case written(WrittenOutput, isUnusable: Bool)
}

/// One subscription after the other, driven in the same way as the worker drives them. The cells are those of all of them.
private struct DrivenChain: ~Copyable {
    static let partition: Int32 = 7

    private let zone: Zone
    private var json = JSONDocument()
    private let reader = NoticeReader()
    private var chain: ChainState
    private var overview: Overview
    private var hasOverview = false
    private var cells: [[UInt8]: [UInt8]] = [:]
    private var key = Array("1".utf8)
    private(set) var kept: [UInt8]?
    private(set) var due: Int64?
    private var offset: Int64 = 0
    private(set) var writings = Writings()
    /// How often what was written.
    private(set) var seen = Seen()

    struct Seen {
        var events = 0
        var timers = 0
        var changes = 0
        var repetitions = 0
        var refusals = 0
        var compactions = 0
        var tails = 0
    }

    init(_ zone: Zone) {
        self.zone = zone
        chain = ChainState(zone)
        overview = Overview(day: 0, zone: zone.name)
    }

    /// Forgets the subscription, but not what it added to the cells.
    mutating func begin(_ key: String = "1", kept: [UInt8]? = nil) {
        self.key = Array(key.utf8)
        self.kept = kept
        due = nil
    }

    /// As when the timer could not be processed.
    mutating func loseTimer() { due = nil }

    /// Fires the timers that are due, and then hears the record.
    mutating func hear(_ value: [UInt8], at clock: Int64) {
        fire(until: clock)
        offset += 1
        take(hearNow(value, at: clock))
    }

    mutating func fire(until clock: Int64) {
        var rounds = 0
        while let instant = due, instant <= clock {
            if rounds == 10_000 {
                Issue.record("timers without end")
                return
            }
            seen.timers += 1
            rounds += 1
            let outcome = withKept { driven in
                .written(driven.counted(at: instant, nil, isInStep: true), isUnusable: false)
            }
            take(outcome)
        }
    }

    private mutating func hearNow(_ value: [UInt8], at clock: Int64) -> Outcome {
        guard (try? json.read(value.span)) != nil, json.kind(of: json.root) == .object else { return .notJSON }
        let notice = reader.read(json)
        guard let news = ChurnNews(notice, of: json) else { return .undated }
        let isUnusable = news.hasUnusableTransaction
        guard news.saysAnything else { return .nothing(isUnusable: isUnusable) }
        let cause = ChurnEvent.Cause(notice, partition: Self.partition, offset: offset)
        return withKept { driven in
            guard driven.chain.merge(news) else { return .nothingNew(isUnusable: isUnusable) }
            return .written(driven.counted(at: clock, cause, isInStep: driven.due != nil), isUnusable: isUnusable)
        }
    }

    private mutating func withKept(_ body: (inout DrivenChain) -> Outcome) -> Outcome {
        guard let kept else {
            chain.removeAll()
            return body(&self)
        }
        return kept.withUnsafeBufferPointer { chain.read($0) ? body(&self) : .damagedState }
    }

    private mutating func counted(at clock: Int64, _ cause: ChurnEvent.Cause?, isInStep: Bool) -> WrittenOutput {
        var output = WrittenOutput()
        let today = Int64(zone.dayNumber(of: clock))
        if !hasOverview { overview = Overview(day: today, zone: zone.name) }
        hasOverview = true
        overview.begin(today)
        let key = key
        key.withUnsafeBufferPointer { key in
            chain.settle(
                at: clock, originalTransactionId: PurchaseId(TextPlace(start: key.baseAddress!, count: key.count)),
                isInStep: isInStep)
            if chain.hasCountedTail { seen.tails += 1 }
            let event = ChurnEvent(originalTransactionId: key, clock: clock, cause: cause)
            for number in chain.changes.indices { add(chain.changes[number], event, &output) }
        }
        var writer = ByteWriter()
        overview.write(to: &writer)
        output.overview = writer.bytes
        writer.removeAll()
        let textCount = chain.timeline.facts.texts.count
        chain.write(to: &writer)
        if chain.timeline.facts.texts.count < textCount { seen.compactions += 1 }
        output.state = writer.bytes
        // What is written from its values is what is copied.
        writer.removeAll()
        chain.write(to: &writer, copiesKept: false)
        #expect(writer.bytes == output.state)
        output.due = chain.nextChange
        return output
    }

    private mutating func add(_ change: ChainState.Change, _ event: ChurnEvent, _ output: inout WrittenOutput) {
        overview.add(chain.sums(of: change), of: change.day, currency: chain.currency(of: change))
        let cellKey = chain.key(of: change, partition: Self.partition)
        let mark = CellState.Mark(asOf: event.clock, offset: offset)
        var cell = CellState(at: mark)
        if let kept = cells[cellKey] {
            let isCell = kept.withUnsafeBufferPointer { cell.read($0) }
            #expect(isCell)
        }
        cell.add(chain.sums(of: change), at: mark)
        var writer = ByteWriter()
        cell.write(to: &writer)
        cells[cellKey] = writer.bytes
        output.cells[cellKey] = writer.bytes
        var json = JSONWriter()
        Array("id-\(output.events.count)".utf8).withUnsafeBufferPointer { id in
            cellKey.withUnsafeBufferPointer {
                event.write(id: id, cell: $0, change: chain.sums(of: change), to: &json)
            }
        }
        output.events.append(json.bytes)
    }

    /// What is published of a cell.
    private func record(of key: [UInt8]) -> [UInt8]? {
        var cell = CellState(at: CellState.Mark(asOf: 0, offset: 0))
        guard let kept = cells[key], kept.withUnsafeBufferPointer({ cell.read($0) }) else { return nil }
        return CellKey(key).map { CellRecord(key: $0, sums: cell.sums, mark: cell.mark).value }
    }

    private mutating func take(_ outcome: Outcome) {
        writings.add(parts(of: outcome))
        switch outcome {
        case .written(let output, _):
            kept = output.state
            due = output.due
            seen.events += output.events.count
            seen.changes += output.events.isEmpty ? 0 : 1
        case .nothingNew: seen.repetitions += 1
        case .damagedState:
            seen.refusals += 1
            due = nil
        case .notJSON, .undated, .nothing: break
        }
    }

    private func parts(of outcome: Outcome) -> [[UInt8]] {
        guard case .written(let output, let isUnusable) = outcome else { return [Array("\(outcome)".utf8)] }
        let cells = output.cells.sorted { $0.key.lexicographicallyPrecedes($1.key) }.flatMap { key, cell in
            [key, cell, record(of: key) ?? []]
        }
        let rest = "\(output.due.map { "\($0)" } ?? "-") \(isUnusable)"
        return output.events + cells + [output.state, output.overview, Array(rest.utf8)]
    }
}

private func expectKnown(
    _ writings: Writings, _ name: String, sourceLocation: SourceLocation = #_sourceLocation
) {
    guard let fault = writings.fault(name, of: knownWritings) else { return }
    Issue.record(Comment(rawValue: fault), sourceLocation: sourceLocation)
}

@Suite struct `This version of churn and those before` {
    /// How the notifications of a life come.
    private enum Way: CaseIterable { case punctual, late, shuffled, backwards }

    private static let zones = ["UTC", "Europe/Berlin", "America/Los_Angeles", "Pacific/Apia"]

    private static func zone(_ part: Int) throws -> Zone {
        let name = zones[part % zones.count]
        return try name == "UTC" ? .utc : Zone(name: name)
    }

    @Test(arguments: 0..<8)
    func `count the same of every life of the simulator, in both environments, however it is told`(_ part: Int) throws {
        let driven = try driveLives(part, count: 60)
        expectKnown(driven.writings, "lives \(part)")
        let seen = driven.seen
        #expect(seen.events > 500 && seen.changes > 300 && seen.timers > 100, "\(seen)")
        #expect(seen.repetitions > 20, "\(seen)")
    }

    private func driveLives(_ part: Int, count: Int) throws -> DrivenChain {
        let simulation = try simulation(part, subscribers: count * 2)
        var chance = Chance(seed: UInt64(part))
        var driven = DrivenChain(try Self.zone(part))
        var judged = 0
        for subscriber in 0..<simulation.configuration.subscribers where judged < count {
            for (id, words) in Word.lives(of: subscriber, in: simulation) where judged < count {
                for way in Way.allCases {
                    driven.begin(id)
                    for word in Self.told(words, way, &chance) { driven.hear(word.record, at: word.at) }
                    driven.fire(until: simulation.configuration.end + 200 * day)
                }
                judged += 1
            }
        }
        #expect(judged == count, "as many lives as wanted")
        return driven
    }

    /// With the clock of the partition.
    private static func told(_ words: [Word], _ way: Way, _ chance: inout Chance) -> [Word] {
        var list: [Word]
        switch way {
        case .punctual: list = words
        case .late:
            list = []
            for word in words {
                let delay = chance.yes(30) ? chance.of(1, 13, 37, 85, 157) * hour : Int64(0)
                list.append(Word(at: word.at + delay, record: word.record))
                if chance.yes(30) { list.append(Word(at: word.at + delay + second, record: word.record)) }
            }
            list.sort { $0.at < $1.at }
        case .shuffled: list = (words + words.filter { _ in chance.yes(40) }).shuffled(using: &chance)
        case .backwards: list = words.reversed()
        }
        var clock = Int64.min
        return list.map { word in
            clock = max(clock, word.at)
            return Word(at: clock, record: word.record)
        }
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `count the same of lives of nonsense`(_ part: UInt64) throws {
        var chance = Chance(seed: 70_000 + part)
        var driven = DrivenChain(try Self.zone(Int(part)))
        for _ in 0..<40 {
            driven.begin(chance.of("1", "no. 1", "3", "\"\\\u{1}é"))
            let words = Word.nonsense(2 + Int(chance.below(14)), &chance)
            for word in Self.told(words, chance.of(.punctual, .late, .shuffled, .backwards), &chance) {
                // Ids that are no numbers.
                let record = String(decoding: word.record, as: UTF8.self)
                let named = record.replacing("\"transactionId\":\"3", with: "\"transactionId\":\"no. 3")
                driven.hear(Array((part % 2 == 0 ? record : named).utf8), at: word.at)
            }
            driven.fire(until: .max - 1)
        }
        expectKnown(driven.writings, "nonsense \(part)")
        #expect(driven.seen.events > 500 && driven.seen.timers > 50, "\(driven.seen)")
    }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `count the same of what nobody should send`(_ part: UInt64) throws {
        var chance = Chance(seed: 71_000 + part)
        func any<Value>(_ values: [Value]) -> Value { values[Int(chance.below(Int64(values.count)))] }
        var driven = DrivenChain(try Self.zone(Int(part)))
        for _ in 0..<60 {
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
        #expect(driven.seen.events > 200 && driven.seen.timers > 50, "\(driven.seen)")
    }

    /// The limits are reached by texts, by rows, and by notices.
    @Test(arguments: 0..<3)
    func `count the same at the limits`(_ kind: Int) throws {
        var chance = Chance(seed: 3)
        var driven = DrivenChain(.utc)
        let count = [1_000, 1_030, 560][kind]
        for number in (0..<count).shuffled(using: &chance) {
            let from = instant(1, 1) + Int64(number) * hour
            var story = WrittenStory()
            // With the long names the kept bytes are compacted too.
            let name = String(repeating: "n", count: kind == 0 ? 250 : 3) + "\(number % (kind == 1 ? 9 : 1_000))"
            let bought = row(
                "\(number)", from, from + hour,
                ["productId": "p" + name, "storefront": "s" + name, "currency": "c" + name])
            if kind == 2 {
                story.tell("REFUND_DECLINED", at: from, january)
            } else if number % 3 == 0 {
                story.fails(bought, at: from + hour)
            } else {
                story.renews(bought)
            }
            let record = String(decoding: story.records[0], as: UTF8.self)
            driven.hear(Array(record.replacing("\"n0\"", with: "\"n\(number)\"").utf8), at: instant(12, 1))
        }
        expectKnown(driven.writings, "limits \(kind)")
        #expect(driven.seen.events > count / 3)
        #expect(kind != 0 || driven.seen.compactions > 0)
    }

    /// A byte of a state is another one, or is missing.
    @Test(arguments: 0..<8 as Range<UInt64>)
    func `read the same of damaged states`(_ part: UInt64) throws {
        var chance = Chance(seed: 72_000 + part)
        var driven = DrivenChain(.utc)
        var read = 0
        for _ in 0..<8 {
            driven.begin()
            for word in Word.nonsense(8, &chance) { driven.hear(word.record, at: word.at) }
            guard let whole = driven.kept else { continue }
            let late = Word.nonsense(1, &chance)[0]
            for _ in 0..<250 {
                let damaged = Self.damaged(whole, &chance)
                driven.begin(kept: damaged)
                driven.hear(late.record, at: late.at + 400 * day)
                if driven.kept != damaged { read += 1 }
                driven.fire(until: .max - 1)
            }
        }
        expectKnown(driven.writings, "damaged \(part)")
        #expect(driven.seen.refusals > 300 && read > 300, "\(driven.seen), \(read)")
    }

    /// Of these most notices are only looked through at first.
    @Test(arguments: 0..<4 as Range<UInt64>)
    func `read the same of damaged states of long lives`(_ part: UInt64) throws {
        var chance = Chance(seed: 73_000 + part)
        var driven = DrivenChain(.utc)
        let words = LongLife(periods: 36, unrest: 12, Chance(seed: chance.next())).words
        var clock = Int64.min
        driven.begin()
        for word in words.dropLast() {
            clock = max(clock, word.at)
            driven.hear(word.record, at: clock)
        }
        let kept = driven.kept
        let whole = try #require(kept)
        clock = max(clock, words[words.count - 1].at)
        var read = 0
        for _ in 0..<400 {
            let damaged = Self.damaged(whole, &chance)
            driven.begin(kept: damaged)
            driven.hear(words[words.count - 1].record, at: clock)
            if driven.kept != damaged { read += 1 }
        }
        expectKnown(driven.writings, "damaged long lives \(part)")
        #expect(driven.seen.refusals > 50 && read > 50, "\(driven.seen), \(read)")
    }

    private static func damaged(_ whole: [UInt8], _ chance: inout Chance) -> [UInt8] {
        var damaged = whole
        for _ in 0...chance.below(2) {
            let place = Int(chance.below(Int64(damaged.count)))
            switch chance.below(4) {
            case 0: damaged.remove(at: place)
            case 1: damaged.insert(UInt8(chance.below(256)), at: place)
            default: damaged[place] ^= 1 << UInt8(chance.below(8))
            }
        }
        return damaged
    }
}
