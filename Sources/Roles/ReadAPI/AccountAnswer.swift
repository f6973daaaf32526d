// GET /v1/accounts/{appAccountToken}: what an account owns, over all apps.

internal import Entitlements
internal import JSON

enum AccountAnswer {
    /// nil: more records give entitlements than fit into an answer. Those left out may decide access.
    ///
    /// - Parameter token: a UUID, which needs no escaping.
    /// - Parameter records: one for each environment.
    static func body(
        _ token: String, _ records: [CopiedRecords], at now: Int64, position: [UInt8], _ parser: Parsers.Parser
    ) -> [UInt8]? {
        if records.contains(where: { $0.cutAt == .granting }) { return nil }
        var subscriptions: [AccountSubscription] = []
        subscriptions.reserveCapacity(records.reduce(0) { $0 + $1.places.count })
        for records in records {
            for place in records.places {
                // The follower has checked that the records can be read.
                do throws(JSONFault) { try parser.json.read(records.list.span.extracting(place)) } catch { continue }
                if let subscription = AccountSubscription(parser.json) { subscriptions.append(subscription) }
            }
        }
        let account = Account(subscriptions, at: now)
        let lists = records.map(\.list).filter { !$0.isEmpty }.joined(separator: ",".utf8)
        var writer = JSONWriter(capacity: records.reduce(1024) { $0 + $1.list.count })
        writer.object { writer in
            writer.member("appAccountToken", token)
            writer.member("asOf", now)
            writer.name("entitlements")
            account.writeGrants(to: &writer)
            writer.member("subscriptions", json: Array("[".utf8) + lists + Array("]".utf8))
            if records.contains(where: { $0.cutAt != nil }) { writer.member("subscriptionsTruncated", true) }
            writer.name("advice")
            account.writeAdvice(to: &writer)
            writer.member("position", json: position)
        }
        return writer.bytes
    }
}
