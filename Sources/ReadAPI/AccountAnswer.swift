// GET /v1/accounts/{appAccountToken}: who owns what, over all apps.

internal import Entitlements
internal import JSON

enum AccountAnswer {
    /// nil: of what gives entitlements there is more than an answer takes. What was left out may be what gives access.
    ///
    /// - Parameter token: a UUID, which needs no escape.
    static func body(
        _ token: String, _ records: CopiedRecords, at now: Int64, position: [UInt8], _ parser: Parsers.Parser
    ) -> [UInt8]? {
        if records.cutAt == .granting { return nil }
        var subscriptions: [AccountSubscription] = []
        subscriptions.reserveCapacity(records.places.count)
        for place in records.places {
            // What the follower has let in can be read.
            do throws(JSONFault) { try parser.json.read(records.list.span.extracting(place)) } catch { continue }
            if let subscription = AccountSubscription(parser.json) { subscriptions.append(subscription) }
        }
        let account = Account(subscriptions, at: now)
        var writer = JSONWriter(capacity: records.list.count + 1024)
        writer.object { writer in
            writer.member("appAccountToken", token)
            writer.name("entitlements")
            account.writeGrants(to: &writer)
            writer.member("subscriptions", json: Array("[".utf8) + records.list + Array("]".utf8))
            if records.cutAt != nil { writer.member("subscriptionsTruncated", true) }
            writer.name("advice")
            account.writeAdvice(to: &writer)
            writer.member("position", json: position)
        }
        return writer.bytes
    }
}
