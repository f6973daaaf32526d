import Contract
import Notices
import Testing

import struct MakeBelieve.Chance

@testable import Entitlements
@testable import SubscriptionHistory

/// Records that Apple would never send, but an attacker might.
@Suite struct `Absurd facts` {
    /// The limits of 64 bits, the limits of the calendar, and some dates in between.
    private static let dates: [Int64] = [
        .min, .min + 1, -62_135_596_800_000, -1, 0, 1, d(0), d(30), d(30) + 1, d(90), 253_402_300_799_999, .max - 1,
        .max,
    ]

    /// Any dates in any member: the result is always defined, and is the same for a reader that only looks at the clock.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `of any dates have an answer at any instant, bytes, and an end of changes`(_ part: UInt64) throws {
        var chance = Chance(seed: 9_000 + part)
        func any() -> Int64 { Self.dates[Int(chance.below(Int64(Self.dates.count)))] }
        for _ in 0..<50 {
            var records: [String] = []
            for number in 1...(1 + chance.below(4)) {
                var more = ["'productId':'\(chance.of("season", "pro"))'"]
                if chance.yes(30) { more.append("'revocationDate':\(any())") }
                if chance.yes(20) { more.append("'isUpgraded':true") }
                if chance.yes(30) { more.append("'billingPlanType':'MONTHLY'") }
                if chance.yes(20) { more.append("'type':'Non-Renewing Subscription'") }
                let row = bought("\(number)", any(), any(), signed: any(), more.joined(separator: ","))
                let info =
                    chance.yes(50)
                    ? failing(any(), grace: any(), signed: any())
                    : renewal(Int(chance.below(2)), at: any(), signed: any())
                records.append(
                    told(
                        chance.of("EXPIRED", "A"), at: any(), row, chance.yes(80) ? info : nil,
                        status: chance.of(nil, 3)))
            }
            let facts = try facts(records)
            #expect(Facts(encoded: facts.encoded) == facts, "\(records)")
            let timeline = try #require(Timeline(facts, rules(chance.of(.production, .sandbox))))
            for now in Self.dates {
                let answer = timeline.entitlement(at: now)
                if answer.access, let end = answer.accessUntil {
                    #expect(end > now || now == .max, "\(records) at \(now)")
                } else if !answer.access {
                    #expect(answer.accessUntil != nil, "\(records) at \(now)")
                }
                for run in answer.runs { #expect(run.end.map { $0 > run.start } ?? true, "\(records)") }
            }
            var changes = 0
            var now = Int64.min
            while let next = timeline.nextChange(after: now) {
                try #require(next > now && changes < 100, "\(records)")
                now = next
                changes += 1
            }
        }
    }

    @Test func `of an end before the beginning gave nothing`() throws {
        let known = try timeline(told("SUBSCRIBED", at: d(10), bought("1", d(10), d(5)), renewal(0, at: d(40))))
        #expect(known.words(at: d(10)) == "expired voluntary since 10d", "not before it was bought")
        #expect(known.entitlement(at: d(10)).runs == [] && known.entitlement(at: d(10)).since == d(10))
        #expect(known.nextChange(after: d(10)) == nil)
    }

    @Test func `of the years 1 and 9999 are taken as they are`() throws {
        let first: Int64 = -62_135_596_800_000
        let last: Int64 = 253_402_300_799_999
        let known = try timeline(told("SUBSCRIBED", at: d(0), bought("1", first, last), renewal(1, at: last)))
        #expect(known.entitlement(at: d(0)).accessUntil == last + hour && known.entitlement(at: d(0)).since == first)
    }

    @Test func `that overflow stop at the last instant there is`() throws {
        let known = try timeline(told("A", at: d(0), bought("1", d(0), .max), renewal(1, at: .max)))
        #expect(known.entitlement(at: d(0)).accessUntil == .max)
        let failed = try timeline(told("A", at: d(0), bought("1", d(0), .max - 1), failing(.max - 1)))
        #expect(failed.entitlement(at: d(0)).retry == Entitlement.Retry(since: .max - 1, until: .max))
    }

