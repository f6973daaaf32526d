// GET /v1/subscriptions/{id}/refunds and /v1/refunds/{notificationUUID}: the request, the decision, what was sent, and
// Apple's outcome.

internal import Consumption
internal import JSON
internal import Notices

enum RefundAnswer {
    /// Newest first.
    static func body(_ refunds: CopiedRefunds, position: [UInt8], _ parser: Parsers.Parser) -> [UInt8] {
        let stories = refunds.values.compactMap { story($0, parser) }
            .sorted { ($0.requestedAt, $0.id) > ($1.requestedAt, $1.id) }
        var writer = JSONWriter(capacity: 4096 * stories.count + 256)
        writer.object { writer in
            writer.name("refunds")
            writer.array { writer in for story in stories { story.write(to: &writer) } }
            if refunds.isCut { writer.member("refundsTruncated", true) }
            writer.member("position", json: position)
        }
        return writer.bytes
    }

    /// nil: the stored request cannot be read.
    static func body(_ refund: [UInt8], position: [UInt8], _ parser: Parsers.Parser) -> [UInt8]? {
        guard let story = story(refund, parser) else { return nil }
        var writer = JSONWriter(capacity: 4096)
        writer.object { writer in
            writer.name("refund")
            story.write(to: &writer)
            writer.member("position", json: position)
        }
        return writer.bytes
    }

    private static func story(_ bytes: [UInt8], _ parser: Parsers.Parser) -> RefundStory? {
        guard let kept = KeptRefund(bytes) else { return nil }
        var story: RefundStory?
        for record in kept.records {
            // The follower has checked that the records can be read.
            do throws(JSONFault) { try parser.json.read(record.bytes.span) } catch { continue }
            guard let read = ConsumptionRecord(parser.json) else { continue }
            if story == nil { story = RefundStory(of: read) }
            story?.add(read)
        }
        story?.leaveOut(Int(kept.leftOut))
        return story
    }
}
