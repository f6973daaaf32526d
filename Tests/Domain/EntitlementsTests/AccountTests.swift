import JSON
import Notices
import Testing

@testable import Entitlements

/// A record of `accounts` from a short text, in which texts are quoted with `'`.
private func subscription(_ id: String, _ state: String, until end: Int64?, _ more: String = "") throws
    -> AccountSubscription
{
    let access = ["active", "grace", "owned"].contains(state)
    let usual = [("entitlements", "['premium']"), ("billingPlan", "'BILLED_UPFRONT'"), ("autoRenew", "true")]
    let members =
        usual.filter { !more.contains("'\($0.0)'") }.map { "'\($0.0)':\($0.1)" } + (more.isEmpty ? [] : [more])
    let record =
        "{'originalTransactionId':'\(id)','bundleId':'app.\(id)','state':'\(state)','access':\(access),"
        + "'accessUntil':\(end.map { "\($0)" } ?? "null"),\(members.joined(separator: ","))}"
    return try #require(try read(record))
}

private func read(_ record: String) throws -> AccountSubscription? {
    var document = JSONDocument()
    try document.read(Array(record.replacing("'", with: "\"").utf8).span)
    return AccountSubscription(document)
}

@Suite struct `An account` {
    private static let now: Int64 = 100

    private func account(_ subscriptions: AccountSubscription...) -> Account {
        let account = Account(subscriptions, at: Self.now)
        #expect(Account(subscriptions.reversed(), at: Self.now) == account, "the order of records must not matter")
        return account
    }

    private func giver(_ subscriptions: AccountSubscription...) throws -> String {
        let grants = Account(subscriptions, at: Self.now).grants
        #expect(Account(subscriptions.reversed(), at: Self.now).grants == grants)
        return "\(try #require(grants.first).originalTransactionId)"
    }

    @Test func `has of several subscriptions that give one name the one that lasts longest`() throws {
        let short = try subscription("1", "active", until: 200)
        let long = try subscription("2", "active", until: 300)
        let endless = try subscription("3", "owned", until: nil, "'billingPlan':null")
        let ended = try subscription("4", "expired", until: 90)
        let endedLater = try subscription("5", "revoked", until: 95)
        #expect(try giver(short, long) == "2")
        #expect(try giver(short, long, endless) == "3")
        #expect(try giver(short, ended) == "1")
        #expect(try giver(ended, endedLater) == "5")
        #expect(try giver(try subscription("6", "active", until: 200), short) == "1", "of equals always the same")
    }

    @Test func `has no access any more when the record's own end has passed`() throws {
        let grants = account(try subscription("1", "active", until: 100), try subscription("2", "active", until: 99))
            .grants
        #expect(grants.map(\.access) == [false])
        #expect(grants.map(\.accessUntil) == [100])
        #expect(account(try subscription("1", "active", until: 101)).grants.map(\.access) == [true])
    }

    @Test func `lists names in the order of their bytes`() throws {
        let all = account(
            try subscription("1", "active", until: 200, "'entitlements':['z','a']"),
            try subscription("2", "active", until: 300, "'entitlements':['z','B']"))
        #expect(all.grants.map { "\($0.name) \($0.originalTransactionId)" } == ["B 2", "a 1", "z 2"])
    }

