import Consumption
import JSON
import Notices
import Testing

/// The requests in some records, in their order.
func stories(of records: [ConsumptionRecord]) -> [Text: RefundStory] {
    var stories: [Text: RefundStory] = [:]
    for record in records { stories[record.id, default: RefundStory(of: record)].add(record) }
    return stories
}

@Suite struct `The story of a refund request` {
    @Test func `stands where its last word is, whatever follows`() throws {
        let stories = stories(of: try busyScene().records)
        #expect(
            stories.mapValues(\.standing) == [
                "u-sent": .sent, "u-failed": .failed, "u-legal": .withheld, "u-foreign": .withheld,
                "u-family": .withheld, "u-none": .withheld, "u-late": .expired, "u-part": .expired, "u-old": .expired,
            ])
        #expect(stories["u-legal"]?.withholding == "policy")
        #expect(stories["u-sent"]?.withholding == nil)
    }

    @Test func `is not opened again by what is told behind its last word`() throws {
        let records = try busyScene().records
        let decided = try #require(records.first { $0.id == "u-sent" && $0.kind == .decided })
        let expired = try #require(records.first { $0.kind == .expired })
        var story = try #require(stories(of: records)["u-sent"])
        story.add(decided)
        #expect(story.standing == .sent)
        story.add(expired)
        #expect(story.standing == .sent && story.ending?.kind == .sent)
    }

    @Test func `has what was asked, decided, tried, and what came of it`() throws {
        let story = try #require(stories(of: try busyScene().records)["u-sent"])
        #expect(story.requestedAt == firstAsked)
        #expect(story.requestReason == "UNINTENDED_PURCHASE" && story.transactionId == "t1")
        #expect(story.policy?.rule == "rest")
        #expect(story.decision?.body != nil && story.facts != nil)
        #expect(story.attempts.map(\.attempt) == [1, 2, 3])
        #expect(story.margin == 12 * hour - 9_000)
        #expect(story.outcomes.map(\.detail) == ["refunded", "reversed"])
        #expect(story.outcomes.first?.amount?.value == 4_995)
        #expect(story.outcome == "reversed")
        #expect(story.shadow?.policy?.version == "2")
        #expect(story.steps.allSatisfy { $0.facts == nil && $0.body == nil })
    }

    @Test func `is withheld while consent is, and keeps its first answer`() throws {
        var scene = Scene()
        try scene.use("{'consented':true,'deliveryStatus':'DELIVERED','consumptionPercentage':40000}", at: firstAsked)
        try scene.tell("CONSUMPTION_REQUEST", "u")
        try scene.use("{'consented':false}", at: firstAsked + 2_000)
        let between = try #require(stories(of: scene.records)["u"])
        #expect(between.standing == .withheld && between.withholding == "no_consent")
        #expect(between.decision?.body != nil)
        try scene.use("{'consented':true,'consumptionPercentage':50000}", at: firstAsked + 3_000)
        let after = try #require(stories(of: scene.records)["u"])
        #expect(after.standing == .decided && after.withholding == nil)
        #expect(after.decision == between.decision)
    }

    @Test func `keeps the first and the newest of too many steps, and counts the others`() throws {
        var scene = Scene()
        try scene.use("{'consented':true,'deliveryStatus':'DELIVERED','consumptionPercentage':40000}", at: firstAsked)
        try scene.tell("CONSUMPTION_REQUEST", "u")
        for number in 1...400 { scene.attempt(Int64(number), of: "u", at: firstAsked + Int64(number) * 1_000, 500) }
        let story = try #require(stories(of: scene.records)["u"])
        #expect(story.steps.count == RefundStory.limitSteps)
        #expect(story.droppedSteps == 402 - RefundStory.limitSteps)
        #expect(story.attempts.first?.attempt == 1 && story.attempts.last?.attempt == 400)
    }

    @Test func `is told as JSON that a program can read`() throws {
        let story = try #require(stories(of: try busyScene().records)["u-sent"])
        var writer = JSONWriter()
        story.write(to: &writer)
        let told = try JSONValue.read(writer.bytes)
        #expect(told["state"]?.string == "sent")
        #expect(told["policy"]?["rule"]?.string == "rest")
        #expect(told["body"]?["refundPreference"]?.string == "DECLINE")
        #expect(told["facts"]?["price"]?.integer == 9_990)
        #expect(told["margin"]?.integer == 12 * hour - 9_000)
        #expect(told["outcome"]?.string == "reversed")
        #expect(told["outcomes"]?.array?.first?["amount"]?.integer == 4_995)
        #expect(told["shadow"]?["policy"]?["version"]?.string == "2")
        #expect(
            told["steps"]?.array?.map { $0["kind"]?.string } == [
                "requested", "decided", "retrying", "retrying", "sent",
            ])
        #expect(told["steps"]?.array?[2]["httpStatus"] == .null)
    }
}