    // MARK: Large states

    /// Each merge reads and writes all that is known. So most are merged by the hundred, and only the last ones one by one.
    private func merged(_ records: [String]) throws -> Facts {
        func merge(_ records: ArraySlice<String>, into known: inout Facts) throws {
            for record in records { known.merge(try reading(record).facts) }
        }
        let last = 500
        var known = Facts()
        for place in stride(from: 0, to: records.count - last, by: 100) {
            var some = Facts()
            try merge(records[place..<min(place + 100, records.count - last)], into: &some)
            known.merge(some)
        }
        try merge(records.suffix(last), into: &known)
        return known
    }

    @Test func `in ten thousand versions of one transaction are one row`() throws {
        var known = Facts()
        for version in 0..<10_000 {
            known.merge(try reading(told("A", at: Int64(version), period(1, "'price':\(version)"))).facts)
        }
        #expect(known.purchases.count == 1 && known.purchases[0].transaction.price == 9_999 && !known.isTruncated)
        #expect(known.withHistory { $0.purchases[0].firstSigned } == 0 && known.encoded.count < 256)
    }

    @Test func `in ten thousand transactions are the thousand newest`() throws {
        var chance = Chance(seed: 7)
        let known = try merged(
            (0..<10_000).shuffled(using: &chance).map { told("A", at: 0, bought("\($0)", Int64($0), 20_000)) })
        #expect(known.purchases.count == 1_000 && known.isTruncated)
        #expect(known.purchases.first?.transaction.purchaseDate == 9_000 && known.encoded.count < 64 << 10)
    }

    @Test func `in ten thousand dates of purchase of one transaction are one row of the newest version`() throws {
        let known = try merged((0..<10_000).map { told("A", at: Int64($0), bought("1", Int64($0), 20_000)) })
        #expect(known.purchases.count == 1_000)
        let rows = try #require(Timeline(known, rules())).rows
        #expect(rows.count == 1 && rows[0].start == 9_999)
    }

    @Test func `in ten thousand renewal infos that say more are the 256 newest`() throws {
        var chance = Chance(seed: 7)
        let known = try merged(
            (0..<10_000).shuffled(using: &chance).map { told("A", at: Int64($0), nil, renewal(0, at: d(30))) })
        #expect(known.renewalInfos.map(\.version.signedDate) == Array(9_744..<10_000).map(Int64.init))
    }

    // MARK: New members

    /// Members that Apple adds stay in the log and are ignored here.
    @Test func `with members of tomorrow are those of today`() throws {
        let more = "'newMember':{'a':[1,{'b':null}],'c':'d'},'anotherList':[[]],'expiresDateNew':'2027','é':1.5e300"
        let old = told("SUBSCRIBED", at: d(0), period(1), renewal(1, at: d(30)))
        let new = told(
            "SOMETHING_NEW", "AS_NEVER_BEFORE", at: d(0), period(1, more), renewal(1, at: d(30), more), status: 17)
        let answers = try [old, new].map { try timeline($0).entitlement(at: d(5)) }
        #expect(answers[0] == answers[1])
    }

    @Test func `with numbers that are too large, or fractions, are as if they had none`() throws {
        for number in ["1e3", "1.5", "9223372036854775808", "-9223372036854775809", "1e999"] {
            let row = period(1, "'price':\(number),'revocationDate':\(number)")
            let answer = try timeline(told("A", at: d(0), row)).entitlement(at: d(0))
            #expect(answer.price == nil && answer.state == .active, "\(number)")
            let read = try reading(told("A", at: d(0), Part(members: "'transactionId':'1','purchaseDate':\(number)")))
            #expect(read.hasUnusableTransaction, "\(number)")
        }
    }

