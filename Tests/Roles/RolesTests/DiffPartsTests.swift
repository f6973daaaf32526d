import Configuration
import Contract
import Log
import Testing

@testable import Tools

@Suite struct `The source of a record` {
    private let positions = InputPositions(
        shadow: [TopicPartition("a.b", 3): NextOffset(10)], live: [TopicPartition("a.b", 3): NextOffset(20)])

    private func judge(_ rule: SourceRule, _ source: String?) -> Bool {
        var rule = rule
        guard let source else { return rule.isNewer(nil) }
        let bytes = Array(source.utf8)
        return rule.isNewer(bytes.span)
    }

    @Test func `makes it newer from the other side's position on`() {
        #expect(!judge(.live(positions), "a.b:3:9"))
        #expect(judge(.live(positions), "a.b:3:10"))
        #expect(!judge(.shadow(positions), "a.b:3:19"))
        #expect(judge(.shadow(positions), "a.b:3:20"))
    }

    @Test func `in a partition without a position is newer than a replay, and not than the live worker`() {
        #expect(judge(.live(positions), "a.b:4:0"))
        #expect(!judge(.shadow(positions), "a.b:4:0"))
    }

    @Test(arguments: [
        nil, "", ":", "a.b", "a.b:3", "a.b:3:", "a.b:x:9", "a.b:-3:99", ":3:99", "a.b:3:9x",
        "a.b:3:1234567890123456789",
    ])
    func `that says nothing makes it nothing`(source: String?) {
        #expect(!judge(.live(positions), source))
    }

    @Test func `is looked up anew when the place changes`() {
        var rule = SourceRule.live(positions)
        var found: [Bool] = []
        for source in ["a.b:3:9", "a.b:4:9", "a.b:3:9", "a.b:3:10", "nothing", "a.b:3:9"] {
            let bytes = Array(source.utf8)
            found.append(rule.isNewer(bytes.span))
        }
        #expect(found == [false, true, false, true, false, false])
    }
}

@Suite struct `What a replay has left` {
    private let partition = TopicPartition("t", 0)

    private func lag(_ places: (beginning: Int64, end: Int64, goal: Int64), position: Int64?) -> InputLag {
        InputLag(
            beginnings: [partition: NextOffset(places.beginning)], ends: [partition: NextOffset(places.end)],
            goals: [partition: NextOffset(places.goal)], positions: position.map { [partition: NextOffset($0)] } ?? [:])
    }

    @Test func `is counted from its position, or from the beginning`() {
        let some = lag((10, 30, 20), position: 15)
        #expect(some.missing == 5 && some.waiting == 15 && some.records == 20)
        #expect(some.isMissing == [partition: 15..<20])
        let all = lag((10, 30, 20), position: nil)
        #expect(all.missing == 10 && all.waiting == 20)
        #expect(lag((10, 30, 20), position: 3).missing == 10, "what was deleted cannot be read any more")
        #expect(lag((0, 0, 0), position: nil).missing == 0)
        #expect(lag((10, 30, 20), position: 30).isMissing.isEmpty)
    }
}

@Suite struct `The progress of a comparison` {
    /// Two partitions, each of which is read first and then compared.
    @Test func `is that of reading and of comparing alike, and is whole at the end of the last comparison`() {
        var work = DiffProgress(records: 100)
        #expect(work.fraction(0.5, of: 40) == 0.1)
        work.done(40)
        #expect(work.fraction(0.5, of: 40) == 0.3)
        work.done(40)
        work.done(60)
        #expect(work.fraction(0, of: 60) == 0.7, "everything is read, and the last partition is to be compared")
        #expect(work.fraction(0.5, of: 60) == 0.85)
        work.done(60)
        #expect(work.fraction(0, of: 0) == 1 && DiffProgress(records: 0).fraction(0, of: 0) == 1)
    }
}

@Suite struct `The join` {
    private func join(records: Int64 = 1, keepsAll: Bool = false) throws -> KeyJoin {
        try KeyJoin(in: "/tmp", records: records, keepsAll: keepsAll)
    }

    private func add(
        _ join: KeyJoin, _ side: Side, _ key: String, _ value: String?, isNewer: Bool = false, _ offset: Int64 = 0
    ) throws {
        let key = Array(key.utf8)
        if let value = value.map({ Array($0.utf8) }) {
            try join.add(side, key: key.span, value: value.span, isNewer: isNewer, offset: offset, timestamp: -offset)
        } else {
            try join.add(side, key: key.span, value: nil, isNewer: isNewer, offset: offset, timestamp: -offset)
        }
    }

    private func all(_ join: KeyJoin) throws -> [String: JoinedKey] {
        var found: [String: JoinedKey] = [:]
        var last = -1.0
        try join.eachKey { key, part in
            #expect(part > last && part < 1, "a part of all that grows")
            last = part
            #expect(found.updateValue(key, forKey: String(decoding: key.key, as: UTF8.self)) == nil, "each once")
        }
        return found
    }

    @Test(arguments: [1, 1_000_000, 100_000_000] as [Int64])
    func `gives the last record of every key on each side, in however many files`(records: Int64) throws {
        let join = try join(records: records)
        for number in 0..<5000 { try add(join, .here, "k\(number)", "old", Int64(number)) }
        for number in 0..<5000 {
            try add(join, .here, "k\(number)", "h\(number)", isNewer: number % 2 == 0, Int64(number))
        }
        for number in 2500..<7500 { try add(join, .there, "k\(number)", number % 3 == 0 ? nil : "t\(number)", 7) }
        let found = try all(join)
        #expect(found.count == 7500)
        for number in 0..<7500 {
            let key = try #require(found["k\(number)"])
            #expect(
                key.here
                    == (number < 5000
                        ? [
                            JoinedRecord(
                                value: Array("h\(number)".utf8),
                                isNewer: number % 2 == 0,
                                offset: Int64(number), timestamp: -Int64(number))
                        ] : []))
            #expect(
                key.there.map(\.value)
                    == (number < 2500 ? [] : [number % 3 == 0 ? nil : Array("t\(number)".utf8)]))
        }
        #expect(try all(join).isEmpty, "then there is nothing more")
    }

    @Test func `keeps all records of a key in their order where all count`() throws {
        let join = try join(keepsAll: true)
        for number in 0..<100 {
            try add(join, number % 2 == 0 ? .here : .there, "a", "\(number)", Int64(number))
            try add(join, .here, "b\(number)", "x")
        }
        let key = try #require(try all(join)["a"])
        #expect(key.here.map(\.offset) == (0..<50).map { $0 * 2 })
        #expect(key.there.map(\.offset) == (0..<50).map { $0 * 2 + 1 })
    }

    @Test func `takes keys and values of any length`() throws {
        let join = try join()
        let long = String(repeating: "k", count: 5 << 20)
        try add(join, .here, "", "empty key")
        try add(join, .here, "b", "")
        try add(join, .here, long, "long key")
        try add(join, .there, "c", long)
        try add(join, .there, long, nil)
        let found = try all(join)
        #expect(found.count == 4)
        #expect(found[""]?.here.first?.value == Array("empty key".utf8))
        #expect(found["b"]?.here.first?.value == [])
        #expect(
            found[long]?.here.first?.value == Array("long key".utf8) && found[long]?.there.first?.value == .some(nil))
        #expect(found["c"]?.there.first?.value?.count == 5 << 20)
    }
}
