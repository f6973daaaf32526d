// Numbers that Apple would never send: whatever is signed, nothing crashes or hangs, and the second implementation has the same
// results.

import JSON
import Notices
import PlainChurn
import Testing
import Zone

import struct MakeBelieve.Chance

@testable import Churn

@Suite struct `Hostile numbers` {
    private static let dates: [Int64] = [
        .min, .min + 1, .min + 61 * day, -62_135_596_800_001, -1, 0, 1, 1_767_225_600_000, 1_769_904_000_000,
        1_772_323_200_000, 253_402_300_800_000, .max - 61 * day, .max - 1, .max,
    ]
    private static let amounts: [Int64] = [.min, -1, 0, 1, 9_990, 10_000_000_000_000, 10_000_000_000_001, .max]

    private func record(_ number: Int, _ chance: inout Chance, signed: Int64) -> [UInt8] {
        func date() -> Int64 { Self.dates[Int(chance.below(Int64(Self.dates.count)))] }
        func amount() -> Int64 { Self.amounts[Int(chance.below(Int64(Self.amounts.count)))] }
        let kinds: [(String, String?)] = [
            ("SUBSCRIBED", "INITIAL_BUY"), ("DID_RENEW", nil), ("DID_RENEW", "BILLING_RECOVERY"),
            ("DID_FAIL_TO_RENEW", "GRACE_PERIOD"), ("GRACE_PERIOD_EXPIRED", nil), ("EXPIRED", "VOLUNTARY"),
            ("EXPIRED", "BILLING_RETRY"), ("REFUND", nil), ("REFUND_REVERSED", nil), ("CONSUMPTION_REQUEST", nil),
            ("DID_CHANGE_RENEWAL_STATUS", nil), ("DID_CHANGE_RENEWAL_PREF", "UPGRADE"),
        ]
        let (type, subtype) = kinds[Int(chance.below(Int64(kinds.count)))]
        var transaction: [String: Any] = [
            "transactionId": "\(chance.below(4))", "purchaseDate": date(), "expiresDate": date(), "price": amount(),
            "productId": chance.of("pro", "lite"), "currency": "EUR", "signedDate": chance.yes(50) ? signed : date(),
        ]
        if chance.yes(25) { transaction["revocationDate"] = date() }
        if chance.yes(25) { transaction["revocationPercentage"] = amount() }
        if chance.yes(20) { transaction["billingPlanType"] = "MONTHLY" }
        if chance.yes(20) {
            transaction["commitmentInfo"] = ["billingPeriodNumber": amount(), "totalBillingPeriods": amount()]
        }
        if chance.yes(10) { transaction["type"] = "Consumable" }
        let info: [String: Any] = [
            "gracePeriodExpiresDate": date(), "autoRenewStatus": amount(), "expirationIntent": amount(),
            "priceIncreaseStatus": amount(), "signedDate": date(),
        ]
        var story = WrittenStory()
        story.tell(type, subtype, at: signed, transaction, info: chance.yes(60) ? info : nil)
        return story.records[0].renumbered(number)
    }

    @Test func `in dates and amounts stop nothing, at any clock`() throws {
        for seed in UInt64(60_000)..<60_120 {
            var chance = Chance(seed: seed)
            var records: [[UInt8]] = []
            for number in 0..<(2 + Int(chance.below(8))) {
                let signed = Self.dates[Int(chance.below(Int64(Self.dates.count)))]
                records.append(record(number, &chance, signed: signed))
            }
            var chain = Chain("1")
            for record in records { try chain.hear(record, at: .min) }
            for clock in Self.dates {
                try chain.advance(to: clock)
                var fresh = Chain("1")
                for record in records { try fresh.hear(record, at: clock) }
                let plain = PlainChurn(records: records, chain: "1", zone: "Etc/UTC", partition: 3)
                try #require(chain.cells == fresh.cells, "seed \(seed), \(clock)")
                try #require(difference(chain.plain, plain.cells(at: clock)) == nil, "seed \(seed), \(clock)")
                try #require(try fresh.violation == nil, "seed \(seed), \(clock)")
            }
        }
    }

    /// A grace that began at the beginning of time, and a refund that ends it now.
    @Test func `in unpaidGrace end at the greatest number there is`() throws {
        var story = WrittenStory()
        let first = row("1", .min, .min)
        story.fails(first, at: instant(1, 1), grace: instant(2, 1))
        story.refunds(first, at: instant(1, 20))
        story.recovers(row("2", .min, .min + 1), at: instant(1, 25))
        var chain = Chain("1")
        for word in story.words { try chain.hear(word.record, at: instant(1, 26)) }
        // 2^63 - 1 milliseconds by 86,400, half to even.
        let unpaid = chain.totals.values.reduce(0) { $0 + $1[.unpaidGrace] }
        #expect(unpaid == 106_751_991_167_301)
    }

    @Test func `in months are as long as numbers go`() {
        // 2^63 - 1 x 2,629,800,000 ms / 2^63 - 1 ms.
        #expect(monthly(.max, from: .min, to: .max) == 2_629_800_000)
        #expect(monthly(10_000, from: 5, to: 5) == 0)
        #expect(monthly(10_000, from: .max, to: .min) == 0)
        #expect(monthly(10_000_000_000_000, from: 0, to: 1) == limitMRR)
    }

    @Test func `in deeply nested words are no words`() throws {
        for depth in [10, 1_000, 100_000] {
            let nested = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
            let text = #"{"signedDate":1,"transaction":{"transactionId":"1","purchaseDate":\#(nested)}}"#
            let told = try? Desk().news(Array(text.utf8))
            #expect(told == nil)
        }
    }
}

extension [UInt8] {
    /// The story's first notification, with other values.
    fileprivate func renumbered(_ number: Int) -> [UInt8] {
        Array(String(decoding: self, as: UTF8.self).replacing("\"n0\"", with: "\"n\(number)\"").utf8)
    }
}
