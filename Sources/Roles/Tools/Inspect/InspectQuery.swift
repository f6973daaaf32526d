// What to inspect.

import Cluster
import CommandLine
import Contract
import Platform
import Settings

struct InspectQuery: Sendable, Equatable {
    enum Subject: Sendable, Equatable {
        /// By its original transaction id, or another key of `notifications`.
        case subscription(id: String)
        /// In lower case, like the keys.
        case account(token: String)
        case metrics(MetricsQuery)
        case refunds(RefundsQuery)
    }

    /// Apple's ids have up to 20 digits, UUIDs have 36 characters.
    static let limitNameBytes = 128
    static let limitDates = 1000

    let subject: Subject
    /// nil: the answer is about now.
    let instant: Int64?
    /// Publication dates of the items to check.
    let published: [Int64]
    let isJSON: Bool
    let showsAll: Bool

    init(_ invocation: Invocation, now: Int64) throws(ToolFault) {
        let kind = invocation.operands[0]
        guard kind != "metrics" else {
            let query = try MetricsQuery(invocation)
            subject = .metrics(query)
            (instant, published) = (nil, [])
            (isJSON, showsAll) = (query.format == .json, false)
            return
        }
        guard kind != "refunds" else {
            let query = try RefundsQuery(invocation, now: now)
            subject = .refunds(query)
            (instant, published) = (nil, [])
            (isJSON, showsAll) = (query.isJSON, query.showsAll)
            return
        }
        try Self.check(kind, invocation)
        let format = invocation.option("format") ?? "text"
        guard format == "text" || format == "json" else {
            throw ToolFault(.wrongUsage, "--format must be text or json, not \(quoted(format))")
        }
        isJSON = format == "json"
        showsAll = invocation.has("all")
        let name = invocation.operands[1]
        switch kind {
        case "subscription": subject = .subscription(id: try Self.checked(name, "ID", as: "an original transaction id"))
        case "account":
            let token = try Self.checked(name, "TOKEN", as: "an appAccountToken")
            guard let canonical = AppAccountToken.canonical(Array(token.utf8)) else {
                throw ToolFault(.wrongUsage, Self.words(noToken: token))
            }
            subject = .account(token: canonical)
        default: throw Self.unknown(kind)
        }
        instant = try invocation.option("at").map { text throws(ToolFault) in
            try Self.time(text, of: "at", now: now)
        }
        var dates: [Int64] = []
        for text in (invocation.option("content") ?? "").split(separator: ",", omittingEmptySubsequences: false) {
            if invocation.has("content") { dates.append(try Self.time(String(text), of: "content", now: now)) }
        }
        guard dates.count <= Self.limitDates else {
            throw ToolFault(.wrongUsage, "--content takes up to \(Self.limitDates) dates, not \(dates.count)")
        }
        if !dates.isEmpty, case .account = subject {
            throw ToolFault(.wrongUsage, "--content belongs to subscription: an account has no runs of its own")
        }
        published = dates
    }

    private static func unknown(_ kind: String) -> ToolFault {
        ToolFault(.wrongUsage, "name subscription, account, refunds or metrics, not \(quoted(kind))")
    }

    /// Checks the arguments for one subscription or account.
    private static func check(_ kind: String, _ invocation: Invocation) throws(ToolFault) {
        guard ["subscription", "account"].contains(kind) else { throw unknown(kind) }
        guard invocation.operands.count > 1 else {
            throw ToolFault(
                .wrongUsage,
                kind == "account"
                    ? "account takes an appAccountToken: perennial inspect account TOKEN"
                    : "subscription takes an original transaction id: perennial inspect subscription ID")
        }
        for name in MetricsQuery.options where invocation.has(name) {
            let owner = RefundsQuery.options.contains(name) ? "metrics and refunds" : "metrics"
            throw ToolFault(.wrongUsage, "--\(name) belongs to \(owner), not to one \(kind)")
        }
    }

    static func checked(_ name: String, _ word: String, as kind: String) throws(ToolFault) -> String {
        guard !name.isEmpty else { throw ToolFault(.wrongUsage, "\(word) is empty; name \(kind)") }
        guard name.utf8.count <= limitNameBytes else {
            throw ToolFault(
                .wrongUsage, "\(word) has \(name.utf8.count) bytes; \(kind) has at most \(limitNameBytes)")
        }
        // A key may be any bytes, but invisible characters are a typing error.
        guard name.unicodeScalars.allSatisfy({ $0.isASCII && $0.value > 0x20 && $0.value < 0x7f }) else {
            throw ToolFault(
                .wrongUsage,
                "\(quoted(printable(name))) is not \(kind): it has only letters, digits and dashes, no spaces")
        }
        return name
    }

    private static func time(_ text: String, of option: String, now: Int64) throws(ToolFault) -> Int64 {
        guard let time = pointInTime(text, now: now) else {
            var words = "--\(option) takes 2026-11-20, 2026-11-20T10:00:00Z (UTC), 2h or 7d (ago), not \(quoted(text))"
            if !text.isEmpty, isNumber(text) { words += "; only the api takes milliseconds" }
            if text.contains(" ") { words += "; write the dates without spaces" }
            throw ToolFault(.wrongUsage, words)
        }
        return time
    }

    private static func words(noToken text: String) -> String {
        let hint =
            isNumber(text) ? ". Is it an original transaction id? Then: perennial inspect subscription \(text)" : ""
        return
            "\(quoted(text)) is not an appAccountToken: that is a UUID, like 7e5d0c1a-0001-4000-8000-000000000001\(hint)"
    }

    private static func isNumber(_ text: String) -> Bool { text.utf8.allSatisfy { (0x30...0x39).contains($0) } }
}