    @Test(
        arguments: [
            ("grace", 200, "", "fix_payment"), ("billing_retry", 90, "", "fix_payment"),
            ("active", 200, "'retry':{'since':90,'until':200}", "fix_payment"),
            ("active", 200, "'graceUntil':150", "fix_payment"),
            // Apple has stopped retrying by now, whatever the record says.
            ("billing_retry", 90, "'retry':{'since':50,'until':100}", "resubscribe"),
            ("active", 200, "'priceConsent':'waiting'", "consent_to_price"),
            ("active", 200, "'priceConsent':'settled'", nil), ("active", 200, "", nil),
            ("active", 200, "'autoRenew':false", "renew"), ("active", 200, "'autoRenew':null", nil),
            // A commitment is billed until its end; what counts is whether another one follows.
            ("active", 200, "'autoRenew':false,'commitment':{'renews':true}", nil),
            ("active", 200, "'autoRenew':true,'commitment':{'renews':false}", "renew"),
            ("active", 200, "'commitment':{'period':11,'of':12,'renews':null}", nil),
            ("active", 200, "'commitment':{'period':12,'of':12,'renews':true}", nil),
            ("active", 200, "'autoRenew':true,'commitment':{'period':12,'of':null,'renews':false}", "renew"),
            // In the last period the next payment would be the renewal.
            ("active", 200, "'autoRenew':false,'commitment':{'period':12,'of':12,'renews':null}", "renew"),
            ("active", 100, "", "resubscribe"), ("expired", 90, "'autoRenew':false", "resubscribe"),
            ("expired", 90, "'billingPlan':null", nil), ("revoked", 90, "'reason':'refund'", nil),
            ("superseded", 90, "", nil), ("owned", nil, "'billingPlan':null", nil),
        ] as [(String, Int64?, String, String?)])
    func `advises what helps`(state: String, end: Int64?, more: String, kind: String?) throws {
        let advice = account(try subscription("1", state, until: end, more)).advice
        #expect(advice.map(\.kind.rawValue) == [kind].compactMap { $0 })
    }

    @Test func `is not advised to pay for what another subscription gives for longer`() throws {
        let expired = try subscription("1", "expired", until: 90)
        let ending = try subscription("2", "active", until: 150, "'autoRenew':false")
        let active = try subscription("3", "active", until: 200)
        #expect(account(expired, ending, active).advice.isEmpty)
        #expect(account(expired, ending).advice.map { "\($0.originalTransactionId) \($0.kind)" } == ["2 renew"])
        let more = try subscription("4", "expired", until: 90, "'entitlements':['premium','archive']")
        #expect(account(more, active).advice.map { "\($0.originalTransactionId)" } == ["4"])
        let nameless = try subscription("5", "expired", until: 90, "'entitlements':[]")
        #expect(account(nameless, active).advice.map { "\($0.originalTransactionId)" } == ["5"])
    }

    /// As text, such as `1 renew`.
    private func advised(_ subscriptions: AccountSubscription...) -> [String] {
        let advice = Account(subscriptions, at: Self.now).advice
        #expect(Account(subscriptions.reversed(), at: Self.now).advice == advice)
        return advice.map { "\($0.originalTransactionId) \($0.kind)" }
    }

