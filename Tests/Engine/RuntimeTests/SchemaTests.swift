import Log
import LogTestKit
import MemoryLog
import Testing

@testable import Runtime

@Suite struct `What the headers of a record say` {
    private func meaning(
        _ type: String?, _ schema: String?, isTable: Bool = false, withoutHeader: Bool = false
    ) -> RecordMeaning {
        let input = InputTopic(
            "topic", kinds: [.init("word", version: 2), .init("words", version: 1)],
            withoutHeader: withoutHeader ? .init("row", version: 1) : nil)
        var headers: [RecordHeader] = []
        if let type { headers.append(RecordHeader("type", type)) }
        if let schema { headers.append(RecordHeader("schema", schema)) }
        let records = HeldRecords()
        let batch = RecordBatch()
        records.lend(.init(offset: 0, timestamp: 0, headers: headers), into: batch)
        return input.meaning(of: batch[0], isTable: isTable)
    }

    @Test func `is known up to the version of this build`() {
        #expect(meaning("word", "word/1") == .known)
        #expect(meaning("word", "word/2") == .known)
        #expect(meaning("word", nil) == .known)
        #expect(meaning("words", "words/1") == .known)
        #expect(meaning(nil, "word/1") == .known)
        #expect(meaning(nil, "word/2") == .known)
        #expect(meaning(nil, "words/1") == .known)
    }

    @Test(arguments: ["word/3", "word/10", "word/999999999"])
    func `is newer, and never strange, beyond it`(schema: String) {
        for type in ["word", nil] {
            guard case .newerSchema(let words) = meaning(type, schema) else {
                Issue.record("\(meaning(type, schema))")
                continue
            }
            #expect(words.contains(schema) && words.contains("upgrade"))
        }
    }

    @Test(arguments: [
        "word", "word/", "word/0", "word/x", "word/1x", "word/-1", "word/ 1", "words/1", "wor/1", "/1", "", "word1",
        "WORD/1", "word/9999999999",
    ])
    func `is strange when the schema is malformed`(schema: String) {
        guard case .strange(let why) = meaning("word", schema) else {
            Issue.record("\(schema): \(meaning("word", schema))")
            return
        }
        #expect(why.reason == "schema")
    }

    @Test(arguments: [
        "word", "word/", "word/0", "word/x", "word/1x", "word/-1", "word/1/1", "/1", "", "word1", "word/9999999999",
        "tick", "tick/", "tick/0", String(repeating: "w", count: 65) + "/1",
    ])
    func `is strange when the schema alone has to name the type, and is malformed`(schema: String) {
        guard case .strange(let why) = meaning(nil, schema) else {
            Issue.record("\(schema): \(meaning(nil, schema))")
            return
        }
        #expect(why.reason == "schema")
    }

    @Test func `is a tick in the events alone`() {
        for type in ["tick", nil] {
            #expect(meaning(type, "tick/1") == .tick)
            #expect(meaning(type, "tick/1", isTable: true) == .unknownType)
        }
        #expect(meaning(nil, "tick/1", isTable: true, withoutHeader: true) != .tick)
    }

    @Test func `is an unknown type for every other`() {
        for type in ["other", "wor", "wordss", "", "Word", "ticks"] { #expect(meaning(type, "x/9") == .unknownType) }
        for schema in ["other/1", "wor/1", "wordss/2", "Word/1", "ticks/1", "WORD/1"] {
            #expect(meaning(nil, schema) == .unknownType)
        }
    }

    @Test func `is strange without a type, but where the topic says what that means`() {
        guard case .strange(let why) = meaning(nil, nil) else {
            Issue.record("\(meaning(nil, nil))")
            return
        }
        #expect(why.reason == "no_type")
        #expect(meaning(nil, nil, isTable: true, withoutHeader: true) == .known)
        #expect(meaning(nil, "row/1", isTable: true, withoutHeader: true) == .known)
        guard case .newerSchema = meaning(nil, "row/2", isTable: true, withoutHeader: true) else {
            Issue.record("a newer row is known")
            return
        }
    }
}

@Suite struct `The breaker` {
    private func allows(_ breaker: inout Breaker) -> Bool { breaker.allowsLetter() }

    @Test func `lets a hundred of the last thousand pass, and not one more`() {
        var breaker = Breaker()
        for _ in 0..<100 { #expect(allows(&breaker)) }
        #expect(!allows(&breaker))
        #expect(!allows(&breaker))
    }

    @Test func `forgets what is more than a thousand records ago, one by one`() {
        var breaker = Breaker()
        for _ in 0..<100 {
            #expect(allows(&breaker))
            for _ in 0..<9 { breaker.processed() }
        }
        // The first letter leaves the window with the 1001st record.
        #expect(!allows(&breaker))
        breaker.processed()
        #expect(allows(&breaker))
        #expect(!allows(&breaker))
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `counts as a list of the last thousand does`(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        var breaker = Breaker()
        var last: [Bool] = []
        for step in 0..<8000 {
            let isLetter = dice.next() % 100 < 9 + (step / 3000) % 3
            guard isLetter else {
                breaker.processed()
                last.append(false)
                continue
            }
            let expected = last.suffix(1000).count { $0 } < 100
            guard allows(&breaker) == expected else {
                Issue.record("seed \(seed), step \(step)")
                return
            }
            if expected { last.append(true) }
        }
    }
}
