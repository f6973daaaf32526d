// What the courier saw, counted.

import HTTPClient

struct Tally {
    private(set) var posts = 0
    private(set) var sends = 0
    private(set) var accepted = 0
    private(set) var refused = 0
    private(set) var wrong = 0
    private(set) var givenUp = 0
    /// By their reason.
    private(set) var setAside: [String: Int] = [:]
    private var statuses: [Int: Int] = [:]
    private var faults: [HTTPClientFault.Kind: Int] = [:]
    private var lastFault: HTTPClientFault?
    private var lastRefusal: Answer?

    /// Every genuine notification is taken, and every forgery refused for its reason.
    var isAllRight: Bool { wrong == 0 && givenUp == 0 && setAside.isEmpty }
    var wasAnswered: Bool { !statuses.isEmpty }

    mutating func countPost() { posts += 1 }

    /// - Parameter fault: what `answer` says in words, when it is none.
    mutating func count(_ answer: Answer, _ fault: HTTPClientFault? = nil) {
        sends += 1
        lastFault = fault ?? lastFault
        switch answer {
        case .status(let status, _): statuses[status, default: 0] += 1
        case .none(let kind): faults[kind, default: 0] += 1
        }
    }

    /// The last word on a post.
    mutating func count(_ verdict: Verdict, _ answer: Answer) {
        switch verdict {
        case .setAside:
            if case .status(_, let error) = answer { setAside[error ?? "", default: 0] += 1 }
        case .accepted: accepted += 1
        case .refused: refused += 1
        case .wrong: wrong += 1
        case .unsettled:
            givenUp += 1
            lastRefusal = answer
        }
    }

    /// While it goes on.
    var progress: String {
        let settled = accepted + refused + wrong + givenUp + setAside.values.reduce(0, +)
        return "\(posts) posts, \(settled) settled, \(sends - settled) answers asked for another send"
    }

    var summary: [String] {
        let answers =
            statuses.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
            + faults.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key.rawValue): \($0.value)" }
        var lines = [
            "\(posts) posts, sent \(sends) times: \(accepted) accepted, \(refused) forgeries refused as they should be",
            "answers: " + (answers.isEmpty ? "none" : answers.joined(separator: ", ")),
        ]
        if givenUp > 0 { lines.append("given up after the last retry: \(givenUp)\(lastCause)") }
        for (reason, count) in setAside.sorted(by: { $0.key < $1.key }) {
            lines.append(
                "set aside, not taken: \(count), as \(reason): ingest's log says why, and perennial dead-letters list shows them"
            )
        }
        if wrong > 0 { lines.append("forgeries taken, or refused for another reason than theirs: \(wrong)") }
        return lines
    }

    private var lastCause: String {
        switch lastRefusal {
        case .status(let status, let error): "; the last one for \(status)\(error.map { " \($0)" } ?? "")"
        case .some(.none(let kind)): "; the last one for \(lastFault?.detail ?? kind.rawValue)"
        case nil: ""
        }
    }
}
