import Contract
import HTTP
import JSON
import Log
import MemoryLog
import Platform
import Store
import Testing

@testable import ReadAPI

/// A record of `entitlement-events`.
private func event(
    _ sequence: Int64, kind: String = "renewed", of id: String = "1", source: String? = nil, at time: Int64? = nil
) -> Rig.Write {
    var write = Rig.Write(
        topic: .events, key: id,
        value: #"{"v":1,"id":"0-\#(sequence)-\#(kind)","originalTransactionId":"\#(id)","kind":"\#(kind)","#
            + #""at":1771000000000,"sequence":\#(sequence)}"#)
    write.headers =
        Rig.headers(.events) + [RecordHeader("app", "perennial/0.1+abc")]
        + (source.map { [RecordHeader("source", $0)] } ?? [])
    write.timestamp = time
    return write
}

@Suite struct `The history of a subscription` {
    private func sequences(_ answer: JSONValue?) -> [Int64?]? {
        answer?["history"]?.array?.map { $0["event"]?["sequence"]?.integer }
    }

    private func ask(_ rig: Rig, _ query: String? = nil, of id: String = "1") throws -> JSONValue {
        let response = rig.endpoint.answer(.history, id[...].utf8, query: query)
        try #require(response.status == 200)
        return try JSONValue.read(response.body)
    }

    @Test func `has its events as they were published, the newest first, with where they are from`() throws {
        let rig = try Rig()
        let first = event(1, kind: "started", source: "appstore.production.notifications:0:7")
        try rig.write(first, event(300), event(2, of: "11"), event(2), event(2, kind: "account_bound"))
        rig.settle(steps: 3)
        let answer = try ask(rig)
        #expect(sequences(answer) == [300, 2, 2, 1])
        #expect(answer["before"] == .null)
        let body = String(
            decoding: rig.endpoint.answer(.history, "1"[...].utf8, query: nil).body, as: UTF8.self)
        #expect(
            body.contains(
                #"{"event":\#(first.value!),"offset":0,"source":"appstore.production.notifications:0:7","#
                    + #""app":"perennial/0.1+abc"}"#))
        let kinds = answer["history"]?.array?.map { $0["event"]?["kind"]?.string }
        #expect(
            kinds == ["renewed", "account_bound", "renewed", "started"], "of one sequence the last event comes first")
        #expect(answer["history"]?.array?.first?["source"] == .null)
        #expect(answer["position"]?.array?.first?["topic"]?.string == "appstore.production.entitlement-events")
        #expect(try ask(rig, "before=2").self["history"]?.array?.count == 1)
    }

    @Test func `comes in pages, of which none ends within one change`() throws {
        let rig = try Rig()
        // The hundredth event and the two after it report one change.
        let writes = (1...250).flatMap { number in
            (0..<(number == 151 ? 3 : 1)).map { event(Int64(number), kind: "kind\($0)") }
        }
        try rig.write(writes)
        rig.settle(steps: 3)
        var pages: [[Int64?]] = []
        var before: Int64?
        repeat {
            let page = try ask(rig, before.map { "before=\($0)" })
            pages.append(sequences(page) ?? [])
            before = page["before"]?.integer
        } while before != nil && pages.count < 9
        #expect(pages.map(\.count) == [102, 100, 50])
        #expect(
            pages.joined().compactMap(\.self) == Array(stride(from: Int64(250), through: 151, by: -1)) + [151, 151]
                + Array(stride(from: Int64(150), through: 1, by: -1)))
        #expect(try sequences(ask(rig, "before=1")) == [])
    }

    @Test func `is empty of a subscription that is known, and not found of another`() throws {
        let rig = try Rig()
        try rig.write(.subscription(Record(id: "1")))
        rig.settle(steps: 3)
        #expect(try sequences(ask(rig)) == [])
        #expect(rig.status(.history, "2") == 404)
        for query in ["before=", "before=x", "before=-1", "before=1&before=2", "before=%zz"] {
            #expect(rig.status(.history, "1", query) == 400, "\(query)")
        }
    }

    @Test func `keeps out what is none, and goes on where it was after the process has died`() throws {
        let rig = try Rig()
        var foreign = event(3)
        foreign.value = event(3, of: "2").value
        var none = event(4)
        none.value = "{}"
        try rig.write(event(1), foreign, none, event(5))
        rig.settle(steps: 3)
        #expect(try sequences(ask(rig)) == [5, 1])
        for cause in ["key", "shape"] {
            let series = #"perennial_api_records_kept_out_total{topic="entitlement-events",cause="\#(cause)"}"#
            #expect(rig.metric(series) == 1, "\(cause)")
        }
        let next = try Rig(memory: rig.memory, disk: rig.disk.copy(), time: rig.time, makesTopics: false)
        try next.write(event(6))
        next.settle(steps: 3)
        #expect(try sequences(ask(next)) == [6, 5, 1])
        #expect(next.metric(#"perennial_api_records_total{topic="entitlement-events"}"#) == 1)
    }

    /// The history goes back as far as its topic, and so do the refund requests.
    @Test func `goes back as far as its topic`() throws {
        let rig = try Rig(partitions: 1)
        let day: Int64 = 86_400_000
        let start: Int64 = 1_700_000_000_000
        try rig.write(event(1, at: start), event(2, at: start + day))
        rig.settle(steps: 3)
        try rig.write(event(3, of: "2", at: start + 400 * day - 1))
        rig.settle(steps: 3)
        #expect(try sequences(ask(rig)) == [2, 1])
        try rig.write(event(4, of: "2", at: start + 400 * day))
        rig.settle(steps: 3)
        #expect(try sequences(ask(rig)) == [2])
    }
}
