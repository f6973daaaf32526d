// Which refund requests to show.

import Cluster
import CommandLine
import Platform
import Settings

struct RefundsQuery: Sendable, Equatable {
    static let options = ["from", "to"]

    /// Requests that are shown without an ID, the newest.
    static let limitListed = 50
    /// Requests that are shown with --all. They are kept in memory.
    static let limitAll = 10_000
    /// Cards that are shown for one ID; --all shows all that are kept.
    static let limitCards = 8

    /// An originalTransactionId, a transactionId or a notificationUUID; nil: the newest requests of all
    /// purchases are shown.
    let id: String?
    let period: RequestPeriod
    let isJSON: Bool
    let showsAll: Bool

    init(_ invocation: Invocation, now: Int64) throws(ToolFault) {
        for name in ["at", "content", "by", "interval", "chart"] where invocation.has(name) {
            throw ToolFault(.wrongUsage, "--\(name) does not belong to refunds")
        }
        let format = invocation.option("format") ?? "text"
        guard format == "text" || format == "json" else {
            throw ToolFault(.wrongUsage, "--format must be text or json, not \(quoted(format))")
        }
        isJSON = format == "json"
        showsAll = invocation.has("all")
        period = try RequestPeriod(invocation, now: now)
        id = try invocation.operands.dropFirst().first.map { name throws(ToolFault) in
            try InspectQuery.checked(name, "ID", as: "an originalTransactionId, transactionId or notificationUUID")
        }
    }

    /// The number of newest requests that are kept.
    var limitKept: Int { id == nil && !showsAll ? Self.limitListed : Self.limitAll }
}
