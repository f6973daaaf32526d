// What the entitlements worker has written, read from its topics.

import JSON

/// The current state of every subscription, and the last events. Takes the records of two topics in any order.
struct DemoOutputs {
    struct Event: Equatable {
        /// When it took effect.
        let at: Int64
        let kind: String
        let state: String
        let originalTransactionId: String
    }

    private struct Subscription {
        var state: String
        var hasAccess: Bool
    }

    /// More than any screen shows.
    private static let limitEvents = 64

    private var subscriptions: [[UInt8]: Subscription] = [:]
    private(set) var byState: [String: Int] = [:]
    private(set) var withAccess = 0
    /// Newest last.
    private(set) var events: [Event] = []
    /// The number of events of each kind since the start.
    private(set) var byKind: [String: Int] = [:]
    /// Records that could not be read. There should be none.
    private(set) var unreadable = 0
    /// A subscription for the example questions: it has access, and belongs to an account.
    private(set) var example: (originalTransactionId: String, appAccountToken: String)?

    var subscriptionCount: Int { subscriptions.count }

    /// Takes a record of `entitlements`. Returns the notification that caused it.
    mutating func take(entitlement value: [UInt8]?, key: [UInt8]) -> String? {
        guard let value else {
            replace(key, nil)
            return nil
        }
        guard let record = read(value), let state = record["state"]?.string, let access = record["access"]?.bool else {
            unreadable += 1
            return nil
        }
        replace(key, Subscription(state: state, hasAccess: access))
        if example == nil, access, state == "active", let token = record["appAccountToken"]?.string,
            let id = record["originalTransactionId"]?.string
        {
            example = (id, token)
        }
        return record["cause"]?["notificationUUID"]?.string
    }

    /// Takes a record of `entitlement-events`.
    mutating func take(event value: [UInt8]) {
        guard let record = read(value), let kind = record["kind"]?.string, let at = record["at"]?.integer,
            let id = record["originalTransactionId"]?.string
        else {
            unreadable += 1
            return
        }
        byKind[kind, default: 0] += 1
        events.append(
            Event(at: at, kind: kind, state: record["after"]?["state"]?.string ?? "", originalTransactionId: id))
        if events.count > Self.limitEvents { events.removeFirst() }
    }

    private func read(_ value: [UInt8]) -> JSONValue? {
        do throws(JSONFault) { return try JSONValue.read(value) } catch { return nil }
    }

    private mutating func replace(_ key: [UInt8], _ new: Subscription?) {
        if let old = subscriptions[key] {
            byState[old.state, default: 1] -= 1
            if old.hasAccess { withAccess -= 1 }
        }
        subscriptions[key] = new
        guard let new else { return }
        byState[new.state, default: 0] += 1
        if new.hasAccess { withAccess += 1 }
    }
}
