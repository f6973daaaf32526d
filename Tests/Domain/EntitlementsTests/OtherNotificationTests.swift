import Testing

@testable import Entitlements

/// Rules.md D.3, row by row, and products that are bought once.
@Suite struct `Notifications of other things` {
    @Test func `ONE_TIME_CHARGE grants what is bought once, for ever`() throws {
        for type in ["Non-Consumable", "Consumable", "Non-Renewing Subscription"] {
            let known = try timeline(told("ONE_TIME_CHARGE", at: d(0), once("1", d(0), type: type)))
            #expect(known.words(at: d(9999)) == "owned until ever" && known.nextChange(after: d(0)) == nil)
            #expect(known.entitlement(at: d(0)).runs == [Run(start: d(0), end: nil)])
            #expect(known.entitlement(at: d(0)).billingPlan == nil)
        }
    }

    @Test func `ONE_TIME_CHARGE of a family member has no account`() throws {
        let known = try timeline(
            told(
                "ONE_TIME_CHARGE", at: d(0),
                once("1", d(0), "'inAppOwnershipType':'FAMILY_SHARED','appAccountToken':'A'")))
        #expect(known.entitlement(at: d(0)).appAccountToken == nil && known.entitlement(at: d(0)).access)
    }

    @Test func `a non-renewing subscription lasts for the period that the app gives it`() throws {
        // A month after the 31st of January: February has no 31st.
        let bought = date(2026, 1, 31) + 7
        let known = try timeline(
            told("ONE_TIME_CHARGE", at: bought, once("1", bought, type: "Non-Renewing Subscription", product: "season"))
        )
        let end = date(2026, 2, 28) + 7
        #expect(known.entitlement(at: end - 1).state == .active && known.entitlement(at: end - 1).accessUntil == end)
        #expect(known.entitlement(at: end).state == .expired && known.entitlement(at: end).reason == nil)
        #expect(known.entitlement(at: end).accessUntil == end && known.nextChange(after: bought) == end)
    }

    @Test func `a refund revokes a one-time purchase, its reversal restores it`() throws {
        let bought = told("ONE_TIME_CHARGE", at: d(0), once("1", d(0)))
        let refund = told("REFUND", at: d(5), once("1", d(0), "'revocationDate':\(d(4))"))
        #expect(try timeline(bought, refund).words(at: d(5)) == "revoked refund since 4d")
        let reversal = told("REFUND_REVERSED", at: d(9), once("1", d(0)))
        #expect(try timeline(bought, refund, reversal).words(at: d(9)) == "owned until ever")
    }

    @Test func `RENEWAL_EXTENSION FAILURE leaves the answer as it is`() throws {
        let start = told("SUBSCRIBED", "INITIAL_BUY", at: d(0), period(1), renewal(1, at: d(30)), status: 1)
        let failure = told("RENEWAL_EXTENSION", "FAILURE", at: d(9), period(1), renewal(1, at: d(30)), status: 1)
        #expect(try timeline(start, failure).entitlement(at: d(9)) == (try timeline(start).entitlement(at: d(9))))
    }

    @Test(arguments: [
        ("RENEWAL_EXTENSION", "SUMMARY", "summary"), ("EXTERNAL_PURCHASE_TOKEN", "CREATED", "externalPurchaseToken"),
        ("EXTERNAL_PURCHASE_TOKEN", "ACTIVE_TOKEN_REMINDER", "externalPurchaseToken"),
        ("EXTERNAL_PURCHASE_TOKEN", "UNREPORTED", "externalPurchaseToken"), ("RESCIND_CONSENT", "", "appData"),
        ("TEST", "", "nothing"),
    ])
    func `what speaks of no transaction says nothing`(_ type: String, _ subtype: String, _ part: String) throws {
        let record = #"{"v":1,"notificationType":"\#(type)","subtype":"\#(subtype)","signedDate":1,"\#(part)":{"a":1}}"#
        let read = try reading(record)
        #expect(read.facts.isEmpty && !read.hasUnusableTransaction)
        #expect(Timeline(read.facts, rules()) == nil, "no record")
    }

    @Test(arguments: ["METADATA_UPDATE", "MIGRATION", "PRICE_CHANGE", "A_NEW_TYPE"])
    func `a type that is not known here counts by its payloads`(_ type: String) throws {
        let known = try timeline(told(type, "A_NEW_SUBTYPE", at: d(0), period(1), renewal(1, at: d(30)), status: 1))
        #expect(known.words(at: d(0)) == "active until 30d1h")
    }
}
