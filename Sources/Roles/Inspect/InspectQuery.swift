// What is to be inspected.

import Platform
import Settings

struct InspectQuery: Sendable, Equatable {
    enum Subject: Sendable, Equatable {
        /// By its original transaction id, or what else is a key of `notifications`.
        case subscription(id: String)
        /// In lower case, as it is kept.
        case account(token: String)
    }

    /// Apple's ids have up to 20 digits, UUIDs have 36 characters.
    static let limitNameBytes = 128
    static let limitDates = 1000

    let subject: Subject
    /// nil: now.
    let instant: Int64?
    /// Dates of publication to be judged.
    let published: [Int64]
    let isJSON: Bool
    let showsAll: Bool

    init(_ invocation: Invocation, now: Int64) throws(ToolFault) {
        let format = invocation.option("format") ?? "text"
        guard format == "text" || format == "json" else {
            throw ToolFault(.wrongUsage, "--format must be text or json, not \(quoted(format))")
        }
        isJSON = format == "json"
        showsAll = invocation.has("all")
        let (kind, name) = (invocation.operands[0], invocation.operands[1])
        switch kind {
        case "subscription": subject = .subscription(id: try Self.checked(name, "ID", as: "an original transaction id"))
        case "account":
            let token = try Self.checked(name, "TOKEN", as: "an appAccountToken")
            guard !token.contains("|") else {
                throw ToolFault(.wrongUsage, "\(quoted(token)) is no appAccountToken: it is a UUID, without \"|\"")
            }
            subject = .account(token: String(decoding: token.utf8.map(Self.lowercased), as: UTF8.self))
        default: throw ToolFault(.wrongUsage, "subscription or account, not \(quoted(kind))")
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
            throw ToolFault(.wrongUsage, "--content belongs to subscription: an account has no dates of its own")
        }
        published = dates
    }

    private static func checked(_ name: String, _ word: String, as kind: String) throws(ToolFault) -> String {
        guard !name.isEmpty else { throw ToolFault(.wrongUsage, "\(word) is empty; name \(kind)") }
        guard name.utf8.count <= limitNameBytes else {
            throw ToolFault(
                .wrongUsage, "\(word) has \(name.utf8.count) bytes; \(kind) has \(limitNameBytes) at most")
        }
        // A key may be any bytes, but one that nobody can see is a slip of the hand.
        guard name.unicodeScalars.allSatisfy({ $0.isASCII && $0.value > 0x20 && $0.value < 0x7f }) else {
            throw ToolFault(
                .wrongUsage,
                "\(quoted(printable(name))) is not \(kind): those have letters, digits and dashes, no blanks")
        }
        return name
    }

    private static func time(_ text: String, of option: String, now: Int64) throws(ToolFault) -> Int64 {
        guard let time = pointInTime(text, now: now) else {
            throw ToolFault(
                .wrongUsage, "--\(option) takes 2026-11-20, 2026-11-20T10:00:00Z, 2h or 7d, not \(quoted(text))")
        }
        return time
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}
