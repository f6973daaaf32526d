import Contract
import JSON
import LogTestKit
import MakeBelieve
import MemoryLog
import Testing
import WorkerTestKit

/// Six months of a subscription, each paid at once.
private let months = [start()] + (2...6).map { renewal(of: $0) }

/// A refund of the third month, from its tenth day.
private let refund = Told(
    "REFUND", at: d(70),
    bought("3", from: d(60), to: d(90), signed: d(70), ["storefront": "\"USA\"", "revocationDate": "\(d(70))"]))

@Suite struct `A late notification` {
    @Test func `restates the days that it is about, 100 days later, and no others`() throws {
        let shop = try Shop()
        for month in months { try shop.tell(month) }
        try shop.tick(d(169))
        let before = try shop.cells()
        try shop.tell(refund, received: d(170))
        let after = try shop.cells()
        // Charged, refunded, and paid again: no access from the refund to the next month.
        let days = ["2026-03-02", "2026-03-12", "2026-04-01"].map { Shop.cell($0) }
        #expect(Set(after.keys).union(before.keys).filter { after[$0] != before[$0] }.sorted() == days)
        #expect(after[days[0]]?["counts"]?["chargedRefunded"]?.integer == 1)
        #expect(after[days[1]]?["counts"]?["lapsedRefund"]?.integer == 1)
        #expect(after[days[2]]?["counts"]?["resubscribed"]?.integer == 1)
        #expect(after[days[2]]?["counts"]?["renewed"] == nil)
        for day in days { #expect(after[day]?["asOf"]?.integer == d(170)) }
        #expect(try shop.wrong() == [])
    }

    /// Long enough that only its tail is counted again: what comes in time, what comes late, and what is about an old month.
    @Test func `about a life of fifty months restates what a short life would have restated`() throws {
        let shop = try Shop()
        try shop.tell(start())
        for month in 2...50 as ClosedRange<Int64> {
            if month != 47 { try shop.tell(renewal(of: month)) }
            if month == 48 { try shop.tell(renewal(of: 47), received: d(30 * 47 + 10)) }
        }
        #expect(try shop.wrong() == [])
        try shop.tell(refund, received: d(30 * 49 + 5))
        try shop.tick(d(30 * 60))
        #expect(try shop.wrong() == [])
        #expect(try shop.cells()[Shop.cell("2026-03-12")]?["counts"]?["refunded"]?.integer == 1)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `counts as it would have in time, in any order and however often it comes`(seed: UInt64) throws {
        let punctual = try Shop()
        let words = (months + [refund]).sorted { $0.signed < $1.signed }
        for word in words { try punctual.tell(word) }
        try punctual.tick(d(200))
        var dice = SplitMix64(seed: seed)
        let shop = try Shop()
        for word in (words + words.prefix(Int.random(in: 0...4, using: &dice))).shuffled(using: &dice) {
            try shop.tell(word, received: d(200))
            if Bool.random(using: &dice) { try shop.work() }
        }
        #expect(try shop.cells().mapValues(\.sums) == punctual.cells().mapValues(\.sums))
        #expect(try shop.wrong() == [])
    }
}
