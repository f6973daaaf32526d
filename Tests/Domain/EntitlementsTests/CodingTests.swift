import Contract
import Notices
import Testing

import struct MakeBelieve.Chance

@testable import Entitlements
@testable import SubscriptionHistory

@Suite struct `Facts as bytes` {
    @Test(arguments: 0..<100 as Range<UInt64>)
    func `are read back as they were, and written alike`(_ seed: UInt64) throws {
        var chance = Chance(seed: 3_000 + seed)
        let records = notifications(1 + Int(chance.below(12)), &chance)
        let known = try facts(records)
        let bytes = known.encoded
        #expect(Facts(encoded: bytes) == known, "seed \(seed)")
        #expect(try facts(records.reversed()).encoded == bytes, "seed \(seed)")
    }

    @Test func `of nothing are nothing`() { #expect(Facts(encoded: Facts().encoded) == Facts()) }

    @Test func `keep every member`() throws {
        let row = bought(
            "2000000123456789", d(0), d(30),
            "'subscriptionGroupIdentifier':'g','appAccountToken':'t','revocationDate':5,'revocationType':'REFUND_FULL',"
                + "'isUpgraded':true,'offerType':2,'offerIdentifier':'o','offerDiscountType':'PAY_UP_FRONT','price':-1,"
                + "'currency':'EUR','billingPlanType':'MONTHLY','commitmentInfo':{'billingPeriodNumber':3,"
                + "'totalBillingPeriods':12,'commitmentExpiresDate':7,'commitmentPrice':9}")
        let info = renewal(
            0, at: d(30),
            "'autoRenewProductId':'p','expirationIntent':2,'isInBillingRetryPeriod':true,'gracePeriodExpiresDate':3,"
                + "'priceIncreaseStatus':1,'renewalPrice':4,'appAccountToken':'u','renewalBillingPlanType':'MONTHLY',"
                + "'commitmentInfo':{'commitmentAutoRenewStatus':1,'commitmentAutoRenewProductId':'q',"
                + "'commitmentRenewalBillingPlanType':'BILLED_UPFRONT'}")
        let known = try facts([
            told("EXPIRED", "VOLUNTARY", at: d(9), row, info, status: 4), told("EXPIRED", at: d(2), row),
        ])
        #expect(Facts(encoded: known.encoded) == known)
    }

    @Test(arguments: [
        "", "0", "007", "9999999999999999999", "10000000000000000000", "99999999999999999999", "-1", "1a", "é",
    ])
    func `keep ids that are no numbers, or not written as such`(_ id: String) throws {
        let known = try facts([told("A", at: d(0), bought(id, d(0), d(30)))])
        #expect(Facts(encoded: known.encoded) == known && known.purchases[0].transaction.id == TransactionId(Text(id)))
    }

    /// Another build must be able to read the stored state: if the bytes change, `SubscriptionTeller.format` must change.
    @Test func `of a state are those of the format's number`() throws {
        #expect(SubscriptionTeller.format == 1)
        let row = bought(
            "2000000123456789", d(0), d(30),
            "'subscriptionGroupIdentifier':'g','appAccountToken':'t','offerType':2,'offerIdentifier':'o','price':9990,"
                + "'currency':'EUR'")
        let known = try facts([
            told("SUBSCRIBED", "INITIAL_BUY", at: d(0), row, renewal(1, at: d(30))),
            told("DID_FAIL_TO_RENEW", "GRACE_PERIOD", at: d(30), row, failing(d(30), grace: d(46)), status: 4),
        ])
        let timeline = try #require(Timeline(known, rules()))
        var state = ByteWriter()
        state.signed(7)
        state.byte(1)
        timeline.standing(at: d(31)).told(after: nil, [], answer: 0x0102_0304_0506_0708).write(to: &state)
        let digits = Array(
            ("0e01bf0201000102030405060708ef8df68a8de5f80559bd93887a4923fbd6b3707bf4b856ed959aa387d5dfc6"
                + "03017480c0cb9582670100081b4175746f2d52656e657761626c6520537562736372697074696f6e0f636f6d2e"
                + "6578616d706c652e6170700370726f016701740950555243484153454403455552016f018705959aa387d5dfc6"
                + "0380a0d5edee6680a0f6a71302cc8c3128eb3f7580a0f6a713ff9ff6a7130102030405060007008c9c01040800"
                + "0180a0f6a71350309f2e5a4837130801010200018080aea60a00010000000000").utf8)
        let kept = stride(from: 0, to: digits.count, by: 2).map { index in
            UInt8(String(decoding: digits[index..<(index + 2)], as: UTF8.self), radix: 16)!
        }
        withExtendedLifetime(timeline) {}
        #expect(state.bytes + known.encoded == kept)
        #expect(Facts(bytes: Array(kept[state.bytes.count...])) == known)
        var teller = SubscriptionTeller(rules(), .production)
        for format in [UInt8(1), 2] {
            let isRead = kept.withUnsafeBufferPointer { teller.load($0, format: format) }
            #expect(isRead == (format == 1))
        }
        // All of it is read: another sequence is all that changes.
        #expect(teller.state(kept, format: 1, after: 8) == [16] + kept.dropFirst())
    }

    /// Of realistic size: ids of 16 digits, and a failed payment now and then.
    private func subscription(_ rows: Int64, days: Int64) throws -> Facts {
        let length = days * 24 * hour
        return try facts(
            (0..<rows).flatMap { number -> [String] in
                let start = d(0) + number * length
                let row = bought(
                    "\(2_000_000_123_456_789 + number * 7_654_321)", start, start + length,
                    signed: start - 3_000_000 + number * 17,
                    "'subscriptionGroupIdentifier':'21430000','appAccountToken':'0f8fad5b-d9cb-469f-a165-70867728950e',"
                        + "'price':9990,'currency':'USD','billingPlanType':'BILLED_UPFRONT'")
                let failure = told(
                    "DID_FAIL_TO_RENEW", at: start + length, nil, failing(start + length, grace: start + length + 9999))
                return [told("DID_RENEW", at: start, row, renewal(1, at: start + length))]
                    + (number % 10 == 9 ? [failure] : [])
            })
    }

    @Test func `take less than 4 KiB for five years of months, 16 KiB for five of weeks`() throws {
        let months = try subscription(60, days: 30)
        #expect(months.purchases.count == 60 && months.renewalInfos.count >= 6 && months.encoded.count < 4096)
        let weeks = try subscription(260, days: 7)
        #expect(weeks.purchases.count == 260 && weeks.encoded.count < 16_384)
    }

    /// A commitment has more members in every month, and fails as often.
    @Test func `take less than 4 KiB for five years of a commitment`() throws {
        let months = try facts(
            (0..<60 as Range<Int64>).flatMap { number -> [String] in
                let start = d(0) + number * 30 * 24 * hour
                let end = start + 30 * 24 * hour
                let row = bought(
                    "\(2_000_000_123_456_789 + number * 7_654_321)", start, end,
                    signed: start - 3_000_000 + number * 17,
                    "'subscriptionGroupIdentifier':'21430000','appAccountToken':'0f8fad5b-d9cb-469f-a165-70867728950e',"
                        + "'price':9990,'currency':'EUR','billingPlanType':'MONTHLY','commitmentInfo':{"
                        + "'billingPeriodNumber':\(number % 12 + 1),'totalBillingPeriods':12,"
                        + "'commitmentExpiresDate':\(d(360 * (1 + number / 12))),'commitmentPrice':119880}")
                return [told("DID_RENEW", at: start, row, committed(1, at: end))]
                    + (number % 10 == 9 ? [told("DID_FAIL_TO_RENEW", at: end, nil, failing(end))] : [])
            })
        #expect(months.purchases.count == 60 && months.renewalInfos.count >= 6 && months.encoded.count < 4096)
    }

    @Test func `grow with a longer life up to the limit of rows, and no further`() throws {
        #expect(try subscription(1_100, days: 7).encoded.count < 48 << 10)
        #expect(try subscription(1_000, days: 7).encoded.count < 48 << 10)
    }

    @Test func `of another version are not read`() throws {
        var bytes = try subscription(2, days: 30).encoded
        for version in [UInt8(0), 2, 255] {
            bytes[0] = version
            #expect(Facts(encoded: bytes) == nil)
        }
    }

    @Test func `that are cut, lengthened or changed are read as nil or as other facts, and never trap`() throws {
        var chance = Chance(seed: 5)
        let whole = try facts(notifications(9, &chance)).encoded
        for end in whole.indices { #expect(Facts(encoded: Array(whole[..<end])) == nil, "cut at \(end)") }
        #expect(Facts(encoded: whole + [0]) == nil)
        for place in whole.indices {
            for bit in 0..<8 {
                var changed = whole
                changed[place] ^= 1 << bit
                guard let facts = Facts(encoded: changed), let timeline = Timeline(facts, rules()) else { continue }
                _ = timeline.entitlement(at: d(40))
                _ = timeline.nextChange(after: d(40))
                #expect(Facts(encoded: facts.encoded) == facts)
            }
        }
        for _ in 0..<3_000 {
            let noise =
                [History.codingVersion, UInt8(chance.below(4))]
                + (0..<chance.below(60)).map { _ in UInt8(chance.below(256)) }
            _ = Facts(encoded: noise)
        }
    }

    /// No value could follow it.
    @Test func `with the greatest sequence are refused`() {
        for (sequence, isValid) in [(Int64.max, false), (.max - 1, true), (0, true), (-1, false)] {
            var writer = ByteWriter()
            writer.signed(sequence)
            writer.byte(0)
            let state = writer.bytes + Facts().bytes
            var teller = SubscriptionTeller(rules(), .production)
            let isRead = state.withUnsafeBufferPointer { teller.load($0, format: 1) }
            #expect(isRead == isValid, "\(sequence)")
        }
    }

    @Test func `that claim more than there are bytes cost nothing`() {
        var writer = ByteWriter()
        writer.byte(1)
        writer.byte(0)
        writer.unsigned(.max)
        #expect(Facts(encoded: writer.bytes) == nil)
    }
}
