import Consumption
import JSON
import Notices
import Records
import Testing

@Suite struct `Another policy asked later` {
    private func findings(_ records: [ConsumptionRecord], _ policy: RefundPolicy) throws -> [Text: WhatIf.Finding] {
        var whatIf = WhatIf(policy)
        var findings: [Text: WhatIf.Finding] = [:]
        for record in records {
            switch whatIf.ask(about: record) {
            case .found(let finding): findings[record.id] = findings[record.id] ?? finding
            case .notDecided: continue
            case .unreadable: Issue.record("\(record) cannot be read")
            }
        }
        return findings
    }

    @Test func `is asked about what a policy was asked about, and nothing else`() throws {
        let findings = try findings(busyScene().records, policy(rules: ""))
        #expect(Set(findings.keys) == ["u-sent", "u-failed", "u-legal", "u-part", "u-old"])
    }

    @Test func `changes nothing when it is the same`() throws {
        let same = try policy(
            rules: #"""
                {"name":"legal","when":{"reason":"LEGAL"},"answer":{"withhold":true}},
                {"name":"part","when":{"productId":"vip"},"answer":{"refundPreference":"GRANT_PRORATED"}},
                {"name":"renamed","when":{"productId":"coins.*"},"answer":{"refundPreference":"DECLINE"}}
                """#)
        let findings = try findings(busyScene().records, same)
        #expect(findings.values.allSatisfy { !$0.isChanged })
        #expect(findings["u-sent"]?.ruleBefore == "rest" && findings["u-sent"]?.ruleAfter == "renamed")
    }

    @Test func `says what would be answered, and what is at stake`() throws {
        let other = try policy(
            #"""
            {"version":"3","defaults":{"sampleContentProvided":true},"rules":[
              {"name":"others","when":{"reason":"OTHER"},"answer":{"withhold":true}},
              {"name":"rest","when":{},"answer":{"refundPreference":"GRANT_FULL"}}]}
            """#)
        let findings = try findings(busyScene().records, other)
        let sent = try #require(findings["u-sent"])
        #expect(sent.before == .send(preference: .decline, delivery: .delivered, sample: false))
        #expect(sent.after == .send(preference: .grantFull, delivery: .delivered, sample: true))
        #expect(sent.isChanged)
        #expect(sent.atStake?.value == 9_990 && sent.atStake?.currency == "USD")
        #expect(sent.requestedAt == firstAsked && sent.productId == "coins.100")
        #expect(findings["u-failed"]?.after == .withhold)
        #expect(findings["u-legal"]?.before == .withhold)
        #expect("\(sent.before)" == "DECLINE" && "\(sent.after)" == "GRANT_FULL, with sample")
    }

    @Test func `is told by usage before defaults, as then`() throws {
        var scene = Scene(policy: try policy(when: "{}"))
        try scene.use(
            "{'consented':true,'deliveryStatus':'UNDELIVERED_OTHER','sampleContentProvided':false}", at: firstAsked)
        try scene.tell("CONSUMPTION_REQUEST", "u")
        let other = try policy(
            #"{"version":"2","defaults":{"deliveryStatus":"DELIVERED","sampleContentProvided":true},"rules":[]}"#)
        let finding = try #require(try findings(scene.records, other)["u"])
        #expect(finding.after == .send(preference: nil, delivery: .other, sample: false))
    }

    @Test func `compares answers of the older form as Apple sees them`() throws {
        var scene = Scene(
            policy: try policy(rules: #"{"name":"a","when":{},"answer":{"refundPreference":"GRANT_FULL"}}"#))
        try scene.use("{'consented':true,'deliveryStatus':'DELIVERED'}", at: firstAsked)
        try scene.tell(
            "CONSUMPTION_REQUEST", "u", ["type": "'Auto-Renewable Subscription'", "advancedCommerceInfo": "{}"])
        let part = try policy(rules: #"{"name":"a","when":{},"answer":{"refundPreference":"GRANT_PRORATED"}}"#)
        #expect(try findings(scene.records, part)["u"]?.isChanged == false)
        #expect(try findings(scene.records, try policy(when: "{}"))["u"]?.isChanged == true)
    }

    @Test func `is not asked about facts that it cannot read`() throws {
        let records = try busyScene().records
        var record = try #require(records.first { $0.kind == .decided })
        var whatIf = WhatIf(try policy(rules: ""))
        for facts in [nil, Array("{}".utf8), Array("{".utf8)] as [[UInt8]?] {
            record.facts = facts
            #expect(whatIf.ask(about: record) == .unreadable)
        }
    }
}