    @Test func `with odd texts, or none, are told as they are; longer than 1,024 bytes they are not said`() throws {
        for text in [
            "", String(repeating: "x", count: 1_024), "ü\\u0000\\ud83d\\ude00", String(repeating: "x", count: 1_025),
        ] {
            let known = try facts([told("A", at: d(0), period(1, "'productId':'\(text)','currency':'\(text)'"))])
            #expect(Facts(encoded: known.encoded) == known)
            let answer = try #require(Timeline(known, rules())).entitlement(at: d(0))
            #expect(answer.access && answer.entitlements == [])
            #expect((answer.productId == nil) == (text.utf8.count > 1_024))
        }
        let long = Part(members: "'transactionId':'\(String(repeating: "1", count: 1_025))','purchaseDate':0")
        #expect(try reading(told("A", at: d(0), long)).hasUnusableTransaction)
    }
}

@Suite struct `The limits of what is kept` {
    /// A purchase with texts of this many bytes that no other purchase has.
    private func heavy(_ number: Int64, bytes: Int) -> String {
        let text = "\(number)-" + String(repeating: "x", count: bytes)
        return told(
            "A", at: d(number),
            bought("\(number)", d(number), d(number + 1), "'productId':'\(text)','currency':'\(text)'"))
    }

    /// Small and large ones alternate: which ones are dropped must not depend on the order of arrival.
    @Test func `hold in bytes as well, whatever the order`() throws {
        let records = (0..<400 as Range<Int64>).map { heavy($0, bytes: $0 % 7 == 0 ? 1 : 900) }
        let forwards = try facts(records)
        #expect(forwards.isTruncated && forwards.purchases.count > 50)
        #expect(forwards.purchases.last?.transaction.id == "399")
        #expect(forwards.encoded.count < 262_144)
        var chance = Chance(seed: 77)
        for _ in 0..<5 {
            let shuffled = try facts(records.shuffled(using: &chance) + [records[3], records[399]])
            #expect(shuffled == forwards)
            #expect(shuffled.encoded == forwards.encoded)
        }
        #expect(Facts(encoded: forwards.encoded) == forwards)
    }

    @Test func `hold for renewal infos`() throws {
        let records = (0..<300 as Range<Int64>).map { number in
            let text = "\(number)-" + String(repeating: "y", count: number % 5 == 0 ? 10 : 1_000)
            return told("A", at: d(number), nil, renewal(0, at: nil, "'autoRenewProductId':'\(text)'"))
        }
        let forwards = try facts(records)
        #expect(forwards.encoded.count < 262_144 && forwards.renewalInfos.count > 20)
        #expect(try facts(records.reversed()) == forwards)
        #expect(Facts(encoded: forwards.encoded) == forwards)
    }

    @Test func `let a thousand purchases of usual length be`() throws {
        let text = String(repeating: "p", count: 40)
        let known = try facts(
            (0..<1_000 as Range<Int64>).map { number in
                told(
                    "A", at: d(number),
                    bought(
                        "\(2_000_000_000_000_000 + number)", d(number), d(number + 1),
                        "'productId':'\(text)','subscriptionGroupIdentifier':'21430000',"
                            + "'appAccountToken':'0f8fad5b-d9cb-469f-a165-70867728950e','currency':'USD'"))
            })
        #expect(known.purchases.count == 1_000 && !known.isTruncated)
    }

    /// Each begins where the one before ends, and all begin in the future.
    @Test func `keep a thousand purchases of the future quick to ask`() throws {
        let known = try facts(
            (1...1_000 as ClosedRange<Int64>).map { told("A", at: d(0), bought("\($0)", d($0), d($0 + 1))) })
        let timeline = try #require(Timeline(known, rules()))
        #expect(timeline.entitlement(at: d(0)).accessUntil == d(1_001))
        var now = d(0)
        for step in 2...9 as ClosedRange<Int64> {
            now = try #require(timeline.nextStep(after: now))
            #expect(now == d(step))
        }
        #expect(timeline.nextStep(after: d(1_000)) == d(1_001))
    }
}