    @Test func `is covered only by what goes on without anybody's doing`() throws {
        let failing = try subscription("1", "grace", until: 200)
        let lapsed = try subscription("2", "expired", until: 90)
        let pass = try subscription("3", "active", until: 201, "'billingPlan':null,'autoRenew':null")
        #expect(advised(failing, pass) == ["1 fixPayment"])
        #expect(advised(lapsed, pass) == ["2 resubscribe"])
        for (more, kind) in [
            ("'autoRenew':false", " renew"), ("'autoRenew':null", nil), ("'priceConsent':'waiting'", " consentToPrice"),
            ("'graceUntil':300", " fixPayment"), ("'commitment':{'period':3,'renews':false}", " renew"),
        ] as [(String, String?)] {
            let ending = try subscription("4", "active", until: 300, more)
            #expect(advised(failing, ending) == ["1 fixPayment"] + [kind].compactMap { $0.map { "4" + $0 } }, "\(more)")
        }
        let endless = try subscription("5", "owned", until: nil, "'billingPlan':null")
        let renewing = try subscription("6", "active", until: 150)
        let committed = try subscription("7", "active", until: 150, "'autoRenew':null,'commitment':{'period':3}")
        for lasting in [endless, renewing, committed] { #expect(advised(failing, lapsed, lasting).isEmpty) }
    }

    @Test func `is offered of several subscriptions that give one name only the best`() throws {
        let first = try subscription("1", "expired", until: 80)
        let last = try subscription("2", "expired", until: 90)
        let third = try subscription("3", "billing_retry", until: 70, "'retry':{'since':70,'until':95}")
        #expect(advised(first, last, third) == ["2 resubscribe"])
        #expect(advised(first, try subscription("4", "revoked", until: 95)) == ["1 resubscribe"])
        // A subscription that can be repaired comes before one that has to be bought again.
        let retried = try subscription("5", "billing_retry", until: 60)
        #expect(advised(first, last, retried) == ["5 fixPayment"])
        let ending = try subscription("6", "active", until: 150, "'autoRenew':false")
        let endingLater = try subscription("7", "active", until: 160, "'autoRenew':false")
        #expect(advised(first, ending, endingLater) == ["7 renew"])
        let other = try subscription("8", "expired", until: 60, "'entitlements':['archive']")
        #expect(advised(first, other, last) == ["2 resubscribe", "8 resubscribe"])
    }

    @Test func `pays twice when two subscriptions that will be billed give the same`() throws {
        let first = try subscription("1", "active", until: 200)
        let second = try subscription("2", "grace", until: 300)
        let ending = try subscription("3", "active", until: 300, "'autoRenew':false")
        let owned = try subscription("4", "owned", until: nil, "'billingPlan':null")
        let other = try subscription("5", "active", until: 300, "'entitlements':['archive']")
        let paid = account(first, second, ending, owned, other).doublePayments
        #expect(paid.map { "\($0.name) \($0.originalTransactionIds)" } == ["premium [1, 2]"])
        #expect(account(first, ending, owned, other).doublePayments.isEmpty)
    }

    @Test(
        arguments: [
            // All remaining periods of a commitment are billed, even if its customer has turned renewal off.
            ("'autoRenew':false,'commitment':{'period':3,'of':12,'renews':false}", true),
            ("'autoRenew':null,'commitment':{'period':11,'of':null,'renews':null}", true),
            ("'autoRenew':true,'commitment':{'renews':false}", true),
            ("'autoRenew':true,'commitment':{'period':12,'of':12,'renews':false}", false),
            ("'autoRenew':true,'commitment':{'period':12,'of':null,'renews':false}", false),
            ("'autoRenew':false,'commitment':{'period':12,'of':12,'renews':true}", false),
            ("'autoRenew':true,'commitment':{'period':12,'of':12,'renews':true}", true),
            ("'autoRenew':null", false), ("'autoRenew':false", false), ("'autoRenew':true", true),
        ])
    func `pays for what is known to be billed again`(more: String, pays: Bool) throws {
        let second = try subscription("2", "active", until: 300, more)
        #expect(account(try subscription("1", "active", until: 200), second).doublePayments.isEmpty != pays)
    }

    @Test(arguments: [
        "[]", "{}", "{'originalTransactionId':'1','state':'active'}",
        "{'originalTransactionId':1,'state':'active','access':true}",
        "{'originalTransactionId':'1','state':'active','access':1}",
    ])
    func `is not read from what is no record`(record: String) throws {
        #expect(try read(record) == nil)
    }

    @Test func `takes a state of a later version by its access, and advises nothing`() throws {
        let later = try #require(
            try read("{'originalTransactionId':'1','state':'later','access':true,'entitlements':['premium']}"))
        #expect(later.state == nil)
        #expect(account(later).grants.map(\.access) == [true])
        #expect(account(later).advice.isEmpty)
    }

    @Test func `takes members of other kinds as absent`() throws {
        let odd = try #require(
            try read(
                "{'originalTransactionId':'1','state':'active','access':true,'accessUntil':'soon','entitlements':[1,'a',null],"
                    + "'retry':7,'commitment':[],'autoRenew':1,'priceConsent':'later','billingPlan':{}}"))
        #expect(odd.entitlements == ["a"])
        #expect(odd.accessUntil == nil && odd.autoRenew == nil && odd.billingPlan == nil && !odd.isFailing)
    }
}
