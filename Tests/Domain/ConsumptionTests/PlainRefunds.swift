// The life of refund requests, computed by reading the whole history for each of them: slow, without merging or storing anything.

import MakeBelieve

struct PlainRefunds {
    enum Event {
        case request(id: String, transaction: String, signed: Int64, obstacle: String?)
        case outcome(id: String, word: String, transaction: String, signed: Int64)
        case usage(PlainUsage)
        case attempt(id: String, number: Int64, status: Int64?)
        case tick
    }

    struct PlainUsage {
        var transaction: String?
        var consented: Bool?
        var consentedAt: Int64?
        var delivered: String?
        var percentage: Int64?
    }

    struct Entry {
        let event: Event
        /// The record's own time.
        let timestamp: Int64
        /// The partition's clock when the record was read.
        let clock: Int64
    }

    let wait: Int64
    /// The percentage from which on the policy withholds; nil: there is no policy. A policy has a shadow.
    let limit: Int64?
    var log: [Entry] = []

    /// The kinds and details of all records of one request.
    func words(about id: String) -> [String] {
        guard let first = log.firstIndex(where: { if case .request(id, _, _, _) = $0.event { true } else { false } }),
            case .request(_, let transaction, let signed, let obstacle) = log[first].event
        else { return [] }
        var life = Life(
            plain: self, id: id, transaction: transaction, signed: signed, obstacle: obstacle,
            due: min(adding(log[first].timestamp, wait), signed + 11 * hour + 30 * minute))
        life.live(from: first)
        return life.words
    }

    private func adding(_ one: Int64, _ other: Int64) -> Int64 {
        let (sum, isTooMuch) = one.addingReportingOverflow(other)
        return isTooMuch ? .max : sum
    }

    /// According to the rows before `end`.
    func consents(_ transaction: String, before end: Int) -> Bool {
        var newest: (at: Int64, given: Bool)?
        for entry in log[..<end] {
            guard case .usage(let usage) = entry.event, let given = usage.consented else { continue }
            if let own = usage.transaction, own != transaction { continue }
            var at = usage.consentedAt ?? entry.timestamp
            if given, at > entry.timestamp { at = entry.timestamp }
            if newest == nil || at > newest!.at || at == newest!.at && !given { newest = (at, given) }
        }
        return newest?.given ?? false
    }

    func last<Value>(_ transaction: String, before end: Int, _ member: (PlainUsage) -> Value?) -> Value? {
        func search(_ wanted: String?) -> Value? {
            for entry in log[..<end].reversed() {
                if case .usage(let usage) = entry.event, usage.transaction == wanted, let value = member(usage) {
                    return value
                }
            }
            return nil
        }
        return search(transaction) ?? search(nil)
    }
}

private struct Life {
    let plain: PlainRefunds
    let id: String
    let transaction: String
    let signed: Int64
    let obstacle: String?
    let due: Int64
    var words = ["requested"]
    var outcomes: Set<String> = []
    var standing = "waiting"
    var isDecided = false
    var numbers: Set<Int64> = []
    var unanswered: Set<Int64> = []

    private var deadline: Int64 { signed + 12 * hour }
    private var isOver: Bool { ["sent", "failed", "expired"].contains(standing) }

    mutating func live(from first: Int) {
        let log = plain.log
        if log[first].clock >= deadline { end("expired") } else { judge(at: log[first].clock, before: first) }
        for entry in log[..<first] { hear(entry) }
        for place in log.indices[(first + 1)...] {
            if standing == "waiting", due <= log[place].clock { judge(at: due, before: place) }
            if standing == "decided", deadline + minute <= log[place].clock { end("expired") }
            switch log[place].event {
            case .usage: judge(at: log[place].clock, before: place + 1)
            case .outcome(_, _, transaction, signed...):
                hear(log[place])
                judge(at: log[place].clock, before: place + 1)
            case .attempt(id, let number, let status) where isDecided || isOver: take(number, status)
            default: break
            }
        }
    }

    private mutating func end(_ word: String) {
        standing = word
        words.append(word)
    }

    private mutating func hear(_ entry: PlainRefunds.Entry) {
        guard case .outcome(let id, let word, transaction, signed...) = entry.event, outcomes.insert(id).inserted
        else { return }
        words.append("outcome \(word)")
    }

    private mutating func judge(at clock: Int64, before end: Int) {
        guard !isOver, clock < deadline, ["waiting", "decided", "no_consent"].contains(standing) else { return }
        let isSettled = plain.log[..<end].contains {
            guard case .outcome(_, let word, transaction, let when) = $0.event else { return false }
            return word != "reversed" && when > signed
        }
        let consents = plain.consents(transaction, before: end)
        let delivered = plain.last(transaction, before: end) { $0.delivered }
        let percentage = plain.last(transaction, before: end) { $0.percentage }
        let isKnown = delivered.map { $0 != "DELIVERED" || percentage != nil } ?? false
        if let obstacle { return withhold(obstacle) }
        if isSettled { return withhold("settled") }
        if !consents {
            if clock >= due || standing == "decided" { withhold("no_consent") }
        } else if isDecided {
            if standing != "decided" { self.end("decided") }
        } else if clock >= due || isKnown {
            if let limit = plain.limit, let percentage, percentage >= limit {
                withhold("policy")
                words.append("shadow")
            } else {
                isDecided = true
                self.end("decided")
                if plain.limit != nil { words.append("shadow") }
                for entry in plain.log[..<end] {
                    if case .attempt(id, let number, let status) = entry.event { take(number, status) }
                }
            }
        }
    }

    private mutating func withhold(_ why: String) {
        if standing == why { return }
        standing = why
        words.append("withheld \(why)")
    }

    private mutating func take(_ number: Int64, _ status: Int64?) {
        if isOver { return }
        switch status {
        case 202: end("sent")
        case nil, 401, 408, 429, 500, 503:
            if status == nil { unanswered.insert(number) }
            if numbers.insert(number).inserted { words.append("retrying") }
        default:
            end("failed")
            if unanswered.contains(where: { $0 < number }) { words[words.count - 1] = "failed maybe_sent" }
        }
    }
}
