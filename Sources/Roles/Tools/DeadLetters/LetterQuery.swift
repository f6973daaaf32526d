// Which letters a call selects.

import AppStore
import CommandLine
import Contract
import Settings
import Telemetry

struct LetterQuery: Sendable {
    enum Verb: String, CaseIterable { case list, show, redrive }

    /// Names one letter, or a few.
    enum LetterName: Equatable {
        case position(partition: Int32, offset: Int64)
        /// In `rejected` in lower case, like the hashes.
        case key(prefix: String)
    }

    /// One or two screens.
    static let defaultListLimit = 100
    /// Letters are sorted in memory.
    static let greatestListLimit = 100_000
    /// Shorter prefixes match by chance.
    private static let shortestKeyPrefix = 6

    let verb: Verb
    var topic = TopicID.rejected
    var letter: LetterName?
    var reasons: Set<String> = []
    /// Milliseconds since 1970.
    var since: Int64?
    var limit: Int?
    let isJSON: Bool
    let isRaw: Bool
    let applies: Bool

    init(_ invocation: Invocation, now: Int64) throws(SettingFault) {
        var operands = invocation.operands[...]
        let word = operands.popFirst() ?? ""
        guard let verb = Verb(rawValue: word) else {
            throw SettingFault("the first operand must be list, show or redrive, not \(quoted(word))")
        }
        self.verb = verb
        isRaw = invocation.has("raw")
        applies = invocation.has("apply")
        let format = invocation.option("format") ?? "text"
        guard format == "text" || format == "json" else {
            throw SettingFault("--format must be text or json, not \(quoted(format))")
        }
        isJSON = format == "json"
        if let name = operands.first, let topic = Self.topic(name) {
            self.topic = topic
            operands = operands.dropFirst()
        }
        if let name = operands.popFirst() { letter = try letter(name) }
        guard operands.isEmpty else {
            throw SettingFault("name only one letter; \(quoted(operands[operands.startIndex])) is one too many")
        }
        if verb == .show, letter == nil {
            throw SettingFault("show needs a letter: PARTITION:OFFSET or the beginning of a key")
        }
        if verb == .list, letter != nil { throw SettingFault("list shows all letters; show shows one") }
        if isRaw, verb != .show { throw SettingFault("--raw belongs to show") }
        if applies, verb != .redrive { throw SettingFault("--apply belongs to redrive") }
        try readFilters(invocation, now: now)
    }

    private mutating func readFilters(_ invocation: Invocation, now: Int64) throws(SettingFault) {
        if let text = invocation.option("reason") {
            reasons = Set(text.split(separator: ",").map { String($0.drop { $0 == " " }) })
            // The reasons of workers are not a fixed list.
            let known = RejectionReason.allCases.map(\.rawValue)
            if topic == .rejected, let strange = reasons.sorted().first(where: { !known.contains($0) }) {
                throw SettingFault("there is no reason \(quoted(strange)), only \(known.joined(separator: ", "))")
            }
        }
        if let text = invocation.option("since") {
            guard let time = pointInTime(text, now: now) else {
                throw SettingFault("--since takes 90m, 2h, 7d, 2026-11-20 or 2026-11-20T10:00:00Z, not \(quoted(text))")
            }
            since = time
        }
        if let text = invocation.option("limit") {
            guard let count = Int(text), (1...Self.greatestListLimit).contains(count) else {
                throw SettingFault("--limit takes a number from 1 to \(Self.greatestListLimit), not \(quoted(text))")
            }
            limit = count
        }
    }

    private static func topic(_ name: String) -> TopicID? {
        if name == TopicID.rejected.name { return .rejected }
        return WorkerName(rawValue: name).map { .deadLetters($0) }
    }

    private func letter(_ name: String) throws(SettingFault) -> LetterName {
        let parts = name.split(separator: ":", omittingEmptySubsequences: false)
        if parts.count == 2, let partition = Int32(parts[0]), let offset = Int64(parts[1]), partition >= 0, offset >= 0
        {
            return .position(partition: partition, offset: offset)
        }
        let isLongEnough = name.utf8.count >= Self.shortestKeyPrefix
        guard topic == .rejected else {
            if isLongEnough { return .key(prefix: name) }
            throw SettingFault(
                "a letter is PARTITION:OFFSET, or at least \(Self.shortestKeyPrefix) characters of its key, not "
                    + quoted(name))
        }
        let prefix = name.lowercased()
        guard isLongEnough, prefix.allSatisfy({ $0.isASCII && $0.isHexDigit }) else {
            throw SettingFault(
                "\(quoted(name)) is neither a topic nor a letter: a topic is rejected or a worker "
                    + "(\(WorkerName.allCases.map(\.rawValue).joined(separator: ", "))); a letter is PARTITION:OFFSET, or at "
                    + "least \(Self.shortestKeyPrefix) hexadecimal digits of its key")
        }
        return .key(prefix: prefix)
    }

    /// Where reading begins for a call that reads every selected letter.
    var start: LetterScan.Start {
        if case .position(let partition, let offset)? = letter {
            return .position(partition: partition, offset: offset)
        }
        return since.map { .time($0) } ?? .beginning
    }

    func matches(_ letter: Letter) -> Bool {
        if !reasons.isEmpty, !reasons.contains(letter.reason) { return false }
        switch self.letter {
        case nil: return true
        case .position(let partition, let offset): return letter.partition == partition && letter.offset == offset
        case .key(let prefix): return (topic == .rejected ? letter.key.lowercased() : letter.key).hasPrefix(prefix)
        }
    }
}
