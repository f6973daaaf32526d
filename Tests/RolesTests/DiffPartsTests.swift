import Configuration
import Contract
import Log
import Testing

@testable import Roles

@Suite struct `The source of a record` {
    private let positions = InputPositions(
        shadow: [TopicPartition("a.b", 3): NextOffset(10)], live: [TopicPartition("a.b", 3): NextOffset(20)])

    private func judge(_ rule: SourceRule, _ source: String?) -> SourceRule.Judgement {
        var rule = rule
        guard let source else { return rule.judge(nil) }
        let bytes = Array(source.utf8)
        return rule.judge(bytes.span)
    }

    @Test func `makes it newer from the other side's position on`() {
        #expect(!judge(.live(positions), "a.b:3:9").isNewer)
        #expect(judge(.live(positions), "a.b:3:10").isNewer)
        #expect(!judge(.shadow(positions), "a.b:3:19").isNewer)
        #expect(judge(.shadow(positions), "a.b:3:20").isNewer)
    }

    @Test func `in a partition without a position is newer than a replay, and not than the live worker`() {
        #expect(judge(.live(positions), "a.b:4:0").isNewer)
        #expect(!judge(.shadow(positions), "a.b:4:0").isNewer)
    }

    @Test(arguments: [
        nil, "", ":", "a.b", "a.b:3", "a.b:3:", "a.b:x:9", "a.b:-3:99", ":3:99", "a.b:3:9x",
        "a.b:3:1234567890123456789",
    ])
    func `that says nothing makes it nothing`(source: String?) {
        #expect(judge(.live(positions, silentBefore: [TopicPartition("a.b", 3): NextOffset(99)]), source) == .init())
    }

    @Test func `is silent before the place at which output began`() {
        let rule = SourceRule.live(positions, silentBefore: [TopicPartition("a.b", 3): NextOffset(5)])
        #expect(judge(rule, "a.b:3:4").isSilent)
        #expect(!judge(rule, "a.b:3:5").isSilent)
        #expect(!judge(rule, "a.b:4:0").isSilent)
    }

    @Test func `is looked up anew when the place changes`() {
        var rule = SourceRule.live(positions, silentBefore: [:])
        var found: [Bool] = []
        for source in ["a.b:3:9", "a.b:4:9", "a.b:3:9", "a.b:3:10", "nothing", "a.b:3:9"] {
            let bytes = Array(source.utf8)
            found.append(rule.judge(bytes.span).isNewer)
        }
        #expect(found == [false, true, false, true, false, false])
    }
}

@Suite struct `What a replay has left` {
    @Test func `is counted from its position, or from the beginning`() {
        var lag = InputLag()
        lag.add(from: NextOffset(10), to: NextOffset(30), goal: NextOffset(20), position: NextOffset(15))
        #expect(lag.missing == 5 && lag.waiting == 15 && lag.records == 20)
        lag.add(from: NextOffset(10), to: NextOffset(30), goal: NextOffset(20), position: nil)
        #expect(lag.missing == 15 && lag.waiting == 35)
        lag.add(from: NextOffset(10), to: NextOffset(30), goal: NextOffset(20), position: NextOffset(3))
        #expect(lag.missing == 25, "what was deleted cannot be read any more")
        lag.add(from: NextOffset(0), to: NextOffset(0), goal: NextOffset(0), position: nil)
        lag.add(from: NextOffset(10), to: NextOffset(30), goal: NextOffset(20), position: NextOffset(30))
        #expect(lag.missing == 25)
    }
}

@Suite struct `The mark of a replay` {
    private func mark(_ text: String) -> ReplayMark? { ReplayMark(Array(text.replacing("'", with: "\"").utf8)) }

    @Test func `tells when it was begun and where its output begins`() {
        #expect(
            mark("{'v':1,'app':'x','begunAt':7,'silentBefore':[{'topic':'t','partition':2,'offset':9}],'later':1}")
                == ReplayMark(begunAt: 7, silentBefore: [TopicPartition("t", 2): NextOffset(9)]))
        #expect(mark("{'v':1,'begunAt':7,'silentBefore':[]}") == ReplayMark(begunAt: 7))
    }

    @Test(arguments: ["", "{}", "{'v':2,'begunAt':7,'silentBefore':[]}", "{'v':1,'begunAt':7,'silentBefore':[{}]}"])
    func `of another kind is none`(text: String) { #expect(mark(text) == nil) }
}

@Suite struct `The join` {
    private func join(records: Int64 = 1, keepsAll: Bool = false) throws -> KeyJoin {
        try KeyJoin(in: "/tmp", records: records, keepsAll: keepsAll)
    }

    private func add(
        _ join: KeyJoin, _ side: Side, _ key: String, _ value: String?, isNewer: Bool = false, _ offset: Int64 = 0
    ) throws {
        let key = Array(key.utf8)
        let judgement = SourceRule.Judgement(isNewer: isNewer, isSilent: !isNewer)
        if let value = value.map({ Array($0.utf8) }) {
            try join.add(side, key: key.span, value: value.span, judgement, offset: offset, timestamp: -offset)
        } else {
            try join.add(side, key: key.span, value: nil, judgement, offset: offset, timestamp: -offset)
        }
    }

    private func all(_ join: KeyJoin) throws -> [String: JoinedKey] {
        var found: [String: JoinedKey] = [:]
        try join.eachKey { key in
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
                                judgement: .init(isNewer: number % 2 == 0, isSilent: number % 2 != 0),
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
