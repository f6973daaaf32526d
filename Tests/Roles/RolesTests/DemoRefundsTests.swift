import Testing

@testable import Demo

private let hour: Int64 = 3_600_000

/// A record of a request that arrived at 0.
private func record(
    _ kind: String, _ id: String = "a", at: Int64 = 0, transaction: String = "1", detail: String? = nil,
    rule: String? = nil, facts: String? = nil
) -> [UInt8] {
    let policy = rule.map { #"{"version":"1","rule":"\#($0)"}"# } ?? "null"
    return Array(
        """
        {"v":1,"id":"\(id)","originalTransactionId":"1","transactionId":"\(transaction)","kind":"\(kind)","at":\(at),\
        "deadline":\(12 * hour),"policy":\(policy),"detail":\(detail.map { "\"\($0)\"" } ?? "null")\
        \(facts.map { ",\"facts\":\($0)" } ?? "")}
        """.utf8)
}

private func price(_ amount: Int64, _ currency: String = "EUR") -> String {
    #"{"price":\#(amount),"currency":"\#(currency)"}"#
}

private func clock() -> StoreClock { StoreClock(start: 0, speed: 1, elapsed: { .zero }) }

private func told(_ records: [[UInt8]]) -> (figures: RefundFigures?, unreadable: Int) {
    var refunds = DemoRefunds()
    let clock = clock()
    for record in records { refunds.take(record, clock) }
    return (refunds.figures, refunds.unreadable)
}

@Suite struct `What the demo reads of refund requests` {
    @Test func `is each request once, where it stands now`() throws {
        #expect(told([]).figures == nil)
        let (read, unreadable) = told([
            record("requested"), record("decided", rule: "r", facts: price(1)), record("shadow"), record("retrying"),
            record("sent", at: 3 * hour),
            record("requested", "b"), record("withheld", "b", detail: "no_consent"), record("decided", "b"),
            record("sent", "b", at: 4 * hour),
            record("requested", "c"), record("decided", "c", rule: "r"), record("withheld", "c", detail: "settled"),
            record("requested", "d"), record("requested", "e"), record("expired", "e"), record("requested", "f"),
            record("failed", "f"),
        ])
        let figures = try #require(read)
        #expect(figures.requests == 6 && figures.waiting == 1 && figures.expired == 1 && figures.failed == 1)
        #expect(figures.answered == ["r": 1, "no rule": 1] && figures.withheld == ["settled": 1])
        #expect(figures.shortestMargin == 8 * hour && figures.margin == "8 h 0 min")
        #expect(unreadable == 0)
    }

    @Test func `adds up what was declined when Apple had the answer, each purchase once, and nothing else`() throws {
        let answered: (String, String, String) -> [[UInt8]] = { id, transaction, facts in
            [
                record("requested", id, transaction: transaction),
                record("decided", id, transaction: transaction, facts: facts),
                record("sent", id, transaction: transaction),
            ]
        }
        let declined = { (id: String, transaction: String) in
            record("outcome", id, transaction: transaction, detail: "declined")
        }
        let first = answered("a", "1", price(9_990)) + answered("again", "1", price(9_990))
        let others =
            answered("b", "2", price(5_000)) + answered("c", "3", price(700, "JPY")) + answered("d", "4", price(90_000))
        let unanswered = [record("requested", "e", transaction: "5"), declined("e", "5")]
        // Apple decided before this answer.
        let late =
            [record("requested", "f", transaction: "6"), declined("f", "6")] + answered("f", "6", price(1_000_000))
        let outcomes = [
            declined("a", "1"), declined("again", "1"), declined("b", "2"), declined("c", "3"),
            record("outcome", "d", transaction: "4", detail: "refunded"),
        ]
        let figures = try #require(told(first + others + unanswered + late + outcomes).figures)
        #expect(
            figures.saved == [
                "EUR": .init(amount: 14_990, purchases: 2), "JPY": .init(amount: 700, purchases: 1),
            ])
        #expect(figures.outcomes == ["declined": 6, "refunded": 1])
        #expect(figures.amounts == "EUR 14.99, JPY 1")
    }

    @Test func `lets the store's time wait for what is decided, until it is settled`() {
        var refunds = DemoRefunds()
        let clock = clock()
        for last in ["sent", "withheld", "failed", "expired"] {
            refunds.take(record("decided"), clock)
            #expect(clock.waitsForRequests)
            refunds.take(record("outcome", detail: "declined"), clock)
            #expect(clock.waitsForRequests)
            refunds.take(record(last), clock)
            #expect(!clock.waitsForRequests, "\(last)")
        }
    }

    @Test(arguments: ["", "{", "[]", "null", #"{"id":"a","kind":"sent"}"#])
    func `counts what it cannot read, and goes on`(_ text: String) {
        let read = told([Array(text.utf8)])
        #expect(read.unreadable == 1 && read.figures == nil)
    }
}
