import Contract
import Testing

@Suite struct `Names of shadows` {
    @Test(arguments: ["october", "2026-11_b", "a", String(repeating: "x", count: 32)])
    func `A shadow's name and the live one are found again`(text: String) throws {
        let name = try #require(ShadowName(text))
        let topic = name.shadow(of: "appstore.production.entitlements")
        #expect(topic == "appstore.production.entitlements.replay-\(text)")
        let parts = try #require(ShadowName.split(topic))
        #expect(parts.live == "appstore.production.entitlements")
        #expect(parts.shadow == name)
    }

    @Test(arguments: ["", "a.b", "a b", "ö", "a/b", String(repeating: "x", count: 33)])
    func `Kafka or the ending would not take it`(text: String) { #expect(ShadowName(text) == nil) }

    @Test func `Of a prefix that looks like an ending the last one counts`() throws {
        let parts = try #require(ShadowName.split("a.replay-b.production.churn-cells.replay-c"))
        #expect(parts.live == "a.replay-b.production.churn-cells")
        #expect(parts.shadow.description == "c")
        #expect(ShadowName.split("a.replay-b.production.churn-cells") == nil)
        #expect(ShadowName.split(".replay-c") == nil)
    }

    @Test func `The longest prefix leaves room for the longest shadow`() throws {
        let prefix = try #require(TopicPrefix(String(repeating: "p", count: TopicPrefix.limitBytes)))
        let name = try #require(ShadowName(String(repeating: "x", count: ShadowName.limitBytes)))
        let names = Names(prefix: prefix, environment: .production)
        #expect(TopicID.allCases.allSatisfy { name.shadow(of: names.topic($0)).utf8.count <= 249 })
    }
}
